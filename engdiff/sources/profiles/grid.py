"""Which scenarios are shipped: the main GPUs, and one model of each shape."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from engdiff.knowledge.gpus import Pretended, gpu
from engdiff.references import ANY

GPUS = ("a100-80gb", "h100-80gb", "h200", "b200", "l4")


@dataclass(frozen=True)
class Shipped:
    """A scenario: a device, a model, and the words after ``--``; no device and no model where they decide nothing."""

    device: Pretended | None
    model: str
    arguments: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """Its name in a profile: ``h100-80gb:8 deepseek-v3 --tensor-parallel-size 8``."""
        return " ".join(filter(None, (self.text, self.model, *self.arguments)))

    @property
    def text(self) -> str:
        """The device as a reference names it."""
        return self.device.text if self.device else ANY


MODELS: Mapping[str, int] = {
    "llama-3.1-8b": 1,
    "qwen3-30b-a3b": 1,
    "gemma-3-27b": 1,
    "qwen3-next": 4,
    "deepseek-v3": 8,
}
"""Models and how many GPUs share each: dense, mixture of experts, sliding window, hybrid, latent attention."""


def scenarios(*, by_device: bool = True) -> tuple[Shipped, ...]:
    """Every shipped scenario, by GPU; one alone for an engine whose defaults follow from no device."""
    if not by_device:
        return (Shipped(None, ""),)
    return tuple(_scenario(key, model, count) for key in GPUS for model, count in MODELS.items())


def _scenario(key: str, model: str, count: int) -> Shipped:
    words = () if count == 1 else (TENSOR_PARALLEL, str(count))
    return Shipped(Pretended(gpu(key), count), model, words)


TENSOR_PARALLEL = "--tensor-parallel-size"
"""As vLLM and SGLang both write it."""
