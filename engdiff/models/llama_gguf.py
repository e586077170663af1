"""A Llama as one GGUF file: what llama.cpp reads."""

from __future__ import annotations

from collections.abc import Iterable

from engdiff.models import gguf
from engdiff.models.llama import LlamaShape
from engdiff.models.tensors import Tensor, interleave_halves, ones
from engdiff.models.vocabulary import CHAT_TEMPLATE, Vocabulary

_MOSTLY_F16 = 1  # general.file_type
_NORMAL, _CONTROL = 1, 3  # tokenizer.ggml.token_type

_OUTER = {
    "model.embed_tokens.weight": "token_embd.weight",
    "model.norm.weight": "output_norm.weight",
    "lm_head.weight": "output.weight",
}
_IN_LAYER = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def dump(name: str, shape: LlamaShape, vocabulary: Vocabulary, weights: Iterable[Tensor]) -> bytes:
    """Write the file, as bytes; ``weights`` come in Hugging Face's names and row order."""
    metadata = {
        "general.architecture": gguf.string("llama"),
        "general.name": gguf.string(name),
        "general.file_type": gguf.uint32(_MOSTLY_F16),
        **_sizes(shape),
        **_tokenizer(vocabulary),
    }
    return gguf.dump(metadata, [_converted(tensor, shape) for tensor in weights])


def _sizes(shape: LlamaShape) -> dict[str, gguf.Value]:
    return {
        "llama.vocab_size": gguf.uint32(shape.vocabulary),
        "llama.context_length": gguf.uint32(shape.context),
        "llama.embedding_length": gguf.uint32(shape.hidden),
        "llama.block_count": gguf.uint32(shape.layers),
        "llama.feed_forward_length": gguf.uint32(shape.feed_forward),
        "llama.attention.head_count": gguf.uint32(shape.heads),
        "llama.attention.head_count_kv": gguf.uint32(shape.kv_heads),
        "llama.attention.layer_norm_rms_epsilon": gguf.float32(shape.norm_epsilon),
        "llama.rope.dimension_count": gguf.uint32(shape.head_size),
        "llama.rope.freq_base": gguf.float32(shape.rope_base),
    }


def _tokenizer(vocabulary: Vocabulary) -> dict[str, gguf.Value]:
    special = vocabulary.special_ids
    types = [_CONTROL if number in special else _NORMAL for number in range(len(vocabulary.tokens))]
    return {
        "tokenizer.ggml.model": gguf.string("gpt2"),
        "tokenizer.ggml.pre": gguf.string("gpt-2"),
        "tokenizer.ggml.tokens": gguf.strings(vocabulary.tokens),
        "tokenizer.ggml.token_type": gguf.int32s(types),
        "tokenizer.ggml.merges": gguf.strings(vocabulary.merges),
        "tokenizer.ggml.bos_token_id": gguf.uint32(vocabulary.pad_id),
        "tokenizer.ggml.eos_token_id": gguf.uint32(vocabulary.end_id),
        "tokenizer.ggml.padding_token_id": gguf.uint32(vocabulary.pad_id),
        "tokenizer.ggml.add_bos_token": gguf.boolean(False),
        "tokenizer.chat_template": gguf.string(CHAT_TEMPLATE),
    }


def _converted(tensor: Tensor, shape: LlamaShape) -> Tensor:
    """Convert to GGUF's name; queries and keys to its row order, norms (all ones) to the F32 that ggml wants."""
    name = _gguf_name(tensor.name)
    if name.endswith("norm.weight"):
        return ones(name, tensor.shape[0], "F32")
    if name.endswith("attn_q.weight"):
        tensor = interleave_halves(tensor, shape.heads)
    if name.endswith("attn_k.weight"):
        tensor = interleave_halves(tensor, shape.kv_heads)
    return Tensor(name, tensor.shape, tensor.dtype, tensor.data)


def _gguf_name(name: str) -> str:
    if name in _OUTER:
        return _OUTER[name]
    layer, part = name.removeprefix("model.layers.").removesuffix(".weight").split(".", 1)
    return f"blk.{layer}.{_IN_LAYER[part]}.weight"
