"""Gemma 2 and 3: windows in most layers, four norms, the head tied to the embeddings (transformers 4.57)."""

from __future__ import annotations

from engdiff.geometry.config import Config
from engdiff.geometry.families import parts, vision
from engdiff.geometry.families.parts import Tensors
from engdiff.geometry.model import Geometry, Layer

ALTERNATE = 2
"""Gemma 2: every second layer looks at the whole text."""

PATTERN = 6
"""Gemma 3: every sixth layer does, where the file names no other number (``sliding_window_pattern``)."""


def gemma2(config: Config) -> Geometry:
    """Windows in every second layer."""
    return gemma(config, (), ALTERNATE)


def gemma3(config: Config) -> Geometry:
    """Windows in five layers of six, norms of heads, and a vision tower."""
    every = config.optional("sliding_window_pattern") or PATTERN
    return gemma(config, parts.head_norms(config), every, tower=vision.siglip(config))


def gemma(config: Config, norms: Tensors, every: int, tower: Tensors = ()) -> Geometry:
    """Layers with a norm before and behind each of their two parts."""
    size = config.integer("hidden_size")
    bias = config.flag("attention_bias", default=False)
    outer = (
        parts.norm("pre_feedforward_layernorm.weight", size),
        parts.norm("post_feedforward_layernorm.weight", size),
    )
    inner = parts.mlp(size, config.integer("intermediate_size"))
    tensors = parts.around(config, parts.attention(config, bias=bias), norms, inner, outer)
    kinds = config.texts("layer_types")
    layers = []
    for at in range(parts.count(config)):
        whole = kinds[at] == "full_attention" if kinds else (at + 1) % every == 0
        window = None if whole else config.integer("sliding_window")
        layers.append(Layer(tensors, (parts.keys_and_values(config, window=window),)))
    return parts.decoder(config.with_defaults(tie_word_embeddings=True), layers, tower=tower)
