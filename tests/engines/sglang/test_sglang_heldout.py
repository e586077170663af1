"""Public log fragments that no pattern was written from: what their lines hold is read, and nothing beside it.

Times, hosts, paths and ids are replaced; where a line breaks off or was shortened it is as found.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engdiff.schema.capture import Capture
from engdiff.schema.values import plain
from tests.engines.conftest import Read
from tests.engines.sglang.facts import argument, final, free, gib, pool, rank, said, term, tokens
from tests.logs.cited import invented

LINES = (Path(__file__).parent / "heldout.jsonl").read_text(encoding="utf-8").splitlines()
FRAGMENTS: dict[str, str] = {record["id"]: record["log_excerpt"] for record in map(json.loads, LINES)}


def run(capture: Capture, name: str, statistic: str) -> Any:
    """One statistic of a number of the run-time lines."""
    series = plain(capture.run_summary[name])
    assert isinstance(series, dict)
    return series[statistic]


def cause(capture: Capture) -> str:
    """Why it failed, in words."""
    assert capture.failure
    return capture.failure.cause or ""


def stage(capture: Capture) -> str:
    """When it failed."""
    assert capture.failure
    return capture.failure.stage


def seconds(capture: Capture) -> list[Any]:
    """Of the phases that are timed."""
    return [plain(phase.seconds) for phase in capture.boot]


def ended(capture: Capture) -> str:
    """How the last start ended."""
    assert capture.reading
    return capture.reading.starts[-1].ended


FACTS: dict[str, list[tuple[Callable[[Capture], Any], Any]]] = {
    "window-pools-cut": [
        (lambda c: tokens(c, "KV cache (sliding window)", "TP1"), 300288),
        (lambda c: gib(pool(c, "KV cache (sliding window)", "TP1").bytes), 13.97),
        (lambda c: said(c, "sliding window tokens", "full_tokens"), "375360"),
        (lambda c: c.failure, None),
    ],
    "worker-named-by-a-fork": [
        (lambda c: plain(c.settings["kv.offload_bytes"].final), 40 * 10**9),
    ],
    "usage-below-a-line-of-vllm": [
        (lambda c: "--enable-reasoning" in cause(c), True),
        (stage, "configuration"),
    ],
    "docker-desktop-0.4": [
        (lambda c: term(c, "free before loading", "TP0"), 22.76),
        (lambda c: term(c, "KV cache", "TP0"), 5.64),
        (lambda c: tokens(c, speaker="TP0"), 105531),
        (lambda c: term(c, "left free", "TP0"), 1.68),
        (lambda c: rank(c).tp, 0),
        (lambda c: final(c, "model.max_model_len"), 131072),
        (lambda c: final(c, "scheduler.max_num_seqs"), 2049),
        (seconds, [1.79]),
        (lambda c: c.failure, None),
    ],
    "draft-model-and-graphs": [
        (lambda c: term(c, "weights"), 94.0),
        (lambda c: term(c, "draft weights"), 2.8),
        (lambda c: term(c, "graphs"), 0.58),
        (lambda c: term(c, "draft graphs"), -0.01),
        (lambda c: term(c, "left free"), 7.68),
        (lambda c: final(c, "graphs.capture_sizes"), [1, 2, 3, 4]),
        (lambda c: final(c, "model.quantization"), "fp8"),
        (lambda c: (rank(c).tp, rank(c).ep), (0, 0)),
        (seconds, [541.76, 13.48, 4.26, 6.68, 761.3]),
    ],
    "ranks-without-a-time": [
        (lambda c: term(c, "weights", "TP0"), 76.11),
        (lambda c: term(c, "KV cache", "TP0"), 5.54),
        (lambda c: tokens(c, speaker="TP0"), 484032),
        (lambda c: gib(pool(c, "Mamba state", "TP0").bytes), 5.27),
        (lambda c: free(c, "TP0", "after the pools"), 24.45),
        (lambda c: final(c, "model.max_model_len"), 262144),
        (lambda c: final(c, "model.quantization"), "modelopt_fp4"),
        (seconds, [8.03, 282.07]),
    ],
    "shortened-capacity": [
        (lambda c: final(c, "model.max_model_len"), 262144),
        (lambda c: final(c, "scheduler.max_num_batched_tokens"), 8192),
        (lambda c: "scheduler.max_num_seqs" in c.settings, False),
        (lambda c: term(c, "KV cache"), 9.21),
        (lambda c: term(c, "left free"), 10.39),
        (lambda c: said(c, "linear attention kernels", "decode"), "triton"),
        (ended, "ready"),
    ],
    "arguments-cut-in-a-nested-field": [
        (lambda c: final(c, "graphs.capture_sizes"), [1, 2, 4, 8, 12, 16, 24, 32, 40, 48, 56, 64]),
        (lambda c: final(c, "graphs.max_capture_size"), 64),
        (lambda c: final(c, "graphs.mode"), "none"),
        (lambda c: argument(c, "hicache_mem_layout"), "page_first"),
    ],
    "weights-line-cut-after-its-time": [
        (stage, "size the KV cache"),
        (lambda c: "0.5" in cause(c), True),
        (seconds, [0.6]),
    ],
    "state-cache-on-two-rows": [
        (stage, "size the KV cache"),
        (lambda c: "146.81" in cause(c), True),
        (lambda c: "-7.96" in cause(c), True),
    ],
    "rows-broken-by-a-quote": [
        (lambda c: term(c, "weights"), 47.23),
        (lambda c: term(c, "KV cache"), 36.69),
        (lambda c: gib(c.settings["kv.pool_bytes"].final), 36.69),
        (tokens, 213761),
        (lambda c: [group.kind for group in pool(c).groups], ["full", "sliding window"]),
        (lambda c: term(c, "graphs"), 2.66),
        (lambda c: term(c, "left free"), 24.45),
        (seconds, [312.45, 25.74, 361.83, 366.77]),
        (ended, "ready"),
    ],
    "ray-and-two-windows": [
        (lambda c: run(c, "prefill batch.swa_token_usage", "last"), 0.17),
        (lambda c: run(c, "prefill batch.queued_requests", "most"), 51),
        (lambda c: run(c, "decode batch.tokens", "most"), 20224),
        (lambda c: run(c, "decode batch.accepted_length", "most"), 3.19),
    ],
    "no-room-for-tokens": [
        (stage, "serving"),
        (lambda c: "148" in cause(c) and "2048" in cause(c), True),
    ],
    "0.1": [
        (lambda c: run(c, "prefill batch.new_tokens", "most"), 254),
        (lambda c: run(c, "prefill batch.cache_hit_percent", "most"), 80.83),
        (lambda c: run(c, "decode batch.tokens", "last"), 1442),
        (lambda c: run(c, "decode batch.queued_requests", "last"), 0),
        (lambda c: c.failure, None),
    ],
    "graphs-failed-without-memory": [
        (stage, "capture graphs"),
        (lambda c: "No supported CUDA architectures" in cause(c), True),
        (lambda c: "Out of memory" in cause(c), False),
    ],
    "traceback-through-both": [
        (ended, "breaks off"),
        (lambda c: c.failure, None),
    ],
}


@pytest.mark.parametrize("fragment", FRAGMENTS)
def test_facts(fragment: str, read: Read) -> None:
    capture = read(FRAGMENTS[fragment])
    assert capture.identity.engine == "sglang"
    assert plain(capture.identity.version) is None
    for at, expected in FACTS[fragment]:
        assert at(capture) == expected


@pytest.mark.parametrize("fragment", FRAGMENTS)
def test_nothing_is_invented(fragment: str, read: Read) -> None:
    assert not invented(read(FRAGMENTS[fragment]), FRAGMENTS[fragment])
