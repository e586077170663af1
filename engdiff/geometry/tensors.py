"""A tensor of a checkpoint, and how tensor parallelism divides it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from math import prod


class Split(Enum):
    """How the ranks of a tensor-parallel group share a tensor (Megatron's column, row and vocabulary splits)."""

    WHOLE = "every rank holds all of it"
    EVEN = "each rank holds its part"
    KV_HEADS = "as EVEN, but a rank holds one whole head at least"
    VOCABULARY = "each rank holds its rows; an engine pads them"
    EXPERTS = "as EVEN, or each rank holds some of the experts whole"


@dataclass(frozen=True)
class Tensor:
    """One tensor of the checkpoint."""

    name: str
    shape: tuple[int, ...]
    split: Split = Split.WHOLE
    axis: int = 0
    """Of ``shape``: along which it is divided. Experts that are held whole are divided along the first."""

    heads: int = 0
    """Of a ``KV_HEADS`` tensor: how many heads its first dimension is made of."""

    linear: bool = False
    """Whether it is the matrix of a linear layer, which is what quantisation replaces."""

    element: str | None = None
    """Element type where it is not the checkpoint's own: routers and gates in float32."""

    @property
    def elements(self) -> int:
        """Elements in the checkpoint."""
        return prod(self.shape)

    def on_rank(self, ranks: int, *, rows_of: int = 1, experts_whole: bool = False) -> tuple[int, ...]:
        """The shape that one of ``ranks`` holds.

        ``rows_of``: an engine pads the vocabulary to a multiple of this. ``experts_whole``: expert parallelism.
        """
        axis = 0 if experts_whole and self.split is Split.EXPERTS else self.axis
        length = self._length(self.shape[axis], ranks, rows_of)
        return (*self.shape[:axis], length, *self.shape[axis + 1 :])

    def _length(self, whole: int, ranks: int, rows_of: int) -> int:
        if self.split is Split.WHOLE:
            return whole
        if self.split is Split.KV_HEADS:
            return whole // self.heads * max(1, self.heads // ranks)
        if self.split is Split.VOCABULARY:
            whole = -(-whole // rows_of) * rows_of
        return -(-whole // ranks)
