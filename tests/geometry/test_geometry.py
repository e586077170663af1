"""Geometry from a config.json: counted against the parameters that model cards publish."""

from __future__ import annotations

from typing import Any

import pytest

from engdiff.errors import UsageError
from engdiff.geometry import geometry
from engdiff.geometry.cache import TokenCache
from engdiff.geometry.quantization import quantization
from engdiff.models.shapes import shapes

BESIDE = {
    "deepseek-r1": 13_504_966_800,
    "deepseek-v3": 13_504_966_800,
    "deepseek-v3.2": 13_477_385_728,
    "glm-4.5": 5_539_962_272,
    "glm-4.5-air": 3_616_573_568,
    "kimi-k2": 3_416,
    "qwen3-next-80b-a3b": 1_650_471_424,
}
"""Parameters of a published checkpoint that are not counted: layers that predict ahead, and scales of FP8."""


@pytest.mark.parametrize("key", sorted(shapes()))
def test_tensors_add_up_to_the_published_parameters(key: str) -> None:
    made = geometry(shapes()[key].config)
    assert shapes()[key].parameters - made.parameters == BESIDE.get(key, 0)
    assert key == "kimi-k2" or bool(made.not_counted) == (key in BESIDE) or key == "minimax-m2"


@pytest.mark.parametrize(
    ("key", "elements"),
    [("llama-3.1-70b", 163_840), ("deepseek-v3", 35_136), ("qwen3-30b-a3b", 49_152), ("gpt-oss-120b", 36_864)],
)
def test_elements_kept_of_a_token_without_parallelism(key: str, elements: int) -> None:
    """Layers x heads x (keys + values); of latent attention layers x (rank + rotary part)."""
    kept = [cache for cache in geometry(shapes()[key].config).caches if isinstance(cache, TokenCache)]
    assert sum(cache.elements(1) for cache in kept) == elements


def test_more_ranks_than_heads_keep_one_head_each_and_latent_vectors_are_whole() -> None:
    (kept,) = set(geometry(shapes()["llama-3.1-8b"].config).caches)
    assert isinstance(kept, TokenCache)
    assert [kept.elements(ranks) for ranks in (1, 2, 8, 16)] == [2048, 1024, 256, 256]
    (latent,) = set(geometry(shapes()["deepseek-v3"].config).caches)
    assert isinstance(latent, TokenCache)
    assert latent.elements(8) == 576


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ({}, "no `architectures`"),
        ({"architectures": ["BertForMaskedLM"]}, "BertForMaskedLM is not understood"),
        ({"architectures": ["LlamaForCausalLM"]}, "has no `num_attention_heads`|has no `hidden_size`"),
        (
            {"architectures": ["NemotronHForCausalLM"], "hybrid_override_pattern": "M-E"},
            "`hybrid_override_pattern` has E",
        ),
    ],
)
def test_what_is_not_understood_is_refused_by_name(content: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        geometry(content)


def test_a_quantisation_that_is_not_understood_is_refused_by_name() -> None:
    with pytest.raises(UsageError, match="`exl9` is not understood"):
        quantization({"quantization_config": {"quant_method": "exl9"}})
