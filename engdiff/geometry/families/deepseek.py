"""DeepSeek V2, V3, V3.2 and Kimi K2: latent attention, experts behind some dense layers (the models' own code)."""

from __future__ import annotations

from engdiff.geometry.cache import Cache, TokenCache
from engdiff.geometry.config import Config
from engdiff.geometry.families import parts
from engdiff.geometry.families.parts import Tensors
from engdiff.geometry.model import Geometry, Layer
from engdiff.geometry.tensors import Split, Tensor


def deepseek(config: Config) -> Geometry:
    """Every rank keeps the whole latent vector; with sparse attention an index of every token as well."""
    attention = (*latent_attention(config), *indexer(config))
    plain = parts.mlp(config.integer("hidden_size"), config.integer("intermediate_size"))
    block = sparse_block(config)
    first = config.integer("first_k_dense_replace")
    layers = [
        Layer(parts.around(config, attention, plain if at < first else block), caches(config))
        for at in range(parts.count(config))
    ]
    return parts.decoder(config, layers, not_counted=parts.predicts_ahead(config))


def caches(config: Config) -> tuple[Cache, ...]:
    """One latent vector with the rotary part of the key; the index keeps one head more."""
    latent = TokenCache("mla", 1, config.integer("kv_lora_rank") + config.integer("qk_rope_head_dim"), 0, divided=False)
    index = config.optional("index_head_dim")
    return (latent, TokenCache("indexer", 1, index, 0, divided=False)) if index else (latent,)


def latent_attention(config: Config) -> Tensors:
    """Queries, keys and values through vectors of low rank; what maps out of them is divided by heads."""
    size, heads = config.integer("hidden_size"), config.integer("num_attention_heads")
    rank, rope = config.integer("kv_lora_rank"), config.integer("qk_rope_head_dim")
    nope, value = config.integer("qk_nope_head_dim"), config.integer("v_head_dim")
    low = config.optional("q_lora_rank")
    queries: Tensors = (
        (
            *parts.linear("q_a_proj", low, size, Split.WHOLE),
            parts.norm("q_a_layernorm.weight", low),
            *parts.linear("q_b_proj", heads * (nope + rope), low, Split.EVEN),
        )
        if low
        else parts.linear("q_proj", heads * (nope + rope), size, Split.EVEN)
    )
    return (
        *queries,
        *parts.linear("kv_a_proj_with_mqa", rank + rope, size, Split.WHOLE),
        parts.norm("kv_a_layernorm.weight", rank),
        *parts.linear("kv_b_proj", heads * (nope + value), rank, Split.EVEN),
        *parts.back("o_proj", size, heads * value),
    )


def indexer(config: Config) -> Tensors:
    """What chooses the tokens that sparse attention looks at (V3.2); every rank has all of it."""
    dim = config.optional("index_head_dim")
    if not dim:
        return ()
    size, heads = config.integer("hidden_size"), config.integer("index_n_heads")
    return (
        *parts.linear("indexer.wq_b", heads * dim, config.integer("q_lora_rank"), Split.WHOLE),
        *parts.linear("indexer.wk", dim, size, Split.WHOLE),
        Tensor("indexer.k_norm.weight", (dim,), element="float32"),
        Tensor("indexer.k_norm.bias", (dim,), element="float32"),
        Tensor("indexer.weights_proj.weight", (heads, size)),
    )


def sparse_block(config: Config) -> Tensors:
    """A router with its correction, experts, and a shared one."""
    size, number = config.integer("hidden_size"), config.integer("n_routed_experts")
    inner = config.integer("moe_intermediate_size")
    correction = (
        (Tensor("gate.e_score_correction_bias", (number,), element="float32"),)
        if config.fields.get("topk_method") == "noaux_tc"
        else ()
    )
    return (
        parts.router(number, size),
        *correction,
        *parts.experts(number, size, inner),
        *parts.mlp(size, inner * (config.optional("n_shared_experts") or 0), prefix="shared_experts."),
    )
