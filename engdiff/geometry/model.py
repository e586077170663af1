"""A model as a list of layers, each with its tensors and with what it keeps of a token."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from engdiff.geometry.cache import Cache
from engdiff.geometry.config import Config, read
from engdiff.geometry.tensors import Tensor


@dataclass(frozen=True)
class Layer:
    """One block of a decoder."""

    tensors: tuple[Tensor, ...]
    caches: tuple[Cache, ...] = ()
    """What it keeps: nothing (a bare feed-forward block), one, or two (latent vectors and their index)."""


@dataclass(frozen=True)
class Geometry:
    """All that the size of a model follows from."""

    config: Config
    layers: tuple[Layer, ...]
    before: tuple[Tensor, ...]
    """Embeddings."""

    after: tuple[Tensor, ...]
    """Final norm and output head; no head where it is tied to the embeddings."""

    not_counted: tuple[str, ...] = ()
    """Parts of the checkpoint that are not among the tensors, in words: a vision tower, layers that predict ahead."""

    @property
    def tensors(self) -> Iterator[Tensor]:
        """Every tensor, in order."""
        yield from self.before
        for layer in self.layers:
            yield from layer.tensors
        yield from self.after

    @property
    def parameters(self) -> int:
        """Elements of all tensors."""
        return sum(tensor.elements for tensor in self.tensors)

    @property
    def caches(self) -> Iterator[Cache]:
        """What every layer keeps, in order."""
        for layer in self.layers:
            yield from layer.caches


def geometry(content: Mapping[str, Any]) -> Geometry:
    """The geometry of the model with this ``config.json``.

    Raises :class:`~engdiff.errors.UsageError` for an architecture that is not understood, by its name, and for a field
    that is missing.
    """
    from engdiff.geometry.families import family

    config = read(content)
    return family(config)(config)
