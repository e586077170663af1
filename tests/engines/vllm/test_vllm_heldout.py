"""Fragments of public logs that were gathered after the reader was written: what their lines state is read off them.

They were used to correct the reader, so that they guard it and no longer measure it. Times, process ids, hosts and
paths are replaced.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from engdiff.schema.capture import Capture
from engdiff.sources.log import read_text
from engdiff.units import GIB
from tests.engines.vllm.places import at
from tests.logs.cited import invented

LOGS: Mapping[str, str] = {
    row["id"].removeprefix("heldout-"): row["log"]
    for row in map(json.loads, (Path(__file__).parent / "heldout.jsonl").read_text(encoding="utf-8").splitlines())
}

Fact = tuple[str, object]

FACTS: Mapping[str, tuple[Fact, ...]] = {
    "02": (
        ("ledger 0 device memory", 23.58 * GIB), ("ledger 0 outside torch", 0.35 * GIB),
        ("ledger 0 torch peak", 17.98 * GIB), ("ledger 0 weights", 14.9888 * GIB), ("pool 0 bytes", 2.89 * GIB),
        ("pool 0 blocks", 1478), ("pool 0 block_tokens", 16), ("final kv.gpu_memory_utilization", 0.9),
        ("number max_model_len", 29000), ("number kv_tokens", 23648), ("stage", "size the KV cache"),
    ),
    "04": (
        ("pool 0 tokens", 520256), ("pool 0 max_concurrency", 7.91), ("final model.max_model_len", 65792),
        ("note", "the smallest, which decides for all workers"), ("failure", None),
    ),
    "07": (
        ("number needed_bytes", 4.26 * GIB), ("number available_bytes", 4.25 * GIB), ("number max_model_len", 100000),
        ("ledger 0 KV cache", 4.25 * GIB), ("would fit", "with 10.24 MiB more it would have fitted"),
    ),
    "16": (
        ("ranks", 1), ("ledger 0 device memory", 44.53 * GIB), ("ledger 0 KV cache", 21.2 * GIB),
        ("final kv.gpu_memory_utilization", 0.98), ("cause", "2.00 MiB"), ("stage", "capture graphs"),
    ),
    "17": (
        ("ledger 0 device memory", 47.38 * GIB), ("ledger 0 vLLM may use", 45.01 * GIB),
        ("final kv.gpu_memory_utilization", 0.95), ("number free_bytes", 31.44 * GIB), ("warnings", 1),
    ),
    "22": (("cause", "--api-key"), ("stage", "configuration"), ("version", None)),
    "23": (("cause", "--temperature"), ("stage", "configuration")),
    "25": (("cause", "LlamaForCausalLM"),),
    "27": (("stage", "capture graphs"), ("cause", "while CUDA graphs were captured"), ("warnings", 3)),
    "35": (
        ("pool 0 bytes", 5877300838), ("ledger 0 device memory", 47.53 * GIB), ("ledger 0 weights", 1.12 * GIB),
        ("ledger 0 outside torch", 0.02 * GIB), ("final kv.gpu_memory_utilization", 0.15), ("failure", None),
    ),
    "38": (
        ("pool 0 blocks", 6893), ("pool 0 block_tokens", 64), ("pool 0 max_concurrency", 26.93),
        ("ledger 0 KV cache", 23.56 * GIB), ("final model.max_model_len", 16384), ("failure", None),
    ),
    "39": (
        ("final graphs.capture_sizes", [512, 504, 496, 488, 480, 8, 4, 2, 1]), ("model", "models/llama3.1-8B-INT8"),
        ("backend", "Flash Attention"),
    ),
    "43": (("ranks", 2), ("ledger 1 KV cache", 26.13 * GIB), ("pool 0 tokens", 570848), ("boot compile", 9.53)),
    "46": (("ranks", 3), ("ledger 0 weights", 79.41 * GIB), ("ledger 2 device memory", 94.62 * GIB)),
    "51": (
        ("ranks", 2), ("ledger 0 KV cache", 14.52 * GIB), ("ledger 1 KV cache", 14.26 * GIB),
        ("pool 0 bytes", 14.26 * GIB), ("pool 0 blocks", 7299), ("pool 0 block_tokens", 16), ("failure", None),
    ),
    "54": (("cause", "462.00 MiB"),),
    "63": (("version", "0.8.6.dev0+g4e8c9f5e9.d20250506"), ("model", "/models/llama3-8b"), ("failure", None)),
}  # fmt: skip


def read(name: str) -> Capture:
    return read_text(LOGS[name].encode())


@pytest.mark.parametrize(
    ("name", "place", "expected"), [(name, place, value) for name, facts in FACTS.items() for place, value in facts]
)
def test_every_fact_of_the_lines(name: str, place: str, expected: object) -> None:
    found = at(read(name), place)
    if isinstance(expected, float):
        assert found == pytest.approx(expected, rel=1e-6, abs=1)
    elif place in ("note", "cause"):
        assert str(expected) in str(found)
    else:
        assert found == expected


@pytest.mark.parametrize("name", LOGS)
def test_what_is_cited_is_there(name: str) -> None:
    assert invented(read(name), LOGS[name]) == []


def test_every_fragment_has_facts() -> None:
    assert set(FACTS) == set(LOGS)


def test_the_way_to_an_error_is_no_warning() -> None:
    place = "ERROR 01-02 03:04:05 [core.py:515] "
    frame = '  File "/srv/env/site-packages/vllm/v1/engine/core.py", line 1, in run'
    rows = ("EngineCore failed to start.", "Traceback (most recent call last):", frame, "    self.run()", "Error: x")
    capture = read_text("\n".join(place + row for row in rows).encode())
    assert [w.text for w in capture.warnings] == ["EngineCore failed to start.", "Error: x"]


def test_of_sizes_at_different_lengths_the_last_counts() -> None:
    row = "GPU KV cache size: {} tokens\nMaximum concurrency for {} tokens per request: 2.00x\n"
    capture = read_text((row.format("4,096", "2,048") + row.format("8,192", "4,096")).encode())
    assert (at(capture, "pool 0 tokens"), at(capture, "final model.max_model_len")) == (8192, 4096)
