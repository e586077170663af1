"""Count a model's parameters from its configuration: the test's own arithmetic, one short formula per family.

Each formula adds the sizes of the tensors that the family's public checkpoints hold. Block-scaled FP8 checkpoints also
hold one scale per block of 128 x 128 weights, which the hub counts as parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import ceil
from typing import Any

Config = Mapping[str, Any]
Matrix = tuple[int, int, int]  # how many of them, rows, columns


def parts(config: Config) -> dict[str, int]:
    """The parameters of a published checkpoint by part; the first part is the language model."""
    text = config.get("text_config", config)
    found = {"model": FAMILIES[config["model_type"]](text)}
    if config["model_type"] in PREDICTION and config.get("num_nextn_predict_layers", 1):
        found["prediction"] = PREDICTION[config["model_type"]](config)
    if "vision_config" in config:
        found["vision"] = VISION[config["model_type"]](config["vision_config"], text["hidden_size"])
    if "weight_block_size" in config.get("quantization_config", {}):
        found["scales"] = sum(block_scales(*each) for each in BLOCK_SCALED[config["model_type"]](config))
    return found


def linear(rows: int, columns: int, bias: bool = False) -> int:
    return rows * columns + (rows if bias else 0)


def block_scales(times: int, rows: int, columns: int, block: int = 128) -> int:
    return times * ceil(rows / block) * ceil(columns / block)


def gated(hidden: int, inner: int) -> int:
    """A gated feed-forward block: gate, up, down."""
    return 3 * hidden * inner


def head_size(config: Config) -> int:
    return int(config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"])


def attention(config: Config, qkv_bias: bool = False, out_bias: bool = False, gate: bool = False) -> int:
    """Grouped-query attention; ``gate`` doubles the query projection with an output gate."""
    hidden, heads, kv_heads = config["hidden_size"], config["num_attention_heads"], config["num_key_value_heads"]
    size = head_size(config)
    query = linear((2 if gate else 1) * heads * size, hidden, qkv_bias)
    return query + 2 * linear(kv_heads * size, hidden, qkv_bias) + linear(hidden, heads * size, out_bias)


def outside(config: Config, tied: bool = False) -> int:
    """Embedding, output head, final norm."""
    return int((1 if tied else 2) * config["vocab_size"] * config["hidden_size"] + config["hidden_size"])


def dense(config: Config) -> int:
    """Llama, Mistral, Phi 3."""
    hidden = config["hidden_size"]
    layer = attention(config) + gated(hidden, config["intermediate_size"]) + 2 * hidden
    return int(outside(config) + config["num_hidden_layers"] * layer)


def qwen2(config: Config) -> int:
    """Llama with biases on query, key and value."""
    biases = (config["num_attention_heads"] + 2 * config["num_key_value_heads"]) * head_size(config)
    return int(dense(config) + config["num_hidden_layers"] * biases)


def qwen3(config: Config) -> int:
    """Llama with norms on query and key."""
    return int(dense(config) + config["num_hidden_layers"] * 2 * head_size(config))


def experts(config: Config, number: str, inner: str) -> int:
    """Router and experts of one layer."""
    return int(config[number] * (config["hidden_size"] + gated(config["hidden_size"], config[inner])))


def qwen3_moe(config: Config) -> int:
    hidden = config["hidden_size"]
    block = experts(config, "num_experts", "moe_intermediate_size")
    layer = attention(config) + 2 * head_size(config) + block + 2 * hidden
    return int(outside(config) + config["num_hidden_layers"] * layer)


def mixtral(config: Config) -> int:
    layer = attention(config) + experts(config, "num_local_experts", "intermediate_size") + 2 * config["hidden_size"]
    return int(outside(config) + config["num_hidden_layers"] * layer)


def gpt_oss(config: Config) -> int:
    """Biases everywhere, one sink per head; experts' two projections with biases."""
    hidden, inner, number = config["hidden_size"], config["intermediate_size"], config["num_local_experts"]
    expert = linear(2 * inner, hidden, True) + linear(hidden, inner, True)
    block = linear(number, hidden, True) + number * expert
    layer = attention(config, True, True) + config["num_attention_heads"] + block + 2 * hidden
    return int(outside(config) + config["num_hidden_layers"] * layer)


def gemma(config: Config, qk_norm: bool = False) -> int:
    """Four norms a layer, output head tied to the embedding."""
    hidden = config["hidden_size"]
    norms = 4 * hidden + (2 * head_size(config) if qk_norm else 0)
    layer = attention(config) + gated(hidden, config["intermediate_size"]) + norms
    return int(outside(config, tied=True) + config["num_hidden_layers"] * layer)


def siglip(vision: Config, text_hidden: int) -> int:
    """Gemma 3's vision tower and projector."""
    hidden, inner, patch = vision["hidden_size"], vision["intermediate_size"], vision["patch_size"]
    patches = (vision["image_size"] // patch) ** 2
    layer = 4 * linear(hidden, hidden, True) + linear(inner, hidden, True) + linear(hidden, inner, True) + 4 * hidden
    embedding = linear(hidden, 3 * patch * patch, True) + patches * hidden
    projector = hidden * text_hidden + hidden
    return int(embedding + vision["num_hidden_layers"] * layer + 2 * hidden + projector)


def mla_matrices(config: Config) -> list[Matrix]:
    """Multi-head latent attention, and the sparse attention's indexer where the model has one."""
    hidden, heads = config["hidden_size"], config["num_attention_heads"]
    query, latent, rope = config["q_lora_rank"], config["kv_lora_rank"], config["qk_rope_head_dim"]
    nope, value = config["qk_nope_head_dim"], config["v_head_dim"]
    found = [(1, query, hidden), (1, heads * (nope + rope), query), (1, latent + rope, hidden)]
    found += [(1, heads * (nope + value), latent), (1, hidden, heads * value)]
    if "index_topk" in config:
        size = config["index_head_dim"]
        found += [(1, config["index_n_heads"] * size, query), (1, size, hidden)]
    return found


def mla(config: Config) -> int:
    """Its matrices and two inner norms."""
    return int(sizes(mla_matrices(config)) + config["q_lora_rank"] + config["kv_lora_rank"] + indexer_rest(config))


def indexer_rest(config: Config) -> int:
    """What the indexer has beside its matrices: the weights of its heads and a layer norm."""
    if "index_topk" not in config:
        return 0
    return int(config["index_n_heads"] * config["hidden_size"] + 2 * config["index_head_dim"])


def sizes(matrices: list[Matrix]) -> int:
    return sum(times * rows * columns for times, rows, columns in matrices)


def deepseek_moe(config: Config) -> int:
    """Router (with the load balancing bias), routed and shared experts of one layer."""
    shared = config["n_shared_experts"] * gated(config["hidden_size"], config["moe_intermediate_size"])
    return int(experts(config, "n_routed_experts", "moe_intermediate_size") + shared + config["n_routed_experts"])


def deepseek(config: Config) -> int:
    hidden, layers, first = config["hidden_size"], config["num_hidden_layers"], config["first_k_dense_replace"]
    each = mla(config) + 2 * hidden
    plain = first * gated(hidden, config["intermediate_size"])
    return int(outside(config) + layers * each + plain + (layers - first) * deepseek_moe(config))


def deepseek_mtp(config: Config) -> int:
    """One module for multi-token prediction: a sparse layer, its joining projection, own embedding and head."""
    hidden = config["hidden_size"]
    each = mla(config) + 2 * hidden + deepseek_moe(config)
    return int(each + 2 * hidden * hidden + 2 * hidden + outside(config))


def deepseek_scaled(config: Config) -> list[Matrix]:
    """All projections are block-scaled; embedding, head, router and the joining projection are not."""
    hidden, first, ahead = config["hidden_size"], config["first_k_dense_replace"], config["num_nextn_predict_layers"]
    layers = config["num_hidden_layers"] + ahead
    number = (layers - first) * (config["n_routed_experts"] + config["n_shared_experts"])
    attentions = [(layers * times, rows, columns) for times, rows, columns in mla_matrices(config)]
    plain = gated_matrices(first, hidden, config["intermediate_size"])
    return attentions + plain + gated_matrices(number, hidden, config["moe_intermediate_size"])


def gated_matrices(times: int, hidden: int, inner: int) -> list[Matrix]:
    return [(2 * times, inner, hidden), (times, hidden, inner)]


def glm4_moe(config: Config) -> int:
    hidden, layers, first = config["hidden_size"], config["num_hidden_layers"], config["first_k_dense_replace"]
    each = attention(config, qkv_bias=True) + 2 * hidden + (2 * head_size(config) if config["use_qk_norm"] else 0)
    plain = first * gated(hidden, config["intermediate_size"])
    return int(outside(config) + layers * each + plain + (layers - first) * deepseek_moe(config))


def glm4_mtp(config: Config) -> int:
    hidden = config["hidden_size"]
    each = attention(config, qkv_bias=True) + 2 * hidden + (2 * head_size(config) if config["use_qk_norm"] else 0)
    return int(each + deepseek_moe(config) + 2 * hidden * hidden + 2 * hidden + outside(config))


def minimax_m2(config: Config) -> int:
    """Norms over all heads of query and key; a bias of the router."""
    hidden, size = config["hidden_size"], head_size(config)
    norms = 2 * hidden + (config["num_attention_heads"] + config["num_key_value_heads"]) * size
    block = experts(config, "num_local_experts", "intermediate_size") + config["num_local_experts"]
    return int(outside(config) + config["num_hidden_layers"] * (attention(config) + norms + block))


def minimax_scaled(config: Config) -> list[Matrix]:
    hidden, size, layers = config["hidden_size"], head_size(config), config["num_hidden_layers"]
    queries, keys = config["num_attention_heads"] * size, config["num_key_value_heads"] * size
    attentions = [(layers, queries, hidden), (2 * layers, keys, hidden), (layers, hidden, queries)]
    return attentions + gated_matrices(layers * config["num_local_experts"], hidden, config["intermediate_size"])


def qwen3_next(config: Config) -> int:
    """Every fourth layer has gated full attention, the others a gated delta net."""
    layers = config["num_hidden_layers"]
    full = layers // config["full_attention_interval"]
    linear_layers = (layers - full) * delta_net(config)
    return int(outside(config) + layers * next_rest(config) + full * next_attention(config) + linear_layers)


def next_rest(config: Config) -> int:
    """Norms, router, experts, shared expert with its gate."""
    hidden = config["hidden_size"]
    shared = gated(hidden, config["shared_expert_intermediate_size"]) + hidden
    return int(2 * hidden + experts(config, "num_experts", "moe_intermediate_size") + shared)


def next_attention(config: Config) -> int:
    return attention(config, gate=True) + 2 * head_size(config)


def delta_net(config: Config) -> int:
    hidden = config["hidden_size"]
    keys = config["linear_num_key_heads"] * config["linear_key_head_dim"]
    heads, size = config["linear_num_value_heads"], config["linear_value_head_dim"]
    values = heads * size
    projections = hidden * (2 * keys + 2 * values) + hidden * 2 * heads + hidden * values
    return int(projections + (2 * keys + values) * config["linear_conv_kernel_dim"] + 2 * heads + size)


def next_mtp(config: Config) -> int:
    """Qwen3 Next's module for multi-token prediction shares embedding and head."""
    hidden = config["hidden_size"]
    return int(next_rest(config) + next_attention(config) + 2 * hidden * hidden + 3 * hidden)


def nemotron_h(config: Config) -> int:
    """One mixer a layer: M Mamba 2, * attention, - feed-forward without gate."""
    hidden = config["hidden_size"]
    mixers = {
        "M": mamba2(config),
        "*": attention({**config, "head_dim": config["attention_head_dim"]}),
        "-": 2 * hidden * config["intermediate_size"],
    }
    return int(outside(config) + sum(mixers[kind] + hidden for kind in config["hybrid_override_pattern"]))


def mamba2(config: Config) -> int:
    hidden, heads = config["hidden_size"], config["mamba_num_heads"]
    inner = heads * config["mamba_head_dim"]
    groups = 2 * config["n_groups"] * config["ssm_state_size"]
    convolution = (inner + groups) * (config["conv_kernel"] + 1)
    return int(hidden * (2 * inner + groups + heads) + convolution + 3 * heads + inner + inner * hidden)


def llama4(config: Config) -> int:
    """Each layer sparse, with one shared expert of the experts' size; query-key norms have no weights."""
    hidden, inner = config["hidden_size"], config["intermediate_size"]
    block = experts(config, "num_local_experts", "intermediate_size") + gated(hidden, inner)
    return int(outside(config) + config["num_hidden_layers"] * (attention(config) + block + 2 * hidden))


def llama4_vision(vision: Config, text_hidden: int) -> int:
    """Llama 4's vision tower: patches, class and position embeddings, layers, pixel shuffle adapter, projector."""
    hidden, inner = vision["hidden_size"], vision["intermediate_size"]
    positions = (vision["image_size"] // vision["patch_size"]) ** 2 + 1
    embedding = 3 * vision["patch_size"] ** 2 * hidden + hidden + positions * hidden + 4 * hidden
    layer = 4 * linear(hidden, hidden, True) + linear(inner, hidden, True) + linear(hidden, inner, True) + 4 * hidden
    middle, output = vision["projector_input_dim"], vision["projector_output_dim"]
    joining = inner * middle + middle * output + output * text_hidden
    return int(embedding + vision["num_hidden_layers"] * layer + joining)


FAMILIES: dict[str, Callable[[Config], int]] = {
    "llama": dense,
    "mistral": dense,
    "phi3": dense,
    "qwen2": qwen2,
    "qwen3": qwen3,
    "qwen3_moe": qwen3_moe,
    "mixtral": mixtral,
    "gpt_oss": gpt_oss,
    "gemma2": gemma,
    "gemma3": lambda config: gemma(config, qk_norm=True),
    "deepseek_v3": deepseek,
    "deepseek_v32": deepseek,
    "kimi_k2": deepseek,
    "glm4_moe": glm4_moe,
    "minimax_m2": minimax_m2,
    "qwen3_next": qwen3_next,
    "nemotron_h": nemotron_h,
    "llama4": llama4,
}

PREDICTION: dict[str, Callable[[Config], int]] = {
    "deepseek_v3": deepseek_mtp,
    "deepseek_v32": deepseek_mtp,
    "glm4_moe": glm4_mtp,
    "qwen3_next": next_mtp,
}
"""Families whose checkpoints hold a module for multi-token prediction."""

VISION: dict[str, Callable[[Config, int], int]] = {"gemma3": siglip, "llama4": llama4_vision}

BLOCK_SCALED: dict[str, Callable[[Config], list[Matrix]]] = {
    "deepseek_v3": deepseek_scaled,
    "deepseek_v32": deepseek_scaled,
    "kimi_k2": deepseek_scaled,
    "minimax_m2": minimax_scaled,
}
"""Which matrices the family's FP8 checkpoints scale by blocks."""
