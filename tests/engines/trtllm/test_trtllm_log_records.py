"""Every fact that the lines of a public record state is in the capture that is read from them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engdiff.errors import LogForeign
from engdiff.schema.capture import Capture
from engdiff.schema.values import Unknown, plain
from tests.engines.conftest import Read
from tests.engines.known import every_known
from tests.engines.trtllm.facts import component, final, gib, pool, rank, said, term

RECORDS = {
    record["id"]: record["log_excerpt"]
    for record in map(json.loads, (Path(__file__).parent / "records.jsonl").read_text().splitlines())
}

Fact = tuple[Callable[[Capture], Any], Any]

POOL_OF_TUTORIAL: list[Fact] = [
    (lambda c: gib(pool(c).bytes), 78.3),
    (lambda c: plain(pool(c).tokens), 3731744),
    (lambda c: plain(pool(c).blocks), 116617),
    (lambda c: plain(pool(c).block_tokens), 32),
    (lambda c: pool(c).groups[0].detail["window"], 2051),
    (lambda c: pool(c).groups[0].detail["blocks_per_sequence"], 65),
    (lambda c: pool(c).groups[0].detail["secondary_blocks"], 0),
    (lambda c: round(plain(pool(c).groups[0].bytes_per_block) / 32), 22529),  # type: ignore[operator]
    (lambda c: gib(c.settings["kv.pool_bytes"].effective), 78.3),
    (lambda c: plain(c.settings["kv.block_size"].effective), 32),
    (lambda c: sorted(c.settings), ["kv.block_size", "kv.pool_bytes"]),
    (lambda c: plain(pool(c).max_concurrency), 1794.11),
]


NO_POLICY: Fact = (lambda c: plain(c.admission.rule), None)
"""None of these lines says which policy runs, and none of them is the configuration."""


def effective(key: str, value: Any) -> Fact:
    """What the worker did, and that no configuration was read to say so."""
    return (lambda c: (plain(c.settings[key].effective), plain(c.settings[key].resolved)), (value, None))


def settings(*keys: str) -> Fact:
    """All settings that the lines state: a fragment adds none by itself."""
    return (lambda c: sorted(c.settings), sorted(keys))


def failed(capture: Capture, name: str) -> Any:
    assert capture.failure
    return gib(capture.failure.numbers[name])


FACTS: dict[str, list[Fact]] = {
    "log-031": [
        (lambda c: said(c, "execution_context", "size_mib"), "2265.58"),
        (lambda c: term(c, "execution context"), 2.21),
        (lambda c: said(c, "tensorrt_memory", "gpu_mib"), "46523"),
        (lambda c: len(c.instances[0].ranks), 1),
        settings(),
        NO_POLICY,
    ],
    "log-035": [*POOL_OF_TUTORIAL, (lambda c: c.reading.starts[0].ended if c.reading else None, "ready")],
    "log-036": [
        (lambda c: term(c, "device memory"), 39.39),
        (lambda c: gib(c.identity.devices[0].memory_bytes), 39.39),
        (lambda c: term(c, "available for the KV cache"), 21.89),
        (lambda c: plain(pool(c).blocks), 631),
        (lambda c: plain(pool(c).bytes), None),
        settings(),
    ],
    "log-037": [
        (lambda c: plain(pool(c).bytes), 69524783104),
        (lambda c: gib(pool(c).bytes), 64.75),
        (lambda c: plain(pool(c).tokens), 132608),
        (lambda c: said(c, "tensorrt_memory", "gpu_mib"), "6683"),
        effective("kv.pool_bytes", 69524783104),
        settings("kv.pool_bytes"),
    ],
    "log-038": [(lambda c: plain(pool(c).tokens), 10718), settings()],
    "log-080": [
        (lambda c: said(c, "max_num_sequences", "value"), "1"),
        (lambda c: final(c, "scheduler.max_num_seqs"), 1),
        (lambda c: said(c, "max_attention_window", "value"), "2048"),
        (lambda c: said(c, "engine_size", "size_mib"), "3404"),
        (lambda c: term(c, "weights"), 3.32),
        (lambda c: said(c, "mpi", "size"), "4"),
        (lambda c: [d.name for d in c.identity.devices], ["GPU 0", "GPU 3"]),
        (lambda c: any("4 ranks" in note for note in c.notes), True),
        effective("scheduler.max_num_seqs", 1),
        effective("scheduler.async_scheduling", False),
        settings("scheduler.async_scheduling", "scheduler.max_num_seqs"),
        NO_POLICY,
    ],
    "trt-004": [
        (lambda c: term(c, "device memory"), 31.84),
        (lambda c: term(c, "available for the KV cache"), 17.83),
        (lambda c: plain(pool(c).blocks), 8219),
        (lambda c: plain(pool(c).block_tokens), 32),
        (lambda c: gib(pool(c).bytes), 16.05),
        (lambda c: plain(pool(c).tokens), 263008),
        effective("kv.block_size", 32),
        (lambda c: gib(c.settings["kv.pool_bytes"].effective), 16.05),
        settings("kv.block_size", "kv.pool_bytes"),
        NO_POLICY,
    ],
    "trt-005": [
        (lambda c: term(c, "device memory"), 140.06),
        (lambda c: said(c, "component_failed", "component"), "KV cache"),
        (lambda c: failed(c, "total_bytes"), 140.06),
        (lambda c: failed(c, "free_bytes"), 108.86),
        (lambda c: component(c, "Model"), ("139.55", "110.70")),
        (lambda c: component(c, "Sampler"), ("110.70", "110.70")),
        (
            lambda c: component(c, "Initial KV cache (temporary for KV cache size estimation)"),
            ("110.70", "110.33"),
        ),
        (lambda c: component(c, "Drafter"), ("110.33", "110.33")),
        (lambda c: term(c, "model"), 28.85),
        (lambda c: c.failure.stage if c.failure else None, "size the KV cache"),
        (lambda c: term(c, "KV cache of the profiling pass"), 0.37),
        settings(),
    ],
    "trt-007": [
        (lambda c: term(c, "device memory"), 276.5),
        (lambda c: said(c, "component_failed", "component"), "KV cache"),
        (lambda c: failed(c, "free_bytes"), 200.47),
        (lambda c: component(c, "model"), ("274.64", "208.12")),
        (lambda c: component(c, "sampler"), ("208.12", "204.34")),
        (lambda c: component(c, "_no_capture_init_kv_cache"), ("204.27", "202.40")),
        (lambda c: component(c, "spec_resource_manager"), ("202.40", "202.40")),
        (lambda c: component(c, "_no_capture_init_extra_resources"), ("202.40", "197.99")),
        (lambda c: component(c, "model_extra"), ("197.99", "200.47")),
        (lambda c: term(c, "KV cache of the profiling pass"), 1.87),
        (lambda c: c.failure.stage if c.failure else None, "size the KV cache"),
        settings(),
    ],
    "trt-011": POOL_OF_TUTORIAL,
    "trt-013": [
        (lambda c: said(c, "torch_limit", "fraction"), "0.21594039253566577"),
        (lambda c: term(c, "torch may use"), 39.73),
        (lambda c: final(c, "graphs.max_capture_size"), 512),
        (lambda c: rank(c).device, "RANK 0"),
        effective("graphs.max_capture_size", 512),
        effective("graphs.mode", "decode"),
        (lambda c: isinstance(rank(c).graphs.sizes, Unknown), True),  # one line of the list is not the list
        settings("graphs.max_capture_size", "graphs.mode"),
    ],
}

NOT_IN_THE_LINES = {
    "log-037": "the flags: they stand in the text around the log",
    "log-038": "tokens in a block: it is named in the text around the log",
    "trt-004": "throughput",
    "trt-013": "ranks 1 to 3: the excerpt holds the line of rank 0 only",
    "trt-014": "all: sentences about a log, none of its lines",
    "trt-015": "all: sentences about a log, none of its lines",
}
PROSE = {"trt-014", "trt-015"}


def test_every_record_is_here() -> None:
    assert set(FACTS) | PROSE == set(RECORDS)
    assert set(NOT_IN_THE_LINES) <= set(RECORDS)


@pytest.mark.parametrize(("name", "index"), [(name, i) for name, facts in FACTS.items() for i in range(len(facts))])
def test_fact(name: str, index: int, read: Read) -> None:
    of, expected = FACTS[name][index]
    assert of(read(RECORDS[name])) == expected


@pytest.mark.parametrize("name", sorted(FACTS))
def test_every_number_stands_in_the_line_it_cites(name: str, read: Read) -> None:
    capture = read(RECORDS[name]).model_copy(
        update={"failure": None}
    )  # sizes there are printed numbers times their unit
    for known in every_known(capture):
        evidence = known.evidence
        if evidence is None or evidence.source != "log":
            continue
        assert evidence.line is not None
        line = RECORDS[name].splitlines()[evidence.line - 1]
        assert evidence.where in line.replace("**", "")
        if isinstance(known.value, int | float) and not isinstance(known.value, bool) and known.low is None:
            assert re.search(rf"(?<![\d.]){re.escape(str(known.value))}(?!\d)", evidence.where)


@pytest.mark.parametrize("name", sorted(set(FACTS) - {"trt-005", "trt-007"}))
def test_a_start_that_does_not_say_it_failed_has_no_failure(name: str, read: Read) -> None:
    assert read(RECORDS[name]).failure is None


@pytest.mark.parametrize("name", sorted(PROSE))
def test_prose_is_no_log(name: str, read: Read) -> None:
    with pytest.raises(LogForeign):
        read(RECORDS[name])


@pytest.mark.parametrize("name", ["trt-005", "trt-007"])
def test_the_table_of_a_failure_reads_the_same_on_lines_of_its_own(name: str, read: Read) -> None:
    joined, lines = read(RECORDS[name]), read(RECORDS[name].replace(" | ", "\n"))
    assert lines.native == joined.native
    assert lines.failure
    assert joined.failure
    assert (lines.failure.stage, lines.failure.cause) == (joined.failure.stage, joined.failure.cause)
    assert {k: plain(v) for k, v in lines.failure.numbers.items()} == {
        k: plain(v) for k, v in joined.failure.numbers.items()
    }
