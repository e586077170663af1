"""Decoders with experts: Mixtral, Qwen 3, GLM 4.5, gpt-oss, MiniMax M2 (transformers 4.57 and the models' own code)."""

from __future__ import annotations

from engdiff.geometry.config import Config
from engdiff.geometry.families import parts
from engdiff.geometry.families.dense import window
from engdiff.geometry.families.parts import Tensors
from engdiff.geometry.model import Geometry, Layer
from engdiff.geometry.tensors import Split, Tensor


def mixtral(config: Config) -> Geometry:
    """Experts in every layer."""
    size, number = config.integer("hidden_size"), config.integer("num_local_experts")
    block = (parts.router(number, size), *parts.experts(number, size, config.integer("intermediate_size")))
    return of_layers(config, [parts.around(config, parts.attention(config), block)] * parts.count(config))


def qwen3(config: Config) -> Geometry:
    """Experts in every layer but those that the file excepts; queries and keys normalised head by head."""
    size, number = config.integer("hidden_size"), config.integer("num_experts")
    bias = config.flag("attention_bias", default=False)
    attention = (*parts.attention(config, bias=bias), *parts.head_norms(config))
    block = (parts.router(number, size), *parts.experts(number, size, config.integer("moe_intermediate_size")))
    plain = parts.mlp(size, config.integer("intermediate_size"))
    return of_layers(
        config,
        [parts.around(config, attention, block if sparse(config, at) else plain) for at in range(parts.count(config))],
    )


def sparse(config: Config, at: int) -> bool:
    """Whether Qwen has experts in this layer."""
    excepted = config.fields.get("mlp_only_layers") or ()
    step = config.optional("decoder_sparse_step") or 1
    return at not in excepted and (at + 1) % step == 0


def glm4(config: Config) -> Geometry:
    """First some dense layers, then experts with a shared one; queries, keys and values have a bias."""
    size, number = config.integer("hidden_size"), config.integer("n_routed_experts")
    inner = config.integer("moe_intermediate_size")
    bias = config.flag("attention_bias", default=False)
    norms = parts.head_norms(config) if config.flag("use_qk_norm", default=False) else ()
    attention = (*parts.attention(config, bias=bias, output_bias=False), *norms)
    block = (
        parts.router(number, size, element="float32"),
        Tensor("gate.e_score_correction_bias", (number,), element="float32"),
        *parts.experts(number, size, inner),
        *parts.mlp(size, inner * config.integer("n_shared_experts"), prefix="shared_experts."),
    )
    plain = parts.mlp(size, config.integer("intermediate_size"))
    first = config.integer("first_k_dense_replace")
    layers = [parts.around(config, attention, plain if at < first else block) for at in range(parts.count(config))]
    return of_layers(config, layers, not_counted=parts.predicts_ahead(config))


def gpt_oss(config: Config) -> Geometry:
    """Experts with biases in every layer, windows in every second, and a sink for each head."""
    size, number = config.integer("hidden_size"), config.integer("num_local_experts")
    heads = config.integer("num_attention_heads")
    attention = (*parts.attention(config, bias=True), Tensor("sinks", (heads,), Split.EVEN))
    block = (
        parts.router(number, size),
        Tensor("router.bias", (number,)),
        *parts.experts(number, size, config.integer("intermediate_size"), bias=True),
    )
    return of_layers(config, [parts.around(config, attention, block)] * parts.count(config))


def minimax_m2(config: Config) -> Geometry:
    """Experts in every layer; queries and keys normalised over all heads at once."""
    size, number = config.integer("hidden_size"), config.integer("num_local_experts")
    heads, kv, dim = config.integer("num_attention_heads"), config.kv_heads, config.head_dim
    norms = (
        Tensor("q_norm.weight", (heads * dim,), Split.EVEN),
        Tensor("k_norm.weight", (kv * dim,), Split.KV_HEADS, heads=kv),
    )
    block = (
        parts.router(number, size, element="float32"),
        Tensor("e_score_correction_bias", (number,), element="float32"),
        *parts.experts(number, size, config.integer("intermediate_size")),
    )
    layers = [parts.around(config, parts.attention(config), norms, block)] * parts.count(config)
    return of_layers(config, layers, not_counted=parts.predicts_ahead(config))


def of_layers(config: Config, layers: list[Tensors], *, not_counted: tuple[str, ...] = ()) -> Geometry:
    """A decoder whose layers all keep keys and values."""
    made = [
        Layer(tensors, (parts.keys_and_values(config, window=window(config, at)),)) for at, tensors in enumerate(layers)
    ]
    return parts.decoder(config, made, not_counted=not_counted)
