"""A minimal writer of GGUF files, version 3.

Format (``docs/gguf.md`` of the ggml project), all little-endian: magic, version, number of tensors, number of metadata
values; the metadata; one record per tensor (name, dimensions with the innermost first, type, offset); then the tensors'
bytes, each starting at a multiple of the alignment.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

from engdiff.models.tensors import Dtype, Tensor

ALIGNMENT = 32  # bytes; what a file has that does not say general.alignment
_MAGIC = b"GGUF"
_VERSION = 3
_TENSOR_TYPES: dict[Dtype, int] = {"F32": 0, "F16": 1}  # enum ggml_type


class _Type(IntEnum):
    """Types of metadata values (``gguf_metadata_value_type``): those that we write."""

    UINT32 = 4
    INT32 = 5
    FLOAT32 = 6
    BOOL = 7
    STRING = 8
    ARRAY = 9


@dataclass(frozen=True)
class Value:
    """A metadata value, ready to be written."""

    type: int
    data: bytes


def uint32(number: int) -> Value:
    """Encode an unsigned 32-bit integer: a size, a count or a token id."""
    return Value(_Type.UINT32, struct.pack("<I", number))


def float32(number: float) -> Value:
    """Encode a 32-bit float."""
    return Value(_Type.FLOAT32, struct.pack("<f", number))


def boolean(truth: bool) -> Value:
    """Encode a truth value: one byte, 0 or 1."""
    return Value(_Type.BOOL, struct.pack("<?", truth))


def string(text: str) -> Value:
    """Encode a text: UTF-8 after its length in bytes."""
    return Value(_Type.STRING, _string(text))


def strings(texts: Sequence[str]) -> Value:
    """Encode an array of texts."""
    return _array(_Type.STRING, len(texts), b"".join(map(_string, texts)))


def int32s(numbers: Sequence[int]) -> Value:
    """Encode an array of signed 32-bit integers."""
    return _array(_Type.INT32, len(numbers), struct.pack(f"<{len(numbers)}i", *numbers))


def dump(metadata: Mapping[str, Value], tensors: Sequence[Tensor]) -> bytes:
    """Write a file with this metadata and these tensors, both in the order given, as bytes."""
    head = _MAGIC + struct.pack("<IQQ", _VERSION, len(tensors), len(metadata))
    values = b"".join(_string(key) + struct.pack("<I", value.type) + value.data for key, value in metadata.items())
    return _padded(head + values + _records(tensors)) + b"".join(_padded(tensor.data) for tensor in tensors)


def _records(tensors: Sequence[Tensor]) -> bytes:
    """Describe each tensor; offsets count from the start of the first tensor's bytes."""
    records = bytearray()
    offset = 0
    for tensor in tensors:
        rank = len(tensor.shape)
        records += _string(tensor.name) + struct.pack(f"<I{rank}Q", rank, *reversed(tensor.shape))
        records += struct.pack("<IQ", _TENSOR_TYPES[tensor.dtype], offset)
        offset += len(_padded(tensor.data))
    return bytes(records)


def _string(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def _array(kind: _Type, count: int, items: bytes) -> Value:
    return Value(_Type.ARRAY, struct.pack("<IQ", kind, count) + items)


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % ALIGNMENT)
