"""Fragments of public logs that were gathered after the reader was written: what their lines state is read off them.

They were used to correct the reader, so that they guard it and no longer measure it. The log of number 57 was known
before: its lines are among those of ``logs.py``, its table is not. Numbers 63 and 64 are the samples of other programs'
tests, not a server's own output. Times, hosts and addresses are replaced, and traces are left out.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engdiff.schema.capture import Capture
from engdiff.schema.values import Unknown, plain
from tests.engines.conftest import Read
from tests.engines.trtllm.facts import final, gib, pool, rank, said, term
from tests.logs.cited import invented

Fact = tuple[Callable[[Capture], Any], Any]

LOGS: dict[str, str] = {
    row["id"].removeprefix("heldout-"): row["log"]
    for row in map(json.loads, (Path(__file__).parent / "heldout.jsonl").read_text().splitlines())
}


def setting(key: str, value: Any) -> Fact:
    return (lambda c: final(c, key), value)


def cause(words: str) -> Fact:
    return (lambda c: words in ((c.failure and c.failure.cause) or ""), True)


def stage(name: str) -> Fact:
    return (lambda c: c.failure and c.failure.stage, name)


def number(name: str, value: Any) -> Fact:
    return (lambda c: c.failure and plain(c.failure.numbers[name]), value)


def speakers(capture: Capture) -> list[str]:
    return [r.device for instance in capture.instances for r in instance.ranks]


def series(capture: Capture, name: str, which: str) -> Any:
    summary: Any = plain(capture.run_summary[name])
    return summary[which]


NO_FAILURE: Fact = (lambda c: c.failure, None)
NO_POOL: Fact = (
    lambda c: [r.pools for i in c.instances for r in i.ranks if r.pools] or "kv.pool_bytes" in c.settings,
    False,
)

FACTS: dict[str, list[Fact]] = {
    "02": [(lambda c: plain(pool(c).tokens), 693), cause("not even one request"), stage("size the KV cache")],
    "05": [
        setting("model.max_model_len", 131072),
        setting("scheduler.max_num_seqs", 2048),
        setting("scheduler.max_num_batched_tokens", 8192),
        setting("scheduler.chunked_prefill", False),
        setting("kv.prefix_caching", False),
        NO_FAILURE,
    ],
    "06": [cause("holds 1856 tokens"), number("available_tokens", 1856), number("needed_blocks", 47)],
    "10": [
        setting("scheduler.async_scheduling", True),
        cause("cudaDeviceGetDefaultMemPool(&memPool, device)): operation not supported"),
    ],
    "13": [cause("WhisperForConditionalGeneration"), stage("load weights")],
    "15": [
        setting("kv.gpu_memory_utilization", 0.9),
        (speakers, ["RANK 0"]),
        (lambda c: term(c, "available for the KV cache"), 81.91),
        (lambda c: term(c, "device memory"), 139.8),
        NO_FAILURE,
    ],
    "20": [(speakers, ["RANK 0", "RANK 2"]), setting("kv.block_size", 32), NO_POOL],
    "23": [setting("kv.gpu_memory_utilization", 0.9), setting("kv.block_size", 32), NO_POOL],
    "24": [
        setting("model.max_model_len", 8000),
        setting("scheduler.chunked_prefill", True),
        (lambda c: [d.name for d in c.identity.devices], ["GPU 0", "GPU 1"]),
        (lambda c: isinstance(c.identity.version, Unknown), True),
        (lambda c: said(c, "engine_version", "version"), "0.13.0.dev2024081300"),
    ],
    "30": [
        setting("scheduler.chunked_prefill", True),
        (lambda c: [(p.name, plain(p.seconds)) for p in c.boot], [("load weights", 0.205)]),
        (lambda c: term(c, "weights"), 0.23),
    ],
    "36": [
        (lambda c: plain(pool(c).tokens), 128),
        (lambda c: plain(pool(c).bytes), 16777216),
        stage("size the KV cache"),
    ],
    "38": [number("needed_bytes", 69568823808), stage("load weights"), (lambda c: term(c, "weights"), 66.77)],
    "44": [cause("could not load the engine file"), (lambda c: c.reading and c.reading.starts[0].source, "")],
    "57": [
        (lambda c: plain(c.identity.version), "0.12.0.dev2024073000"),
        (lambda c: c.launch.model, "meta-llama/Llama-2-7b-hf"),
        setting("kv.dtype", "fp8"),
        setting("kv.gpu_memory_utilization", 0.99),
        setting("scheduler.chunked_prefill", True),
        (lambda c: gib(pool(c).bytes), 62.99),
        (lambda c: (plain(pool(c).tokens), plain(pool(c).blocks), plain(pool(c).block_tokens)), (294848, 4607, 64)),
        (lambda c: plain(pool(c).max_concurrency), 70.88),
    ],
    "63": [(lambda c: plain(pool(c).blocks), 7), (lambda c: len(rank(c).pools[0].groups), 1)],
    "64": [
        (lambda c: series(c, "iteration.scheduled_requests", "mean"), 7.5),
        (lambda c: series(c, "iteration.kv_cache_util", "most"), 0.126),
    ],
}


@pytest.mark.parametrize("name", LOGS)
def test_what_a_fragment_states_is_read(name: str, read: Read) -> None:
    capture = read(LOGS[name])
    assert capture.identity.engine == "trtllm"
    assert [fact(capture) for fact, _ in FACTS[name]] == [value for _, value in FACTS[name]]


@pytest.mark.parametrize("name", LOGS)
def test_a_fragment_has_nothing_invented(name: str, read: Read) -> None:
    assert invented(read(LOGS[name]), LOGS[name]) == []


@pytest.mark.parametrize("name", LOGS)
def test_no_cause_has_a_hole(name: str, read: Read) -> None:
    failure = read(LOGS[name]).failure
    assert failure is None or "?" not in (failure.cause or "")


def test_chunking_is_not_off_because_no_policy_is_named(read: Read) -> None:
    assert "Context Chunking Scheduler Policy: None" in LOGS["30"]
    policy = next(line for line in LOGS["30"].splitlines() if "Context Chunking" in line)
    assert (
        "scheduler.chunked_prefill" not in read(f"{policy}\n[TensorRT-LLM][INFO] TRTGptModel maxBatchSize: 4").settings
    )


def test_a_cache_before_the_end_of_profiling_is_doubted(read: Read) -> None:
    allocated = "[TensorRT-LLM][INFO] [MemUsageChange] Allocated 1.01 GiB for max tokens in paged KV cache (8256)."
    limits = "[01/01/2025-00:00:00] [TRT-LLM] [I] max_seq_len=8193, max_num_requests=32, max_num_tokens=8192"
    assert any("profiling pass" in note for note in read(f"{allocated}\n{limits}").notes)


def test_a_rank_without_its_own_end_of_profiling_takes_that_of_another(read: Read) -> None:
    def sized(number: int, gib: str) -> str:
        who = f"[TRT-LLM] [I] [batchmgr][RANK {number}] "
        return f"{who}[MemUsageChange] Allocated {gib} GiB for max tokens in paged KV cache (4096)."

    end = "[TRT-LLM] [I] [_torch][RANK 0] Estimated max memory in KV cache : 9.00 GiB"
    capture = read("\n".join([sized(0, "0.50"), sized(1, "0.50"), end, sized(0, "9.00"), sized(1, "8.50")]))
    assert [gib(pool(capture, index).bytes) for index in (0, 1)] == [9.0, 8.5]
    assert term(capture, "available for the KV cache", 1) is None
