"""Real fragments of vLLM's logs from public threads: every fact that their lines state is read, and nothing else."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from engdiff import errors
from engdiff.schema.capture import Capture
from engdiff.schema.values import Known, number
from engdiff.sources.log import LogWishes, read_log
from engdiff.units import GIB, MIB
from tests.engines.vllm.places import at

RECORDS: Mapping[str, str] = {
    record["id"]: record["log_excerpt"]
    for record in map(json.loads, (Path(__file__).parent / "records.jsonl").read_text(encoding="utf-8").splitlines())
}

Fact = tuple[str, object]

FACTS: Mapping[str, tuple[Fact, ...]] = {
    "log-004": (
        ("ledger 0 KV cache", 3.18 * GIB), ("number needed_bytes", 24.0 * GIB), ("number available_bytes", 3.18 * GIB),
        ("number max_model_len", 262144), ("number estimate_tokens", 34736), ("stage", "size the KV cache"),
        ("would fit", "about 34736 tokens would fit"), ("final model.max_model_len", 262144),
    ),
    "log-006": (
        ("pool 0 blocks", 127626), ("pool 0 tokens", 2042016), ("pool 0 max_concurrency", 997.08),
        ("pool 0 concurrency_at_tokens", 2048), ("pool 0 block_tokens", 16),
    ),
    "log-009": (
        ("ledger 0 weights", 7.9692 * GIB), ("ledger 1 device memory", 23.55 * GIB),
        ("ledger 1 vLLM may use", 21.19 * GIB), ("final kv.gpu_memory_utilization", 0.9), ("boot profile memory", 1.46),
    ),
    "log-011": (
        ("ranks", 3), ("ledger 1 device memory", 23.58 * GIB), ("final kv.gpu_memory_utilization", 0.99),
        ("ledger 1 vLLM may use", 23.35 * GIB), ("ledger 0 weights", 21.21 * GIB), ("ledger 2 weights", 21.21 * GIB),
        ("ledger 0 outside torch", 0.20 * GIB), ("ledger 0 activation peak", 0.37 * GIB),
        ("ledger 0 KV cache", 1.57 * GIB), ("pool 2 bytes", 1.57 * GIB),
    ),
    "log-013": (
        ("ranks", 1), ("ledger 0 device memory", 79.19 * GIB), ("final kv.gpu_memory_utilization", 0.8),
        ("ledger 0 vLLM may use", 63.35 * GIB), ("ledger 0 weights", 1.12 * GIB),
        ("ledger 0 outside torch", 0.16 * GIB), ("ledger 0 activation peak", 0.23 * GIB),
        ("ledger 0 KV cache", 61.84 * GIB), ("pool 0 bytes", 61.84 * GIB), ("pool 0 blocks", 36184),
        ("log blocks cpu_blocks", "2340"), ("pool 0 tokens", 578944), ("pool 0 max_concurrency", 70.67),
        ("final model.max_model_len", 8192), ("graphs 0 bytes", 0.13 * GIB), ("graphs 0 seconds", 2),
        ("boot profile, allocate KV, warm up", 5.13), ("failure", None),
    ),
    "log-015": (
        ("ledger 0 graphs", 0.26 * GIB), ("ledger 0 KV cache", 17.36 * GIB), ("pool 0 tokens", 188640),
        ("pool 0 max_concurrency", 5.23), ("final model.max_model_len", 131072),
        ("final kv.gpu_memory_utilization", 0.7), ("log graph memory not counted suggested_utilization", "0.7021"),
        ("final graphs.max_capture_size", 352), ("log graph capping from_tokens", "512"),
        ("log graph capping state_blocks", "361"), ("note", "compare bytes and maximum concurrency"),
    ),
    "log-017": (
        ("ledger 0 KV cache", 15.72 * GIB), ("ledger 1 graphs", 0.17 * GIB), ("final kv.gpu_memory_utilization", 0.92),
        ("log graph memory counted equivalent_utilization", "0.9129"),
        ("log graph memory counted suggested_utilization", "0.9271"),
    ),
    "log-018": (
        ("ledger 0 KV cache", 5.33 * GIB), ("pool 0 tokens", 300220), ("pool 0 max_concurrency", 1.15),
        ("final model.max_model_len", 262144), ("configured model.max_model_len", 262144),
        ("configured kv.dtype", "fp8"),
        ("log padding layers layers", "3"), ("log padding layers waste_percent", "6.25"), ("note", "breaks off"),
        ("origin model.max_model_len", "user"), ("origin kv.dtype", None), ("configured parallel.tp", 2),
    ),
    "log-021": (
        ("pool 0 tokens", 622408), ("pool 0 max_concurrency", 2.37), ("final model.max_model_len", 262144),
        ("configured kv.dtype", "fp8_e5m2"), ("configured scheduler.max_num_batched_tokens", 8192),
        ("configured scheduler.max_num_seqs", 2), ("configured speculative.method", "mtp"),
        ("configured speculative.num_tokens", 3),
    ),
    "log-024": (
        ("ledger 0 KV cache", 5.98 * GIB), ("pool 0 tokens", 567978), ("pool 0 max_concurrency", 4.33),
        ("final model.max_model_len", 131072), ("configured kv.dtype", "fp8"),
        ("configured scheduler.max_num_batched_tokens", 8192), ("configured scheduler.max_num_seqs", 1),
        ("version", "0.24.0"), ("model", "/models/qwen3.6-35b-a3b-nvfp4"),
    ),
    "log-025": (("ledger 0 KV cache", 1.71 * GIB), ("stage", "size the KV cache"), ("ended", "failed")),
    "log-026": (
        ("ledger 0 weights", 65.9651 * GIB), ("ledger 0 KV cache", -2.14 * GIB), ("boot load model", 12.799889),
        ("boot compile", 5.55), ("stage", "size the KV cache"), ("number available_bytes", -2.14 * GIB),
    ),
    "log-030": (
        ("log graph plan plan", "PIECEWISE=41 (largest=384), FULL=25 (largest=192)"), ("graphs 0 captured", 66),
        ("ranks", 4),
    ),
    "log-047": (
        ("ledger 0 KV cache", 2.97 * GIB), ("pool 0 tokens", 150745), ("pool 0 concurrency_at_tokens", 124000),
        ("final model.max_model_len", 124000), ("graphs 0 bytes", 0.46 * GIB), ("graphs 0 seconds", 1),
    ),
    "log-048": (
        ("ledger 0 graphs", 118.65 * GIB), ("cause", "nothing is left for the KV cache"), ("dp 0", 1), ("tp 0", 1),
        ("ep 0", 3),
    ),
    "log-049": (
        ("graphs 0 bytes", -0.19 * GIB), ("ledger 0 graphs", 2.43 * GIB), ("log graph pool difference_gib", "2.62"),
        ("final kv.gpu_memory_utilization", 0.86), ("log graph memory counted equivalent_utilization", "0.8400"),
    ),
    "log-050": (
        ("pool 0 tokens", 302921), ("pool 0 max_concurrency", 2.31), ("final model.max_model_len", 131072),
    ),
    "log-052": (
        ("log TPU pages page_bytes", "262144"), ("log TPU pages actual_page_bytes", "524288"),
        ("log blocks overridden profiled_blocks", "8676"), ("pool 0 blocks", 4338),
    ),
    "log-055": (
        ("number needed_bytes", 4.43 * GIB), ("number available_bytes", 3.48 * GIB), ("number max_model_len", 116160),
        ("ledger 0 KV cache", 3.48 * GIB), ("final model.max_model_len", 116160),
    ),
    "log-057": (
        ("ledger 0 KV cache", 2.30 * GIB), ("pool 0 tokens", 75840), ("pool 0 max_concurrency", 2.48),
        ("final model.max_model_len", 120000), ("log padding layers layers", "1"),
        ("log padding layers waste_percent", "5.00"), ("backend", "TritonMLABackend"),
        ("final graphs.mode", "PIECEWISE"),
        ("log graph mode asked", "FULL_AND_PIECEWISE"), ("boot compile", 11.68), ("failure", None),
        ("note", "is not maximum concurrency x length"),
    ),
    "log-058": (
        ("log memory summary free_gib", "60.86"), ("ledger 0 device memory", 61.27 * GIB),
        ("final kv.gpu_memory_utilization", 0.9), ("ledger 0 vLLM may use", 55.14 * GIB),
        ("ledger 0 weights", 1.14 * GIB), ("ledger 0 activation peak", 0.22 * GIB),
        ("ledger 0 outside torch", 0.13 * GIB), ("graphs 0 bytes", 0.04 * GIB),
        ("log suggested KV bytes suggested_bytes", "57403864576"), ("log suggested KV bytes suggested_gib", "53.46"),
    ),
    "log-060": (
        ("configured parallel.dp", 8), ("configured kv.gpu_memory_utilization", 0.95), ("configured kv.dtype", "fp8"),
        ("configured scheduler.max_num_batched_tokens", 8192), ("configured scheduler.max_num_seqs", 256),
        ("configured kv.block_size", 256), ("version", "0.25.0"), ("note", "breaks off in `attention_config`"),
    ),
    "log-063": (
        ("pool 0 tokens", 290864), ("pool 0 max_concurrency", 33.04), ("final model.max_model_len", 32768),
        ("note", "is not maximum concurrency x length"),
    ),
    "log-065": (
        ("final kv.block_size", 1648), ("log mamba padding padding_percent", "0.73"),
        ("log encoder budget budget_tokens", "16384"),
    ),
    "log-067": (
        ("ledger 0 weights", 5.2032 * GIB), ("ledger 0 device memory", 8.0 * GIB),
        ("final kv.gpu_memory_utilization", 0.7), ("ledger 0 vLLM may use", 5.6 * GIB),
        ("ledger 0 outside torch", 0.03 * GIB), ("ledger 0 activation peak", 1.42 * GIB),
        ("ledger 0 KV cache", -1.05 * GIB), ("pool 0 blocks", 0), ("log blocks cpu_blocks", "4681"),
        ("pool 0 max_concurrency", 0.0), ("final model.max_model_len", 4096), ("number available_bytes", -1.05 * GIB),
    ),
    "log-068": (
        ("ledger 0 device memory", 15.77 * GIB), ("final kv.gpu_memory_utilization", 0.9),
        ("ledger 0 vLLM may use", 14.20 * GIB), ("ledger 0 weights", 7.51 * GIB),
        ("ledger 0 outside torch", 0.39 * GIB),
        ("ledger 0 activation peak", 2.53 * GIB), ("ledger 0 KV cache", 3.76 * GIB), ("pool 0 blocks", 3852),
        ("log blocks cpu_blocks", "4096"), ("pool 0 tokens", 61632), ("pool 0 max_concurrency", 1.54),
        ("final model.max_model_len", 40000),
    ),
    "log-069": (
        ("ledger 0 device memory", 79.33 * GIB), ("final kv.gpu_memory_utilization", 0.89),
        ("ledger 0 vLLM may use", 70.60 * GIB), ("ledger 0 weights", 32.95 * GIB),
        ("ledger 0 outside torch", 0.28 * GIB),
        ("ledger 0 activation peak", 1.30 * GIB), ("ledger 1 activation peak", 0.73 * GIB),
        ("ledger 0 KV cache", 36.07 * GIB), ("ledger 1 KV cache", 36.63 * GIB), ("pool 1 bytes", 36.07 * GIB),
        ("pool 0 blocks", 29547), ("log blocks cpu_blocks", "3276"), ("pool 0 tokens", 472752),
        ("pool 0 max_concurrency", 3.61), ("final model.max_model_len", 131072), ("note", "the smallest decides"),
    ),
    "log-072": (
        ("final model.max_model_len", 131072), ("final model.dtype", "bfloat16"), ("final kv.dtype", "auto"),
        ("final kv.prefix_caching", False), ("config num_scheduler_steps", 1),
        ("final structured_outputs.backend", "outlines"), ("version", "0.6.1.dev238+ge2c6e0a82"),
        ("model", "meta-llama/Llama-3.2-3B-Instruct"),
    ),
    "log-075": (
        ("ranks", 4), ("ledger 0 weights", 14.2474 * GIB), ("ledger 3 weights", 14.2474 * GIB),
        ("boot load weights", 558.63), ("boot load model", 559.045517), ("tp 3", 3),
    ),
    "log-090": (
        ("ledger 0 weights", 19.75 * GIB), ("boot load model", 6.356814), ("final kv.block_size", 1568),
        ("log mamba padding padding_percent", "0.13"), ("log encoder budget budget_tokens", "16384"),
        ("final kv.dtype", "fp8_e4m3"),
    ),
    "log-093": (("ledger 0 KV cache", 10.55 * GIB), ("version", None)),
    "log-095": (
        ("final kv.gpu_memory_utilization", 0.95), ("log graph memory counted equivalent_utilization", "0.9225"),
        ("log graph memory counted suggested_utilization", "0.9775"), ("ranks", 1), ("tp 0", 4),
    ),
    "log-096": (
        ("backend", "FLASHINFER"), ("candidates", "['FLASHINFER']"), ("final scheduler.async_scheduling", True),
        ("log checkpoint shards shards", "5"), ("boot load weights", 3.04),
    ),
    "log-099": (("backend", "XFormers"), ("log attention refused because",
     "Cannot use FlashAttention-2 backend for Volta and Turing GPUs")),
    "log-101": (
        ("final model.max_model_len", 32768), ("final scheduler.max_num_batched_tokens", 2048),
        ("final model.dtype", "bfloat16"), ("final scheduler.chunked_prefill", True), ("configured parallel.tp", 2),
        ("final parallel.tp", 2), ("origin parallel.tp", "user"), ("version", "0.10.2.dev378+g4d7fe40fc.d20250829"),
        ("note", "breaks off"),
    ),
    "log-103": (
        ("ledger 0 weights", 13.72 * GIB), ("boot load model", 62.336108), ("ledger 0 KV cache", 36.56 * GIB),
        ("configured model.max_model_len", 131072), ("configured kv.gpu_memory_utilization", 0.65),
        ("version", "0.19.0"), ("model", "openai/gpt-oss-20b"), ("ranks", 1),
    ),
    "log-104": (
        ("ledger 0 weights", 48.5 * GIB), ("boot load model", 10.090812), ("ledger 0 KV cache", 21.5 * GIB),
    ),
    "log-105": (
        ("configured model.max_model_len", 98304), ("configured scheduler.max_num_seqs", 6),
        ("final scheduler.max_num_batched_tokens", 2048), ("configured kv.gpu_memory_utilization", 0.96),
        ("version", "0.11.2"),
    ),
    "log-118": (("ledger 0 KV cache", 46.80 * GIB), ("pool 0 tokens", 715072), ("ranks", 1)),
    "log-120": (
        ("number needed_bytes", 9.8 * GIB), ("number available_bytes", 4.81 * GIB), ("number max_model_len", 1048576),
        ("ledger 0 KV cache", 4.81 * GIB), ("final model.max_model_len", 1048576), ("stage", "size the KV cache"),
        ("would fit", "with 4.99 GiB more it would have fitted"),
    ),
    "log-125": (
        ("ledger 0 weights", 18.4902 * GIB), ("ledger 1 weights", 18.4902 * GIB),
        ("ledger 0 device memory", 79.15 * GIB), ("ledger 0 torch peak", 34.50 * GIB),
        ("ledger 1 torch peak", 34.32 * GIB), ("ledger 0 outside torch", 1.96 * GIB),
        ("ledger 0 KV cache", 34.78 * GIB), ("ledger 1 KV cache", 34.96 * GIB), ("pool 1 bytes", 34.78 * GIB),
        ("pool 0 blocks", 189945), ("log blocks cpu_blocks", "21845"), ("pool 0 tokens", 3039120),
        ("pool 0 max_concurrency", 2967.89), ("final model.max_model_len", 1024),
        ("final kv.gpu_memory_utilization", 0.9),
    ),
    "log-126": (
        ("ledger 0 weights", 244.61 * MIB), ("pool 0 blocks", 76240), ("log blocks cpu_blocks", "7281"),
        ("pool 0 tokens", 1219840), ("final model.max_model_len", 2048), ("final model.dtype", "float16"),
        ("note", "16 tokens, the default"), ("version", None),
    ),
    "log-128": (
        ("pool 0 tokens", 1823372), ("pool 0 max_concurrency", 1.74), ("final model.max_model_len", 1048576),
        ("log padding layers layers", "3"), ("log padding layers waste_percent", "6.25"),
    ),
    "log-129": (("final kv.dtype", "nvfp4_ds_mla"),),
    "log-133": (
        ("number max_model_len", 163840), ("number kv_tokens", 13360), ("pool 0 tokens", 13360),
        ("final model.max_model_len", 163840), ("would fit", "13360 tokens fit"),
    ),
}  # fmt: skip

NOT_IN_THE_LINES: Mapping[str, str] = {
    "log-004": "pp, utilisation: of the thread",
    "log-025": "utilisation and the message of the check: of the thread",
    "log-047": "utilisation, cache type, backend, the error: of the thread; `0.46 G` is cut, its unit is not in doubt",
    "log-048": "dp 4: of the command",
    "log-049": "tokens of two runs, length: of the thread",
    "log-050": "cache bytes and type, utilisation, block size: of the thread",
    "log-052": "cache type: of the thread",
    "log-055": "utilisation: of the thread",
    "log-057": "utilisation, batch sizes: of the thread",
    "log-063": "batch sizes: of the command",
    "log-065": "the V2 runner: by the name of a file, which the log's reader does not guess from",
    "log-067": "the error's text: cut",
    "log-068": "the error: of another run",
    "log-075": "the error: of the thread",
    "log-093": "version, length, torch: prose round the log",
    "log-094": "a table that a person wrote",
    "log-102": "lines of LMCache only",
    "log-103": "quantisation: of the thread",
    "log-104": "length, utilisation, eager: of the command",
    "log-120": "the two runs: of the thread",
    "log-128": "cache type: of the thread",
    "log-129": "everything but the cache format: of the thread",
}
"""Facts of the records that are not in their lines."""

FOREIGN = ("log-094", "log-102")
"""No line of vLLM's own in them."""


def read(text: str, tmp_path: Path) -> Capture:
    path = tmp_path / "server.log"
    path.write_text(text, encoding="utf-8")
    return read_log([path], LogWishes())


@pytest.mark.parametrize(
    ("record", "place", "expected"),
    [(record, place, value) for record, facts in FACTS.items() for place, value in facts],
)
def test_every_fact_of_the_lines(record: str, place: str, expected: object, tmp_path: Path) -> None:
    found = at(read(RECORDS[record], tmp_path), place)
    if isinstance(expected, float):
        assert found == pytest.approx(expected, rel=1e-6, abs=1)
    elif place in ("note", "cause"):
        assert str(expected) in str(found)
    else:
        assert found == expected


@pytest.mark.parametrize("record", FOREIGN)
def test_what_vllm_did_not_write(record: str, tmp_path: Path) -> None:
    with pytest.raises(errors.LogForeign):
        read(RECORDS[record], tmp_path)


def test_every_record_is_accounted_for() -> None:
    assert set(RECORDS) == {*FACTS, *FOREIGN}
    assert set(NOT_IN_THE_LINES) <= set(RECORDS)


@pytest.mark.parametrize("record", sorted(set(RECORDS) - set(FOREIGN)))
def test_every_number_stands_in_the_text_that_it_cites(record: str, tmp_path: Path) -> None:
    for name, value in known(read(RECORDS[record], tmp_path)):
        if value.evidence is None or value.evidence.source != "log" or isinstance(value.value, bool | list | dict):
            continue
        size = number(value)
        if size is None:
            continue
        printed = [float(text.replace(",", "")) for text in re.findall(r"-?\d[\d,]*(?:\.\d+)?", value.evidence.where)]
        units = (1, GIB, MIB)
        assert any(abs(p * unit - size) <= 1 for p in printed for unit in units), (name, value)


def known(capture: Capture) -> list[tuple[str, Known]]:
    """Every known value of a capture."""
    found: list[tuple[str, object]] = [("version", capture.identity.version)]
    found += [(f"{k} {layer}", getattr(s, layer)) for k, s in capture.settings.items() for layer in LAYERS]
    found += [(p.name, p.seconds) for p in capture.boot]
    for instance in capture.instances:
        for rank in instance.ranks:
            found += [(t.name, t.bytes) for t in rank.ledger]
            found += [(n, getattr(pool, n)) for pool in rank.pools for n in POOL]
            found += [("graphs", getattr(rank.graphs, n)) for n in ("bytes", "seconds", "captured", "sizes")]
    return [(name, value) for name, value in found if isinstance(value, Known)]


LAYERS = ("configured", "resolved", "effective")
POOL = ("bytes", "blocks", "block_tokens", "tokens", "max_concurrency", "concurrency_at_tokens")
