"""Model families: how the fields of a ``config.json`` become tensors. One file per family, one row per architecture."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from engdiff.errors import UsageError
from engdiff.geometry.config import Config
from engdiff.geometry.families import deepseek, dense, gemma, llama4, moe, nemotron_h, qwen3_next
from engdiff.geometry.model import Geometry

Build = Callable[[Config], Geometry]

FAMILIES: Mapping[str, Build] = {
    "LlamaForCausalLM": dense.llama,
    "MistralForCausalLM": dense.llama,
    "Phi3ForCausalLM": dense.llama,
    "Qwen2ForCausalLM": dense.qwen2,
    "Qwen3ForCausalLM": dense.qwen3,
    "Gemma2ForCausalLM": gemma.gemma2,
    "Gemma3ForCausalLM": gemma.gemma3,
    "Gemma3ForConditionalGeneration": gemma.gemma3,
    "MixtralForCausalLM": moe.mixtral,
    "Qwen3MoeForCausalLM": moe.qwen3,
    "Glm4MoeForCausalLM": moe.glm4,
    "GptOssForCausalLM": moe.gpt_oss,
    "MiniMaxM2ForCausalLM": moe.minimax_m2,
    "DeepseekV2ForCausalLM": deepseek.deepseek,
    "DeepseekV3ForCausalLM": deepseek.deepseek,
    "DeepseekV32ForCausalLM": deepseek.deepseek,
    "Llama4ForCausalLM": llama4.llama4,
    "Llama4ForConditionalGeneration": llama4.llama4,
    "NemotronHForCausalLM": nemotron_h.nemotron_h,
    "Qwen3NextForCausalLM": qwen3_next.qwen3_next,
}


def family(config: Config) -> Build:
    """How a model of this architecture is built.

    Raises :class:`~engdiff.errors.UsageError` for one that is not understood: sizes are never approximated.
    """
    if config.architecture not in FAMILIES:
        raise UsageError(
            f"the architecture {config.architecture} is not understood: engdiff does not know its tensors",
            f"known are {', '.join(sorted(FAMILIES))}",
        )
    return FAMILIES[config.architecture]
