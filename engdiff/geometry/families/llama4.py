"""Llama 4: one expert of many and a shared one, chunked attention in three layers of four (transformers 4.57)."""

from __future__ import annotations

from engdiff.geometry.config import Config
from engdiff.geometry.families import parts, vision
from engdiff.geometry.model import Geometry, Layer

WHOLE_EVERY = 4
"""Every fourth layer looks at the whole text, without rotary positions (``no_rope_layers``)."""


def llama4(config: Config) -> Geometry:
    """With its vision tower."""
    size, number = config.integer("hidden_size"), config.integer("num_local_experts")
    inner = config.integer("intermediate_size")
    block = (
        parts.router(number, size),
        *parts.experts(number, size, inner),
        *parts.mlp(size, inner, prefix="shared_expert."),
    )
    plain = parts.mlp(size, config.integer("intermediate_size_mlp"))
    step = config.optional("interleave_moe_layer_step") or 1
    layers = []
    for at in range(parts.count(config)):
        chunk = None if (at + 1) % WHOLE_EVERY == 0 else config.integer("attention_chunk_size")
        inside = block if (at + 1) % step == 0 else plain
        tensors = parts.around(config, parts.attention(config), inside)
        layers.append(Layer(tensors, (parts.keys_and_values(config, chunk=chunk),)))
    return parts.decoder(config, layers, tower=vision.llama4(config))
