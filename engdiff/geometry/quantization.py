"""What a quantised matrix weighs: its elements and its scales, by the scheme that a checkpoint states."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Protocol

from engdiff.errors import UsageError
from engdiff.geometry.tensors import Tensor

ELEMENT_BYTES: Mapping[str, int] = {
    "float32": 4,
    "bfloat16": 2,
    "float16": 2,
    "half": 2,
    "float8_e4m3fn": 1,
    "float8_e5m2": 1,
    "int8": 1,
    "uint8": 1,
}
"""Bytes of one element by its type."""


def element_bytes(name: str) -> int:
    """Bytes of one element.

    Raises :class:`~engdiff.errors.UsageError` for a type that is not known.
    """
    if name not in ELEMENT_BYTES:
        raise UsageError(f"`{name}` is no element type that is known", f"known are {', '.join(ELEMENT_BYTES)}")
    return ELEMENT_BYTES[name]


class Scheme(Protocol):
    """How the matrix of a linear layer is kept."""

    def matrix(self, rows: int, columns: int) -> int:
        """Bytes of a matrix of this shape, with its scales."""
        ...


@dataclass(frozen=True)
class BlockScaled:
    """FP8 with a float32 scale for each block (DeepSeek's form)."""

    block: tuple[int, int]

    def matrix(self, rows: int, columns: int) -> int:
        """One byte an element."""
        return rows * columns + 4 * -(-rows // self.block[0]) * -(-columns // self.block[1])


@dataclass(frozen=True)
class RowScaled:
    """One byte an element and a float32 scale for each row; ``rows=False``: one for the matrix."""

    rows: bool = True

    def matrix(self, rows: int, columns: int) -> int:
        """One byte an element."""
        return rows * columns + 4 * (rows if self.rows else 1)


@dataclass(frozen=True)
class Grouped:
    """Four or eight bits with a 16-bit scale, and a zero point of as many bits, for each group of a row."""

    bits: int
    group: int
    zeros: bool

    def matrix(self, rows: int, columns: int) -> int:
        """Packed elements, scales, zero points."""
        groups = rows * -(-columns // self.group)
        return rows * columns * self.bits // 8 + 2 * groups + (groups * self.bits // 8 if self.zeros else 0)


@dataclass(frozen=True)
class Microscaled:
    """Four bits with an 8-bit scale for each group of a row: MXFP4 (32) and NVFP4 (16)."""

    group: int

    def matrix(self, rows: int, columns: int) -> int:
        """Packed elements and scales."""
        return rows * columns // 2 + rows * -(-columns // self.group)


@dataclass(frozen=True)
class Quantization:
    """A scheme, and which matrices it leaves as they are."""

    name: str
    scheme: Scheme
    kept: re.Pattern[str]

    def applies(self, tensor: Tensor) -> bool:
        """Whether this matrix is quantised."""
        return tensor.linear and not self.kept.search(tensor.name)


def quantization(content: Mapping[str, Any]) -> Quantization | None:
    """The quantisation that a ``config.json`` states; ``None`` for a checkpoint that is not quantised.

    Raises :class:`~engdiff.errors.UsageError` for a method that is not understood, by its name.
    """
    stated = content.get("quantization_config")
    if not stated:
        return None
    name = str(stated.get("quant_method"))
    if name not in METHODS:
        raise UsageError(f"the quantisation `{name}` is not understood", f"understood are {', '.join(sorted(METHODS))}")
    return Quantization(name, METHODS[name](stated), kept(stated))


def _fp8(stated: Mapping[str, Any]) -> Scheme:
    block = stated.get("weight_block_size")
    return BlockScaled((int(block[0]), int(block[1]))) if block else RowScaled(rows=False)


def _grouped(stated: Mapping[str, Any]) -> Scheme:
    bits = int(stated.get("bits") or stated.get("w_bit") or 4)
    return Grouped(bits, int(stated.get("group_size") or stated.get("q_group_size") or 128), zeros=True)


def _mxfp4(_: Mapping[str, Any]) -> Scheme:
    return Microscaled(32)


METHODS = {
    "fp8": _fp8,
    "mxfp4": _mxfp4,
    "awq": _grouped,
    "gptq": _grouped,
}
"""By ``quant_method``."""


def kept(stated: Mapping[str, Any]) -> re.Pattern[str]:
    """Names of matrices that are not quantised: a checkpoint names modules, ours are called by their last words."""
    names: Sequence[str] = stated.get("modules_to_not_convert") or stated.get("ignored_layers") or ()
    words = {ATTENTION if name.endswith("self_attn") else re.escape(name.rsplit(".", 1)[-1]) for name in names}
    return re.compile(rf"(^|\.)({'|'.join(sorted(words))})(\.|$)" if words else "(?!)")


ATTENTION = "q_proj|k_proj|v_proj|o_proj"
"""What a checkpoint means that leaves all of ``self_attn`` as it is."""


def tensor_bytes(tensor: Tensor, shape: Sequence[int], element: int, quantised: Quantization | None) -> int:
    """Bytes of a tensor of this shape; ``element``: bytes of an element where nothing else is said."""
    if quantised is not None and quantised.applies(tensor):
        *several, rows, columns = shape
        return prod(several) * quantised.scheme.matrix(rows, columns)
    return prod(shape) * (element_bytes(tensor.element) if tensor.element else element)
