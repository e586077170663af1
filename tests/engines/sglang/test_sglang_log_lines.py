"""Lines of SGLang by version, with what is around them and with what they must not be taken for."""

from __future__ import annotations

from pathlib import Path

import pytest

from engdiff.engines.sglang import log
from engdiff.engines.sglang.engine import ENGINE
from engdiff.errors import LogForeign
from engdiff.schema.values import Known, plain
from engdiff.units import GIB
from tests.engines.conftest import Read
from tests.engines.sglang.facts import argument, final, gib, pool, rank, said, term, tokens

AT = "[2026-01-02 03:04:05"

DATA = Path(__file__).parent / "data"
OLD, MIDDLE, NEW = ((DATA / f"{name}.log").read_text() for name in ("0.2", "0.5.2-draft", "0.5.23-windows"))
"""Written by hand after the engine's sources: a first release, one with a draft model, one with sliding windows."""


@pytest.mark.parametrize(
    ("line", "process", "ranks", "level", "message"),
    [
        ("[00:00:01 TP7] Load", "TP7", {"tp": 7}, None, "Load"),
        ("[2025-01-01 00:00:01] Load", "", {}, None, "Load"),
        (
            "[2025-01-01 00:00:01.123 DP1 PP0 TP3 EP3] Load",
            "DP1 PP0 TP3 EP3",
            {"dp": 1, "pp": 0, "tp": 3, "ep": 3},
            None,
            "Load",
        ),
        ("[2025-01-01 00:00:01 ATTN_CP1 MOE_DP2 TP3] Load", "ATTN_CP1 MOE_DP2 TP3", {"tp": 3}, None, "Load"),
        ("[gpu=1] Load", "gpu=1", {"tp": 1}, None, "Load"),
        ("[00:00:01] [gpu=1] Load", "gpu=1", {"tp": 1}, None, "Load"),
        ("WARNING:sglang.srt.server_args:Load", "", {}, "WARNING", "Load"),
        ("[2025-01-01 00:00:01] INFO:     Load", "", {}, "INFO", "Load"),
        ("(SchedulerActor pid=12, ip=10.0.0.1) [2025-01-01 00:00:01 TP1] Load", "TP1", {"tp": 1}, None, "Load"),
    ],
)
def test_prefix(line: str, process: str, ranks: dict[str, int], level: str | None, message: str) -> None:
    found = log.said(line)
    assert (found.process, dict(found.ranks), found.level, found.text) == (process, ranks, level, message)
    assert found.prefixed


@pytest.mark.parametrize(
    "line", ["Capturing batches (avail_mem=1.00 GB):   0%|", "Traceback (most recent call last):", ""]
)
def test_no_prefix(line: str) -> None:
    assert not log.said(line).prefixed


def test_2024(read: Read) -> None:
    capture = read(OLD)
    assert capture.failure is None
    assert capture.reading
    assert capture.reading.starts[0].ended == "ready"
    assert term(capture, "free before loading") == 78.58
    assert final(capture, "scheduler.max_num_seqs") == 2047
    assert final(capture, "model.max_model_len") == 8192
    assert final(capture, "kv.prefix_caching") is False
    assert plain(capture.run_summary["prefill batch.cache_hit_percent"])["last"] == 12.5  # type: ignore[index, call-overload]
    assert "scheduler.max_num_batched_tokens" not in capture.settings


def test_2025_with_a_draft_model(read: Read) -> None:
    capture = read(MIDDLE)
    assert capture.failure is None
    assert tokens(capture) == 900000
    assert gib(pool(capture).bytes) == 54.8
    assert gib(pool(capture, "draft KV cache").bytes) == 1.72
    assert gib(capture.settings["kv.pool_bytes"].effective) == 54.8
    assert (term(capture, "weights"), term(capture, "draft weights")) == (7.5, 1.0)
    assert (term(capture, "graphs"), term(capture, "draft graphs")) == (1.4, 0.3)
    assert term(capture, "communication") == 1.25
    assert term(capture, "left free") == 9.8
    assert term(capture, "static share") == round(77.5 * 0.85, 2)
    assert final(capture, "kernels.attention_backend") == "fa3"
    assert final(capture, "graphs.capture_sizes") == [1, 2, 4, 8]
    assert [(p.name, plain(p.seconds)) for p in capture.boot] == [
        ("capture graphs", 9.51),
        ("capture draft graphs", 4.0),
    ]
    assert plain(pool(capture).max_concurrency) == round(900000 / 131072, 2)
    decode = plain(capture.run_summary["decode batch.accepted_length"])
    assert isinstance(decode, dict)
    assert decode["mean"] == 2.75
    assert plain(capture.run_summary["retraction.retracted_requests"])["lines"] == 1  # type: ignore[index, call-overload]


def test_2026_with_sliding_windows(read: Read) -> None:
    capture = read(NEW)
    assert capture.failure is None
    assert tokens(capture, "KV cache (full attention)") == 800000
    assert tokens(capture, "KV cache (sliding window)") == 640000
    assert gib(capture.settings["kv.pool_bytes"].effective) == 32.96
    assert plain(pool(capture, "KV cache (full attention)").blocks) == 12500
    assert (term(capture, "graphs"), term(capture, "prefill graphs")) == (0.75, 0.5)
    assert final(capture, "graphs.mode") == "full"
    assert final(capture, "graphs.max_capture_size") == 16
    assert plain(rank(capture).graphs.prefill_sizes) == [4, 64]
    assert final(capture, "kv.block_size") == 64
    assert final(capture, "model.quantization") == "mxfp4"
    assert final(capture, "kv.dtype") == "bfloat16"
    assert final(capture, "scheduler.async_scheduling") is False
    assert [w.level for w in capture.warnings] == ["warning"]
    assert said(capture, "tree cache", "class") == "UnifiedRadixCache"
    assert capture.settings["graphs.capture_sizes"].native == "cuda_graph_config.decode.bs"
    assert plain(capture.run_summary["decode batch.token_usage"])["last"] == 0.1  # type: ignore[index, call-overload]
    assert plain(capture.run_summary["decode batch.swa_token_usage"])["last"] == 0.05  # type: ignore[index, call-overload]
    assert {d.kind for d in capture.identity.devices} == {"gpu"}


@pytest.mark.parametrize("first", ["swa", "full"])
def test_sliding_window_pools_in_either_order(read: Read, first: str) -> None:
    """Up to 0.5.15 the window's pool is made first, later the other; neither is the draft model's."""
    lines = [
        f"{AT}] KV Cache is allocated. #tokens: 640, K size: 7.32 GB, V size: 7.32 GB",
        f"{AT}] KV Cache is allocated. #tokens: 800, K size: 9.16 GB, V size: 9.16 GB",
    ]
    capture = read("\n".join(lines if first == "swa" else lines[::-1]))
    assert tokens(capture, "KV cache (full attention)") == 800
    assert tokens(capture, "KV cache (sliding window)") == 640
    assert term(capture, "draft KV cache") is None


def test_the_smallest_pool_of_the_ranks_counts(read: Read) -> None:
    text = "\n".join(
        f"{AT} TP{tp}] KV Cache is allocated. #tokens: {1000 + tp}, K size: {size} GB, V size: {size} GB"
        for tp, size in enumerate(("2.00", "1.00", "1.50"))
    )
    capture = read(text)
    assert gib(capture.settings["kv.pool_bytes"].effective) == 2.0
    assert [gib(r.pools[0].bytes) for r in capture.instances[0].ranks] == [4.0, 2.0, 3.0]


def test_ranks_without_a_name_are_not_added_up(read: Read) -> None:
    line = "KV Cache is allocated. #tokens: 1000, K size: 2.00 GB, V size: 2.00 GB"
    end = "Memory pool end. avail mem=5.00 GB"
    capture = read("\n".join([line, line, end, line, end]))
    assert len(rank(capture).pools) == 1
    assert term(capture, "KV cache") == 4.0
    assert term(capture, "draft KV cache") is None


def test_pool_sized_after_the_graphs(read: Read) -> None:
    """What was reserved is address space; the pool is what is said last."""
    capture = read(
        f"{AT}] KV Cache VA upper bound. dtype: torch.bfloat16, #tokens: 9000, K size: 60.00 GB, V size: 60.00 GB\n"
        f"{AT}] Memory pool end. avail mem=60.00 GB\n"
        f"{AT}] Post-capture KV sizing: KV cache allocated. dtype: torch.bfloat16, #tokens: 4000, "
        "KV size: 50.00 GB, avail mem=9.00 GB\n"
    )
    assert tokens(capture) == 4000
    assert term(capture, "KV cache") == 50.0


def test_progress_on_one_line_with_carriage_returns(read: Read) -> None:
    bars = "\r".join(
        f"Capturing batches (bs={bs} avail_mem={free} GB): {done * 25:3d}%|██ | {done}/4 [00:0{done}<00:03,  1.00it/s]"
        for done, (bs, free) in enumerate([(8, "3.00"), (4, "2.90"), (2, "2.80"), (1, "2.70")])
    )
    capture = read(f"{AT}] Capture cuda graph begin. This can take up to several minutes. avail mem=3.10 GB\n{bars}\n")
    assert [said(capture, "graph progress", g) for g in ("size", "available_gib", "done", "total")] == [
        "1",
        "2.70",
        "3",
        "4",
    ]


def test_a_message_behind_a_bar(read: Read) -> None:
    """The bar ends without a newline; what another rank says stands on the same line."""
    bar = "Capturing batches (bs=8 avail_mem=3.00 GB):   0%|          | 0/4 [00:00<?, ?it/s]"
    capture = read(f"{AT} TP0] Memory pool end. avail mem=3.50 GB\n{bar}{AT} TP1] Memory pool end. avail mem=3.25 GB\n")
    assert term(capture, "left free", "TP1") == 3.25
    assert said(capture, "graph progress", "total") == "4"


def test_a_number_without_its_end_is_not_read(read: Read) -> None:
    whole = f"{AT}] Load weight begin. avail mem=77.50 GB"
    cut = f"{AT}] Load weight end. type=LlamaForCausalLM, dtype=torch.bfloat16, avail mem=7"
    capture = read(f"{whole}\n{cut}")
    assert [t.name for t in rank(capture).ledger] == ["free before loading"]


def test_units(read: Read) -> None:
    """GB is GiB; of host memory it is 1e9 bytes; MB of states are not read as anything else."""
    capture = read(
        f"{AT} TP0] Load weight end. type=A, dtype=torch.bfloat16, avail mem=70.00 GB, mem usage=7.50 GB.\n"
        f"{AT} TP0] Allocating 12.50 GB host memory for hierarchical KV cache.\n"
    )
    weights = next(t for t in rank(capture).ledger if t.name == "weights").bytes
    assert isinstance(weights, Known)
    assert weights.value == 7.5 * GIB
    assert weights.low == (7.5 - 0.005) * GIB
    assert plain(capture.settings["kv.offload_bytes"].effective) == 12_500_000_000


def test_restart_in_one_file(read: Read) -> None:
    failed = MIDDLE.split(f"{AT} TP0] KV Cache")[0] + (
        f"{AT} TP0] Scheduler hit an exception: Traceback (most recent call last):\n"
        "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.\n"
        f"{AT}] Received sigquit from a child process. It usually means the child failed.\n"
    )
    capture = read(failed + NEW)
    assert capture.reading
    assert [s.ended for s in capture.reading.starts] == ["failed", "ready"]
    assert capture.failure is None
    assert argument(capture, "page_size") == 64
    first = read(failed + NEW, start=1)
    assert first.failure
    assert first.failure.stage == "size the KV cache"
    assert "Nothing is left" in (first.failure.cause or "")


def test_rows_of_a_terminal(read: Read) -> None:
    """Cut inside a name and behind a comma; nothing is read under half a name."""
    line = MIDDLE.splitlines()[0]
    at, comma = line.index("mem_fraction") + 4, line.index(" attention_backend")
    capture = read("\n".join([line[:at], line[at:comma], line[comma + 1 :], MIDDLE.splitlines()[1]]))
    assert argument(capture, "mem_fraction_static") == 0.85
    assert final(capture, "parallel.tp") == 2
    assert not any("server_args" in note for note in capture.notes)


@pytest.mark.parametrize(
    "wrapper", ["sglang-1  | ", "2026-01-02T03:04:05.123456789Z ", "Jan 02 03:04:05 host sglang[12]: ", "\x1b[32m"]
)
def test_wrappers(read: Read, wrapper: str) -> None:
    capture = read("".join(f"{wrapper}{line}\n" for line in MIDDLE.splitlines()))
    assert tokens(capture) == 900000
    assert argument(capture, "mem_fraction_static") == 0.85


def test_requests_are_no_lines_of_the_engine(read: Read) -> None:
    with pytest.raises(LogForeign):
        read('INFO:     127.0.0.1:1 - "GET /get_model_info HTTP/1.1" 200 OK\nINFO:     Uvicorn running on http://x\n')


FAILURES = [
    (
        "ValueError: Loaded weights leave no GPU memory for the KV cache under --mem-fraction-static=0.88. Raise "
        "--mem-fraction-static above 0.912 (minimum viable = 1 - available/pre = 0.9113). If using speculative "
        "decoding, draft weights are now counted.",
        "static share",
        "size the KV cache",
        "0.9113",
    ),
    (
        "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.",
        "Nothing is left",
        "size the KV cache",
        None,
    ),
    (
        "RuntimeError: Not enough GPU memory for hybrid (mamba/linear-attention) state cache. Computed "
        "max_mamba_cache_size=0 (total_rest_memory=1.25 GB, mamba_cache_per_req=75.00 MB).",
        "75.00 MiB",
        "size the KV cache",
        None,
    ),
    (
        "ValueError: Not enough host memory available. Requesting 100.00 GB but only have 60.00 GB free.",
        "100.00 GB",
        "size the KV cache",
        None,
    ),
    (
        "Exception: Capture cuda graph failed: CUDA out of memory. Tried to allocate 2.00 GiB.",
        "graphs were captured",
        "capture graphs",
        None,
    ),
    ("Exception: Capture cuda graph failed: invalid argument", "invalid argument", "capture graphs", None),
    (
        "ValueError: Model architectures ['FooForCausalLM'] are not supported for now. Supported architectures: x",
        "FooForCausalLM",
        "load weights",
        None,
    ),
    ("launch_server.py: error: unrecognized arguments: --enable-foo", "--enable-foo", "configuration", None),
    (
        "launch_server.py: error: argument --schedule-policy: invalid choice: 'x'",
        "--schedule-policy",
        "configuration",
        None,
    ),
    (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.16 GiB.",
        "1.16 GiB",
        None,
        None,
    ),
]


@pytest.mark.parametrize(("words", "cause", "stage", "fits"), FAILURES)
def test_last_words(words: str, cause: str, stage: str | None, fits: str | None) -> None:
    found = ENGINE.cause(f"Traceback (most recent call last):\n{words}\n", "")
    assert found
    assert cause in found.sentence
    assert found.stage == stage
    assert (fits in found.fits if found.fits else False) if fits else not found.fits


@pytest.mark.parametrize("text", [OLD, MIDDLE, NEW])
def test_healthy_logs_have_no_cause(text: str) -> None:
    assert ENGINE.cause(text, "") is None


def test_out_of_memory_while_loading() -> None:
    found = ENGINE.cause(
        f'{AT} TP0] Load weight begin. avail mem=20.00 GB\n  File "model_runner.py", line 1, in load_model\n'
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.16 GiB.\n",
        "",
    )
    assert found
    assert found.stage == "load weights"


@pytest.mark.parametrize(
    ("lines", "stage"),
    [
        (1, "configuration"),
        (5, "load weights"),
        (6, "profile memory"),
        (8, "size the KV cache"),
        (10, "capture graphs"),
        (20, "warm up"),
    ],
)
def test_stage(read: Read, lines: int, stage: str) -> None:
    text = "\n".join(MIDDLE.splitlines()[:lines]) + f"\n{AT} TP0] Scheduler hit an exception: Traceback\n"
    capture = read(text)
    assert capture.failure
    assert capture.failure.stage == stage


def test_names_at_an_unknown_version() -> None:
    assert ENGINE.knowledge.names("0.5.23")["graphs.max_capture_size"].native == "cuda_graph_config.decode.max_bs"
    assert ENGINE.knowledge.names("0.5.12")["graphs.max_capture_size"].native == "cuda_graph_max_bs"


def test_a_field_that_a_cut_left_empty_is_cited_where_it_has_its_value(read: Read) -> None:
    fields = "tp_size=2, stream_interval=1, dtype='auto', load_format='auto', random_seed="
    text = f"{AT}] server_args=ServerArgs(model_path='/m', {fields}\n, {fields}7, context_length=None)\n"
    seed = read(text).settings["model.seed"].resolved
    assert isinstance(seed, Known)
    assert seed.value == 7
    assert seed.evidence is not None
    assert seed.evidence.where == "random_seed=7"
