"""A minimal writer of safetensors files.

Format (README of the safetensors project): the length of the header as a little-endian unsigned 64-bit integer, the
header as JSON, then the tensors' bytes with no gaps. The header gives each tensor's dtype, shape and offsets from the
end of the header; it is padded with spaces to a multiple of 8 bytes, so that the tensors start aligned.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence

from engdiff.models.tensors import Tensor

_ALIGNMENT = 8  # bytes


def dump(tensors: Sequence[Tensor]) -> bytes:
    """Write a file with these tensors, in this order, as bytes; marked as PyTorch's, which transformers asks for."""
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    offset = 0
    for tensor in tensors:
        end = offset + len(tensor.data)
        header[tensor.name] = {"dtype": tensor.dtype, "shape": tensor.shape, "data_offsets": (offset, end)}
        offset = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % _ALIGNMENT)
    return struct.pack("<Q", len(text)) + text + b"".join(tensor.data for tensor in tensors)
