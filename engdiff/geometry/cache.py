"""What a layer keeps of the tokens that it has seen."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Literal

Kind = Literal["full", "sliding window", "chunked", "mla", "indexer", "state", "cross"]


@dataclass(frozen=True)
class TokenCache:
    """Keys and values, or one latent vector, of every token or of those in a window."""

    kind: Kind
    heads: int
    """Heads of keys; 1 for a latent vector, of which every rank keeps all."""

    key_dim: int
    value_dim: int
    """Elements of one head; 0 where keys and values are one vector."""

    window: int | None = None
    """Tokens that a layer looks back on (``sliding window``), or the chunk that it stays within (``chunked``)."""

    divided: bool = True
    """Whether tensor parallelism divides the heads; a latent vector is replicated."""

    def elements(self, ranks: int) -> int:
        """Elements that one of ``ranks`` keeps of one token in this layer."""
        heads = max(1, self.heads // ranks) if self.divided else self.heads
        return heads * (self.key_dim + self.value_dim)


@dataclass(frozen=True)
class StateCache:
    """A state of fixed size, whatever the length of the text."""

    kind: Kind
    divided: tuple[tuple[int, ...], ...]
    """Shapes that tensor parallelism divides along their first dimension: convolution, then recurrence."""

    delta_rule: bool = False
    """Whether the recurrence is a gated delta rule, which kernels compute in chunks; else Mamba's."""

    def sizes(self, ranks: int) -> tuple[int, ...]:
        """Elements of each shape on one of ``ranks``."""
        return tuple(-(-prod(shape) // ranks) for shape in self.divided)


Cache = TokenCache | StateCache
