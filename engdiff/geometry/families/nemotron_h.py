"""Nemotron-H: layers of Mamba-2, feed-forward or attention, in the order of a pattern (the models' own code)."""

from __future__ import annotations

from engdiff.errors import UsageError
from engdiff.geometry.cache import StateCache
from engdiff.geometry.config import Config
from engdiff.geometry.families import parts
from engdiff.geometry.model import Geometry, Layer
from engdiff.geometry.tensors import Split, Tensor


def nemotron_h(config: Config) -> Geometry:
    """``M`` a state, ``-`` a feed-forward block, ``*`` attention; one norm before each."""
    known = {"M": mamba, "-": feed_forward, "*": attention}
    pattern = str(config.fields.get("hybrid_override_pattern") or "")
    unknown = sorted(set(pattern) - known.keys())
    if not pattern or unknown:
        raise UsageError(
            f"`hybrid_override_pattern` has {', '.join(unknown) or 'nothing'}, and M, - and * are understood",
            "this variant of Nemotron-H is not known yet",
        )
    return parts.decoder(config, [known[one](config) for one in pattern])


def attention(config: Config) -> Layer:
    """Grouped-query attention; the size of a head has a name of its own."""
    fields = {**config.fields, "head_dim": config.optional("head_dim", "attention_head_dim")}
    named = Config(fields, config.architecture, config.whole)
    tensors = parts.attention(named, bias=config.flag("attention_bias", default=False))
    return Layer((before(config), *tensors), (parts.keys_and_values(named),))


def feed_forward(config: Config) -> Layer:
    """A feed-forward block without a gate."""
    size, inner = config.integer("hidden_size"), config.integer("intermediate_size")
    return Layer((before(config), *parts.mlp(size, inner, gated=False, bias=config.flag("mlp_bias", default=False))))


def mamba(config: Config) -> Layer:
    """A Mamba-2 mixer: a projection in, a convolution, the recurrence's parameters, a norm, and a projection out."""
    size, heads = config.integer("hidden_size"), config.integer("mamba_num_heads")
    inner = heads * config.integer("mamba_head_dim")
    state, groups = config.integer("ssm_state_size"), config.integer("n_groups")
    kernel = config.integer("conv_kernel")
    channels = inner + 2 * groups * state
    bias = config.flag("mamba_proj_bias", default=False)
    tensors = (
        *parts.linear("in_proj", inner + channels + heads, size, Split.EVEN, bias=bias),
        Tensor("conv1d.weight", (channels, kernel), Split.EVEN),
        *((Tensor("conv1d.bias", (channels,), Split.EVEN),) if config.flag("use_conv_bias", default=True) else ()),
        Tensor("A_log", (heads,), Split.EVEN, element="float32"),
        Tensor("D", (heads,), Split.EVEN),
        Tensor("dt_bias", (heads,), Split.EVEN),
        Tensor("norm.weight", (inner,), Split.EVEN),
        *parts.back("out_proj", size, inner, bias=bias),
    )
    cache = StateCache("state", ((channels, kernel - 1), (heads, config.integer("mamba_head_dim"), state)))
    return Layer((before(config), *tensors), (cache,))


def before(config: Config) -> Tensor:
    """The norm of a layer."""
    return parts.norm("norm.weight", config.integer("hidden_size"))
