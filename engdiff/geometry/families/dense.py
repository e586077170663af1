"""Dense decoders: Llama, Mistral, Phi-3 and 4, Qwen 2 and 3 (transformers 4.57, models/llama, phi3, qwen2, qwen3)."""

from __future__ import annotations

from engdiff.geometry.config import Config
from engdiff.geometry.families import parts
from engdiff.geometry.families.parts import Tensors
from engdiff.geometry.model import Geometry, Layer


def llama(config: Config) -> Geometry:
    """No norms of heads; biases only where the file says so."""
    bias = config.flag("attention_bias", default=False)
    return dense(config, parts.attention(config, bias=bias))


def qwen2(config: Config) -> Geometry:
    """Queries, keys and values have a bias, the output has none."""
    return dense(config, parts.attention(config, bias=True, output_bias=False))


def qwen3(config: Config) -> Geometry:
    """Queries and keys are normalised head by head."""
    bias = config.flag("attention_bias", default=False)
    return dense(config, (*parts.attention(config, bias=bias), *parts.head_norms(config)))


def dense(config: Config, attention: Tensors) -> Geometry:
    """A decoder of equal layers."""
    size, inner = config.integer("hidden_size"), config.integer("intermediate_size")
    mlp = parts.mlp(size, inner, bias=config.flag("mlp_bias", default=False))
    tensors = parts.around(config, attention, mlp)
    layers = [
        Layer(tensors, (parts.keys_and_values(config, window=window(config, at)),)) for at in range(parts.count(config))
    ]
    return parts.decoder(config, layers)


def window(config: Config, at: int) -> int | None:
    """The window of a layer. Qwen's files state one that acts only behind a switch and a number of layers."""
    stated = config.optional("sliding_window")
    kinds = config.texts("layer_types")
    if kinds:
        return stated if kinds[at] == "sliding_attention" else None
    if "use_sliding_window" in config.fields:
        return stated if config.flag("use_sliding_window", default=False) and at >= last_full(config) else None
    return stated


def last_full(config: Config) -> int:
    """Up to this layer Qwen looks at the whole text (transformers 4.57, models/qwen2/configuration_qwen2.py)."""
    return config.optional("max_window_layers") or 0
