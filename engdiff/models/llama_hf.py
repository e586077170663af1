"""A Llama as a Hugging Face folder: what vLLM, SGLang, TensorRT-LLM and transformers read.

The keys are those that transformers 4 and 5 both understand: ``torch_dtype`` and a top-level ``rope_theta`` in
``config.json``, and ``PreTrainedTokenizerFast`` as the tokenizer's class.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from engdiff.models import safetensors
from engdiff.models.llama import LlamaShape
from engdiff.models.tensors import Tensor
from engdiff.models.vocabulary import CHAT_TEMPLATE, Vocabulary

Json = dict[str, object]

_BYTE_LEVEL: Json = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}


def dump(shape: LlamaShape, vocabulary: Vocabulary, weights: Sequence[Tensor]) -> dict[str, bytes]:
    """Write each file of the folder, as bytes by name."""
    return {
        "config.json": _document({**_config(shape), **_token_ids(vocabulary)}),
        **dump_tokenizer(shape.context, vocabulary),
        "model.safetensors": safetensors.dump(weights),
    }


def dump_tokenizer(context: int | None, vocabulary: Vocabulary) -> dict[str, bytes]:
    """Write the files that say how text becomes tokens and where an answer ends, as bytes by name.

    A ``context`` of ``None`` tokens leaves the longest text unsaid.
    """
    return {
        "generation_config.json": _document(_token_ids(vocabulary)),
        "tokenizer.json": _document(_tokenizer(vocabulary)),
        "tokenizer_config.json": _document(_tokenizer_config(context, vocabulary)),
    }


def _document(content: Json) -> bytes:
    return f"{json.dumps(content, indent=1)}\n".encode()


def _token_ids(vocabulary: Vocabulary) -> Json:
    pad, end = vocabulary.pad_id, vocabulary.end_id
    return {"bos_token_id": pad, "eos_token_id": end, "pad_token_id": pad}


def _config(shape: LlamaShape) -> Json:
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "torch_dtype": "float16",
        "vocab_size": shape.vocabulary,
        "hidden_size": shape.hidden,
        "intermediate_size": shape.feed_forward,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.kv_heads,
        "head_dim": shape.head_size,
        "max_position_embeddings": shape.context,
        "rope_theta": shape.rope_base,
        "rms_norm_eps": shape.norm_epsilon,
        "hidden_act": "silu",
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": False,
    }


def _tokenizer(vocabulary: Vocabulary) -> Json:
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    special = [{"id": number, "content": vocabulary.tokens[number], **flags} for number in vocabulary.special_ids]
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": special,
        "normalizer": None,
        "pre_tokenizer": _BYTE_LEVEL,
        "post_processor": None,
        "decoder": _BYTE_LEVEL,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {token: number for number, token in enumerate(vocabulary.tokens)},
            "merges": vocabulary.merges,
        },
    }


def _tokenizer_config(context: int | None, vocabulary: Vocabulary) -> Json:
    pad, end = vocabulary.tokens[vocabulary.pad_id], vocabulary.tokens[vocabulary.end_id]
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        **({} if context is None else {"model_max_length": context}),
        "bos_token": pad,
        "eos_token": end,
        "pad_token": pad,
        "add_bos_token": False,
        "clean_up_tokenization_spaces": False,
        "chat_template": CHAT_TEMPLATE,
    }
