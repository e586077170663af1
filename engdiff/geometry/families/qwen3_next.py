"""Qwen3-Next: gated delta rule in three layers of four, gated attention in the fourth (transformers 4.57)."""

from __future__ import annotations

from engdiff.geometry.cache import Cache, StateCache
from engdiff.geometry.config import Config
from engdiff.geometry.families import parts
from engdiff.geometry.families.moe import sparse
from engdiff.geometry.families.parts import Tensors
from engdiff.geometry.model import Geometry, Layer
from engdiff.geometry.tensors import Split, Tensor

FULL_EVERY = 4
"""Where the file names no other number (``full_attention_interval``)."""


def qwen3_next(config: Config) -> Geometry:
    """A state in most layers; the layers that predict ahead are not counted."""
    kinds = config.texts("layer_types")
    every = config.optional("full_attention_interval") or FULL_EVERY
    layers = []
    for at in range(parts.count(config)):
        whole = kinds[at] == "full_attention" if kinds else (at + 1) % every == 0
        mixer, cache = full_attention(config) if whole else delta_rule(config)
        inside = sparse_block(config) if sparse(config, at) else plain(config)
        layers.append(Layer(parts.around(config, mixer, inside), (cache,)))
    return parts.decoder(config, layers, not_counted=("layers that predict several tokens ahead",))


def full_attention(config: Config) -> tuple[Tensors, Cache]:
    """Attention with a gate for its output, and norms of heads."""
    tensors = (*parts.attention(config, gated=True), *parts.head_norms(config))
    return tensors, parts.keys_and_values(config)


def delta_rule(config: Config) -> tuple[Tensors, Cache]:
    """Linear attention: queries, keys, values and a gate in one projection, a convolution, and a state per head."""
    size = config.integer("hidden_size")
    key_heads, value_heads = config.integer("linear_num_key_heads"), config.integer("linear_num_value_heads")
    key_dim, value_dim = config.integer("linear_key_head_dim"), config.integer("linear_value_head_dim")
    keys, values = key_heads * key_dim, value_heads * value_dim
    kernel, channels = config.integer("linear_conv_kernel_dim"), 2 * keys + values
    tensors = (
        *parts.linear("in_proj_qkvz", 2 * keys + 2 * values, size, Split.EVEN),
        *parts.linear("in_proj_ba", 2 * value_heads, size, Split.EVEN),
        Tensor("conv1d.weight", (channels, kernel), Split.EVEN),
        Tensor("dt_bias", (value_heads,), Split.EVEN),
        Tensor("A_log", (value_heads,), Split.EVEN, element="float32"),
        parts.norm("norm.weight", value_dim),
        *parts.back("out_proj", size, values),
    )
    return tensors, StateCache("state", ((channels, kernel - 1), (value_heads, key_dim, value_dim)), delta_rule=True)


def sparse_block(config: Config) -> Tensors:
    """A router, experts, and a shared one with a gate of its own."""
    size, number = config.integer("hidden_size"), config.integer("num_experts")
    return (
        parts.router(number, size),
        *parts.experts(number, size, config.integer("moe_intermediate_size")),
        *parts.mlp(size, config.integer("shared_expert_intermediate_size"), prefix="shared_expert."),
        Tensor("shared_expert_gate.weight", (1, size)),
    )


def plain(config: Config) -> Tensors:
    """A feed-forward block without experts."""
    return parts.mlp(config.integer("hidden_size"), config.integer("intermediate_size"))
