"""Every fact that the lines of a public record state is in the capture that is read from them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engdiff.schema.capture import Capture
from engdiff.schema.values import plain
from tests.engines.conftest import Read
from tests.engines.known import every_known
from tests.engines.sglang.facts import argument, final, free, gib, pool, rank, said, term, tokens

RECORDS = {
    record["id"]: record["log_excerpt"]
    for record in map(json.loads, (Path(__file__).parent / "records.jsonl").read_text().splitlines())
}

BOTH = [1, 2, 4, 8, 12, *range(16, 257, 8), *range(272, 513, 16)]
FACTS: dict[str, list[tuple[Callable[[Capture], Any], Any]]] = {
    "log-002": [
        (tokens, 367404),
        (lambda c: said(c, "kv pool", "k_gib"), "8.23"),
        (lambda c: said(c, "kv pool", "v_gib"), "8.23"),
        (lambda c: gib(pool(c).bytes), 16.46),
        (lambda c: gib(c.settings["kv.pool_bytes"].effective), 16.46),
    ],
    "log-007": [
        (lambda c: tokens(c, speaker="TP1"), 2090351),
        (lambda c: tokens(c, speaker="TP2"), 2090351),
        (lambda c: term(c, "KV cache", "TP2"), 47.84),
        (lambda c: [free(c, tp, "after the pools") for tp in ("TP3", "TP2", "TP1")], [12.68, 12.45, 12.45]),
        (lambda c: [free(c, tp, "before the graphs (decode)") for tp in ("TP2", "TP3", "TP0")], [11.87, 12.11, 11.92]),
        (lambda c: final(c, "graphs.capture_sizes"), BOTH),
        (lambda c: len(final(c, "graphs.capture_sizes")), 52),
        (lambda c: final(c, "graphs.max_capture_size"), 512),
        (lambda c: said(c, "graph progress", "available_gib"), "11.47"),
        (lambda c: [r.tp for r in c.instances[0].ranks], [0, 1, 2, 3]),
    ],
    "log-008": [
        (lambda c: term(c, "weights", "TP0"), 3.76),
        (lambda c: term(c, "weights", "TP1"), 3.76),
        (tokens, 580364),
        (lambda c: gib(pool(c).bytes), 8.3),
        (lambda c: (said(c, "mamba pool", "conv_gib"), said(c, "mamba pool", "ssm_gib")), ("0.13", "7.29")),
        (lambda c: gib(pool(c, "Mamba state").bytes), 7.42),
        (lambda c: plain(pool(c, "Mamba state").blocks), 82),
        (lambda c: free(c, "TP0", "after the pools"), 4.02),
        (lambda c: term(c, "left free", "TP0"), 3.63),
        (lambda c: final(c, "model.max_model_len"), 8192),
        (lambda c: final(c, "kv.dtype"), "bfloat16"),
        (lambda c: final(c, "model.dtype"), "bfloat16"),
        (lambda c: final(c, "scheduler.max_num_batched_tokens"), 2048),
        (lambda c: final(c, "scheduler.max_num_seqs"), 1),
        (lambda c: said(c, "capacity", "prefill_tokens"), "16384"),
        (lambda c: said(c, "linear attention", "models"), "hybrid GDN"),
        (lambda c: [plain(p.seconds) for p in c.boot if p.name == "load weights"], [654.79]),
        (lambda c: said(c, "weights end", "architecture"), "Qwen3_5MoeForConditionalGeneration"),
    ],
    "log-032": [
        (lambda c: term(c, "weights"), 125.65),
        (lambda c: free(c, "the only rank", "after loading"), 12.25),
        (lambda c: final(c, "model.quantization"), "fp8"),
        (lambda c: "0.88" in (c.failure.cause or "") if c.failure else None, True),
        (lambda c: c.failure.stage if c.failure else None, "size the KV cache"),
        (lambda c: c.failure.would_fit if c.failure else "none", None),
    ],
    "log-040": [
        (lambda c: free(c, "TP7", "after loading"), 22.01),
        (lambda c: [free(c, tp, "after the pools") for tp in ("TP6", "TP4", "TP0")], [18.61, 18.66, 18.66]),
        (
            lambda c: (c.failure.stage, c.failure.exit) if c.failure else None,
            ("capture graphs", "Exception in run_tp_server:"),
        ),
        (lambda c: said(c, "weights end", "architecture"), "DeepseekV2ForCausalLM"),
    ],
    "log-041": [
        (lambda c: [free(c, tp, "after loading") for tp in ("TP1", "TP0")], [20.62, 20.91]),
        (lambda c: [free(c, tp, "after the pools") for tp in ("TP1", "TP0", "TP7")], [18.2, 18.48, 18.48]),
        (lambda c: c.failure, None),
    ],
    "log-042": [
        (lambda c: [term(c, "weights", tp) for tp in ("TP0", "TP1", "TP7")], [40.46] * 3),
        (lambda c: [free(c, tp, "after loading") for tp in ("TP0", "TP1", "TP7")], [35.52, 35.52, 36.63]),
        (lambda c: [free(c, tp, "after the pools") for tp in ("TP0", "TP5", "TP6")], [16.08, 16.07, 17.18]),
        (lambda c: term(c, "free before loading", "TP0"), 75.98),
    ],
    "log-043": [
        (lambda c: term(c, "weights"), 8.13),
        (lambda c: free(c, "TP0", "after loading"), 131.08),
        (tokens, 834615),
        (lambda c: term(c, "KV cache"), 108.24),
        (lambda c: free(c, "TP0", "after the pools"), 14.61),
        (lambda c: free(c, "TP0", "before the graphs (decode)"), 13.95),
        (lambda c: said(c, "graph progress", "available_gib"), "9.72"),
        (lambda c: plain(rank(c).graphs.captured), 23),
    ],
    "log-077": [
        (tokens, 2227073),
        (lambda c: term(c, "KV cache"), 203.9),
        (lambda c: free(c, "the only rank", "after the pools"), 60.65),
        (lambda c: final(c, "kv.dtype"), "bfloat16"),
        (lambda c: (c.failure.exit if c.failure else "").startswith("Scheduler hit an exception"), True),
    ],
    "log-078": [
        (lambda c: term(c, "weights"), 56.98),
        (lambda c: free(c, "the only rank", "after loading"), 230.2),
        (tokens, 1669816),
        (lambda c: term(c, "KV cache"), 152.88),
        (lambda c: free(c, "the only rank", "after the pools"), 74.01),
        (lambda c: (said(c, "graph progress", "done"), said(c, "graph progress", "total")), ("1", "52")),
        (lambda c: [plain(p.seconds) for p in c.boot], [19.09]),
    ],
    "log-079": [
        (lambda c: [term(c, "communication", tp) for tp in ("TP7", "TP6", "TP0")], [1.77, 2.01, 1.96]),
        (lambda c: [term(c, "free before loading", tp) for tp in ("TP5", "TP0", "TP7")], [137.29, 137.34, 137.52]),
        (lambda c: said(c, "checkpoint shards", "total"), "30"),
    ],
    "log-108": [
        (lambda c: final(c, "kv.gpu_memory_utilization"), 0.9),
        (lambda c: final(c, "scheduler.max_num_batched_tokens"), 8192),
        (lambda c: argument(c, "max_prefill_tokens"), 16384),
        (lambda c: argument(c, "max_total_tokens"), None),
        (lambda c: argument(c, "disable_cuda_graph"), True),
        (lambda c: final(c, "graphs.mode"), "none"),
        (lambda c: final(c, "parallel.tp"), 2),
        (lambda c: final(c, "model.quantization"), "gptq_marlin"),
        (lambda c: final(c, "scheduler.policy"), "lpm"),
        (lambda c: final(c, "kv.prefix_caching"), True),
        (lambda c: c.launch.model, "/models/Qwen2.5-72-int4"),
    ],
    "log-109": [
        (lambda c: final(c, "kv.gpu_memory_utilization"), 0.88),
        (lambda c: argument(c, "max_prefill_tokens"), 4096),
        (lambda c: final(c, "model.max_model_len"), 4096),
        (lambda c: final(c, "model.dtype"), "bfloat16"),
    ],
    "log-110": [
        (lambda c: final(c, "graphs.capture_sizes"), [1, 2, 4, 8, 12, 16, 24, 32]),
        (lambda c: final(c, "graphs.max_capture_size"), 32),
        (lambda c: argument(c, "enable_piecewise_cuda_graph"), False),
        (lambda c: argument(c, "piecewise_cuda_graph_max_tokens"), 4096),
        (lambda c: argument(c, "enable_mixed_chunk"), False),
        (lambda c: final(c, "scheduler.async_scheduling"), True),
        (lambda c: any("piecewise_cuda_graph_tokens" in note for note in c.notes), True),
    ],
    "log-121": [
        (tokens, 975424),
        (lambda c: term(c, "KV cache"), 43.67),
        (lambda c: pool(c).groups[0].kind, "mla"),
        (lambda c: free(c, "DP0 TP0", "after the pools"), 37.71),
        (lambda c: (rank(c).dp, rank(c).tp), (0, 0)),
    ],
    "log-132": [
        (lambda c: (said(c, "graph progress", "size"), said(c, "graph progress", "total")), ("3968", "58")),
        (lambda c: c.failure.stage if c.failure else None, "capture graphs"),
        (lambda c: gib(c.failure.numbers["available_bytes"]) if c.failure else None, 0.05),
        (lambda c: "Out of memory" in (c.failure.cause or "") if c.failure else None, True),
    ],
}

NOT_IN_THE_LINES = {
    "log-002": ["mem_fraction_static 0.93", "tp 4"],
    "log-032": ["minimum fraction 0.9113", "draft weights 3.07 GiB"],
    "log-041": ["illegal memory access"],
    "log-042": ["stuck at CUDA graph capture"],
    "log-077": ["attention backend aiter", "out of memory in init_attention_backends"],
    "log-078": ["mem_fraction_static and workspace: prints of a debugging build, not SGLang's lines"],
    "log-121": ["dp 8"],
}
"""Facts of the records that their excerpts do not hold."""


@pytest.mark.parametrize("record", RECORDS)
def test_facts(record: str, read: Read) -> None:
    capture = read(RECORDS[record])
    assert FACTS[record], "a record without a fact"
    for at, expected in FACTS[record]:
        assert at(capture) == expected


@pytest.mark.parametrize("record", RECORDS)
def test_evidence_stands_in_the_log(record: str, read: Read) -> None:
    """What cites the log cites its text; a number that is cited stands there as printed."""
    text = re.sub(r"\s+", "", RECORDS[record].replace("**", ""))
    for known in every_known(read(RECORDS[record])):
        assert known.evidence, known
        if known.evidence.source == "log":
            assert re.sub(r"\s+", "", known.evidence.where) in text
            assert known.evidence.line


@pytest.mark.parametrize("record", RECORDS)
def test_version_is_never_guessed(record: str, read: Read) -> None:
    assert plain(read(RECORDS[record]).identity.version) is None


def test_secrets_are_not_kept(read: Read) -> None:
    text = RECORDS["log-108"].replace("api_key=None", "api_key='sk-very-secret-0123456789'")
    assert "very-secret" not in read(text).model_dump_json()
