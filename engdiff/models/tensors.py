"""Tensors as named bytes, and the few ways in which the tiny model fills and reorders them.

There are millions of weights, so nothing here handles them one by one: whole rows and whole byte planes move at once.
"""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Dtype = Literal["F16", "F32"]

ITEM_BYTES: dict[Dtype, int] = {"F16": 2, "F32": 4}
_ONE: dict[Dtype, bytes] = {"F16": struct.pack("<e", 1.0), "F32": struct.pack("<f", 1.0)}
_LEVELS = 256  # a weight is one of this many evenly spaced values: one random byte each


@dataclass(frozen=True)
class Tensor:
    """One named tensor: ``shape`` is rows first, as torch prints it; ``data`` is row-major and little-endian."""

    name: str
    shape: tuple[int, ...]
    dtype: Dtype
    data: bytes

    def __post_init__(self) -> None:
        expected = math.prod(self.shape) * ITEM_BYTES[self.dtype]
        if len(self.data) != expected:
            raise ValueError(f"{self.name}: {len(self.data)} bytes, but {self.shape} in {self.dtype} takes {expected}")

    def rows(self) -> list[bytes]:
        """Cut the bytes into rows: one for each index of the first dimension."""
        size = len(self.data) // self.shape[0]
        return [self.data[start : start + size] for start in range(0, len(self.data), size)]


def ones(name: str, length: int, dtype: Dtype) -> Tensor:
    """Make a vector of ones, shape ``(length,)``."""
    return Tensor(name, (length,), dtype, _ONE[dtype] * length)


def uniform(name: str, shape: tuple[int, ...], deviation: float, seed: int) -> Tensor:
    """Draw F16 weights evenly around zero, with the given standard deviation, from ``seed`` and ``name`` alone.

    The random bytes are SHAKE-256 output (FIPS 202), so they are the same on every machine and Python, and a tensor
    does not depend on which others were made before it.
    """
    bound = deviation * math.sqrt(3)  # a uniform distribution on [-b, b] has standard deviation b / sqrt(3)
    steps = [bound * (2 * level / (_LEVELS - 1) - 1) for level in range(_LEVELS)]
    table = struct.pack(f"<{_LEVELS}e", *steps)
    levels = hashlib.shake_256(f"{seed}/{name}".encode()).digest(math.prod(shape))
    data = bytearray(2 * len(levels))
    data[0::2] = levels.translate(table[0::2])  # all low bytes, then all high bytes
    data[1::2] = levels.translate(table[1::2])
    return Tensor(name, shape, "F16", bytes(data))


def keep_rows(tensor: Tensor, kept: Iterable[int]) -> Tensor:
    """Zero every row except ``kept``."""
    chosen = frozenset(kept)
    rows = tensor.rows()
    zero = bytes(len(rows[0]))
    data = b"".join(row if index in chosen else zero for index, row in enumerate(rows))
    return Tensor(tensor.name, tensor.shape, tensor.dtype, data)


def interleave_halves(tensor: Tensor, heads: int) -> Tensor:
    """Reorder the rows of a query or key projection, shape ``(heads * head_size, hidden)``, within each head.

    A rotary embedding turns pairs of rows. Hugging Face pairs row ``i`` of a head with row ``i + head_size / 2``;
    GGUF's ``llama`` architecture pairs ``2 * i`` with ``2 * i + 1``. This goes from the first order to the second.
    """
    rows = tensor.rows()
    size = len(rows) // heads
    half = size // 2
    order = (head * size + part * half + index for head in range(heads) for index in range(half) for part in range(2))
    return Tensor(tensor.name, tensor.shape, tensor.dtype, b"".join(rows[row] for row in order))
