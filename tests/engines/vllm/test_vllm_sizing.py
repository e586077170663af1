"""The rules of sizing against vLLM's own: ``data/sizing.jsonl`` holds what its code made of every shipped model.

Each line is one simulation on a pretended H200 with 32 GiB of cache asked for and a context of 8,192 tokens: weights of
the first rank as its model class declares them, blocks and concurrency by ``get_kv_cache_configs``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from engdiff.engines.sizing import Deployment, Parallel
from engdiff.engines.vllm.sizing import cache
from engdiff.engines.vllm.sizing.account import VllmSizing
from engdiff.engines.vllm.sizing.weights import stage_layers, weights
from engdiff.geometry import geometry
from engdiff.models.shapes import shapes
from engdiff.schema.values import Known, number

RECORDS = [json.loads(line) for line in (Path(__file__).parent / "data/sizing.jsonl").read_text().splitlines()]
ASKED, LENGTH = 32 * 2**30, 8192

OFF_RELATIVE = 0.0012
"""How far weights are off at most where a release's own padding or buffers are not reproduced."""

NOT_EXACT = {"deepseek-v3.2", "gemma-3-27b", "minimax-m2", "qwen3-next-80b-a3b"}
"""Models whose weights some release holds otherwise: fused or padded matrices, tables, and element types of buffers."""

WITHOUT_SCALES = "0.12.0"
"""This release keeps no scales among the buffers: 16 bytes a layer less than those after it."""


def deployment(record: dict[str, Any]) -> Deployment:
    shape = geometry(shapes()[record["model"]].config)
    states = any(kept.kind == "state" for kept in shape.caches)
    settings = {**record["settings"], **({"kv.block_size": 16} if states else {})}
    return Deployment(record["version"], shape, Parallel(record["tp"]), ASKED, settings, {})


def named(record: dict[str, Any]) -> str:
    return f"{record['version']} {record['model']} tp{record['tp']}"


@pytest.mark.parametrize("record", RECORDS, ids=named)
def test_blocks_and_concurrency_are_the_engines_own(record: dict[str, Any]) -> None:
    asked = deployment(record)
    plan = cache.plan(asked)
    blocks = plan.blocks(ASKED)
    assert blocks == record["blocks"]
    assert cache.concurrency(asked, plan, blocks, LENGTH) == pytest.approx(record["concurrency"], abs=1e-6)


@pytest.mark.parametrize("record", RECORDS, ids=named)
def test_weights_of_a_rank_are_the_engines_own(record: dict[str, Any]) -> None:
    made = weights(geometry(shapes()[record["model"]].config), Parallel(record["tp"]))
    held = made.total - (made.scales if record["version"] == WITHOUT_SCALES else 0)
    if record["model"] in NOT_EXACT:
        assert held == pytest.approx(record["weights"], rel=OFF_RELATIVE)
    else:
        assert held == record["weights"]


@pytest.mark.parametrize(
    ("stages", "sizes"), [(1, [80]), (3, [27, 27, 26]), (4, [20] * 4), (6, [13, 13, 13, 14, 14, 13])]
)
def test_layers_are_divided_over_stages(stages: int, sizes: list[int]) -> None:
    """What is left goes to the stages before the last (get_pp_indices)."""
    shape = geometry(shapes()["llama-3.1-70b"].config)
    assert [len(stage_layers(shape, stages, at)) for at in range(stages)] == sizes


def asked_70b(version: str, share: float, *, charged: bool) -> Deployment:
    settings: dict[str, Any] = {
        "kv.gpu_memory_utilization": share,
        "kv.block_size": 16,
        "model.max_model_len": LENGTH,
        "scheduler.max_num_batched_tokens": 8192,
        "graphs.capture_sizes": [1, 2],
        "graphs.charged": charged,
    }
    gib = 2**30
    estimates = {
        "activation peak": Known(value=round(4.84 * gib)),
        "outside torch": Known(value=0),
        "graphs": Known(value=round(0.6 * gib)),
    }
    shape = geometry(shapes()["llama-3.1-70b"].config)
    return Deployment(version, shape, Parallel(2), round(79.18 * gib), settings, estimates)


@pytest.mark.parametrize(
    ("share", "charged", "gib", "starts"),
    [(0.90, False, 0.68, False), (0.90, True, 0.08, False), (0.92, False, 2.26, True), (0.95, True, 4.04, True)],
)
def test_what_is_left_for_the_cache_of_a_70b_on_two_h100(share: float, charged: bool, gib: float, starts: bool) -> None:
    """By hand: 79.18 x share - 65.74 (weights and rotary cache) - 4.84 (peak) - 0.6 (graphs, where charged)."""
    made = VllmSizing().account(asked_70b("0.25.1", share, charged=charged))
    left = number(made.ledger[-1].bytes)
    assert left is not None
    assert left / 2**30 == pytest.approx(79.18 * share - 65.742 - 4.84 - (0.6 if charged else 0), abs=0.01)
    assert left / 2**30 == pytest.approx(gib, abs=0.02)
    assert all((number(check.margin_bytes) or 0) > 0 for check in made.checks) is starts


MEASURED = [
    ("llama-3.1-8b", "0.11.0", 1, 4.76, 0.13),
    ("llama-3.1-8b", "0.19.0", 1, 1.89, 0.25),
    ("llama-3.1-70b", "0.19.0", 4, 1.97, 2.21),
    ("qwen2.5-7b", "0.19.0", 2, 2.21, 2.06),
    ("phi-4", "0.19.0", 1, 1.52, 0.25),
    ("mixtral-8x7b", "0.19.0", 2, 1.21, 2.07),
    ("gpt-oss-20b", "0.19.0", 1, 2.87, 0.25),
]
"""Public records of starts on an H100 with 8,192 tokens and 1,024 requests a step (benchmarks/budget): GiB."""


@pytest.mark.parametrize(("model", "version", "tp", "peak", "outside"), MEASURED)
def test_measured_values_lie_within_the_bounds_of_the_estimates(
    model: str, version: str, tp: int, peak: float, outside: float
) -> None:
    settings = {"scheduler.max_num_batched_tokens": 8192, "scheduler.max_num_seqs": 1024}
    made = VllmSizing().estimates(version, geometry(shapes()[model].config), Parallel(tp), settings)
    for name, measured in {"activation peak": peak, "outside torch": outside}.items():
        value = made[name]
        assert isinstance(value, Known)
        assert value.low is not None
        assert value.high is not None
        assert value.low <= measured * 2**30 <= value.high, name
