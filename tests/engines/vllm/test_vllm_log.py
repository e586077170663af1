"""vLLM's log lines without what differs from run to run, and the table of what they state."""

from __future__ import annotations

import re
import time
import tomllib
from importlib.resources import files
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engdiff.engines.vllm import from_log, log
from engdiff.logs.statements import Said

BOOT = (Path(__file__).parent / "data" / "boot-0.32.0.log").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("raw", "text", "level", "process", "pid", "ranks"),
    [
        ("(EngineCore pid=8837) INFO 12-02 14:23:53 [core.py:402] up  ", "up", "INFO", "EngineCore", 8837, {}),
        ("(EngineCore_DP1 pid=1) WARNING 01-31 00:00:00 [a.py:1] x", "x", "WARNING", "EngineCore_DP1", 1, {"dp": 1}),
        ("(EngineCore_0 pid=1) INFO 01-31 00:00:00 [a.py:1] x", "x", "INFO", "EngineCore_0", 1, {"dp": 0}),
        ("(APIServer) ERROR 12-02 14:23:53 [a.py:1] no", "no", "ERROR", "APIServer", None, {}),
        ("(ApiServer_1 pid=7) INFO 12-02 14:23:53 [a.py:1] x", "x", "INFO", "ApiServer_1", 7, {}),
        ("INFO 12-02 14:23:53 [a.py:1] plain", "plain", "INFO", "", None, {}),
        ("INFO 12-02 14:23:53 worker.py:240] V0", "V0", "INFO", "", None, {}),
        ("INFO 12-02 14:23:53 [v1/worker/gpu_worker.py:240] debug paths", "debug paths", "INFO", "", None, {}),
        ("CRITICAL 12-02 14:23:53 without place", "without place", "CRITICAL", "", None, {}),
        ("INFO  [gpu_worker.py:642]  without time", "without time", "INFO", "", None, {}),
        ("INFO [kv_cache_utils.py] without a number", "without a number", "INFO", "", None, {}),
        ("22:07:58  INFO [model_runner.py:1115] only the time of day", "only the time of day", "INFO", "", None, {}),
        ("(VllmWorkerProcess pid=12) INFO 01-01 00:00:01 [w.py:2] m", "m", "INFO", "VllmWorkerProcess", 12, {}),
        ("(VllmWorker rank=3 pid=9) INFO 01-01 00:00:01 [l.py:4] x", "x", "INFO", "VllmWorker rank=3", 9, {"rank": 3}),
        ("(VllmWorker TP2 pid=9) INFO 01-01 00:00:01 [l.py:4] x", "x", "INFO", "VllmWorker TP2", 9, {"tp": 2}),
        ("(VllmWorker-0 pid=9) INFO 01-01 00:00:01 [l.py:4] x", "x", "INFO", "VllmWorker-0", 9, {"rank": 0}),
        (
            "(Worker_DP1_PP0_TP1_EP3 pid=9) INFO 01-01 00:00:01 [l.py:4] x", "x", "INFO", "Worker_DP1_PP0_TP1_EP3", 9,
            {"dp": 1, "pp": 0, "tp": 1, "ep": 3},
        ),
        (
            "(RayWorkerWrapper pid=12, ip=10.0.0.2) INFO 01-01 00:00:01 worker.py:2] m [repeated 3x across cluster]",
            "m", "INFO", "RayWorkerWrapper ip=10.0.0.2", 12, {},
        ),
        (
            "2025-01-01 00:00:01,125 vllm.attention.selector 1001 INFO     Using XFormers backend.",
            "Using XFormers backend.", "INFO", "", 1001, {},
        ),
        (
            '{"asctime": "t", "levelname": "INFO", "name": "vllm", "processName": "EngineCore_DP1", "process": 4, '
            '"message": "hi"}',
            "hi", "INFO", "EngineCore_DP1", 4, {"dp": 1},
        ),
        ("60%|##| 3/5 [0:1](Worker_TP0 pid=7) INFO 01-01 00:00:05 [c.py:2] R", "R", "INFO", "Worker_TP0", 7, {"tp": 0}),
        ("[srv-1] INFO 01-01 00:00:01 [m.py:9] VLLM_LOGGING_PREFIX", "VLLM_LOGGING_PREFIX", "INFO", "", None, {}),
        ("[rank1]: ValueError: x", "ValueError: x", None, "", None, {"rank": 1}),
        ("(Worker pid=9) Traceback (most recent):", "Traceback (most recent):", None, "Worker", 9, {}),
    ],
)  # fmt: skip
def test_prefix(raw: str, text: str, level: str | None, process: str, pid: int | None, ranks: dict[str, int]) -> None:
    assert log.said(raw) == Said(text, process, pid, ranks, level, prefixed=True)


@pytest.mark.parametrize(
    "raw",
    ["(unclosed pid=3 text", "", "GPU KV cache size: 5 tokens", "To serve (at least) one request", '{"broken":', "{}"],
)
def test_a_line_without_a_prefix_may_continue_another(raw: str) -> None:
    assert log.said(raw) == Said(raw)


@pytest.mark.parametrize(
    "raw",
    [
        "(Worker_TP6 pid=1007) 2025-01-01 00:00:00  [TileLang:tilelang.jit.kernel:INFO] (kernel.py:129): begins",
        "(EngineCore_DP0 pid=1001) [2025-01-01 00:00:01,528] LMCache INFO: Initializing (lru.py:20:lmcache)",
        "(EngineCore pid=1001) 2025-01-01 00:00:05,525 - WARNING - autotuner.py:824 - flashinfer.jit: starts",
        "(Worker_TP1 pid=1002) [transformers] The `use_fast` parameter is deprecated",
        "INFO:     Application startup complete.",
    ],
)
def test_lines_of_other_programs_have_a_beginning_of_their_own(raw: str) -> None:
    said = log.said(raw)
    assert said.prefixed
    assert said.level is None
    assert raw.endswith(said.text)


def test_a_prefix_alone_on_its_line_says_nothing() -> None:
    said = log.said("(EngineCore pid=1001)")
    assert (said.text, said.process, said.prefixed) == ("", "EngineCore", True)


# --- the table --------------------------------------------------------------------------------------------------

TABLE = tomllib.loads((files("engdiff.engines.vllm") / "knowledge" / "log.toml").read_text(encoding="utf-8"))["line"]
PATTERNS = {f"{row['name']} {index}": row for index, row in enumerate(TABLE)}

ORDINARY = (
    'INFO:     127.0.0.1:47068 - "GET /health HTTP/1.1" 200 OK',
    'INFO:     10.0.0.1:51234 - "POST /v1/chat/completions HTTP/1.1" 200 OK',
    "INFO 01-01 00:00:01 [logger.py:40] Received request cmpl-1: prompt: 'a', params: SamplingParams(n=1, "
    "presence_penalty=0.0, max_tokens=16), prompt_token_ids: [1, 2], lora_request: None.",
    "INFO 01-01 00:00:01 [async_llm.py:261] Added request cmpl-1.",
    "INFO 01-01 00:00:01 [launcher.py:36] Route: /v1/completions, Methods: POST",
)


@pytest.mark.parametrize("row", PATTERNS.values(), ids=PATTERNS)
def test_anchors_are_long_and_not_in_ordinary_lines(row: dict[str, object]) -> None:
    anchors = row["anchors"]
    assert isinstance(anchors, list)
    for anchor in anchors:
        assert len(anchor) >= 6
        assert not any(anchor in line for line in ORDINARY)


@pytest.mark.parametrize("row", PATTERNS.values(), ids=PATTERNS)
def test_sizes_have_their_unit_in_their_name(row: dict[str, object]) -> None:
    pattern = str(row["pattern"])
    assert row["source"]
    for unit, names in {"G": ("_gib",), "MB": ("_mib",)}.items():
        for group in re.findall(rf"\(\?P<(\w+)>[^()]*(?:\([^()]*\)[^()]*)*\) ?{unit}(?:iB|\()", pattern):
            assert group.endswith(names)


FILLINGS = ("a ", "1,", "reqs, ", "GiB; ", "enable_prefix_caching=True, ", "Using a ")


@pytest.mark.parametrize("row", PATTERNS.values(), ids=PATTERNS)
def test_no_line_takes_long(row: dict[str, object]) -> None:
    anchors = row["anchors"]
    assert isinstance(anchors, list)
    pattern = re.compile(str(row["pattern"]))
    started = time.perf_counter()
    for anchor in anchors:
        for filling in FILLINGS:
            pattern.search((anchor + filling) * (20_000 // len(anchor + filling)))
            pattern.search(filling * (10_000 // len(filling)) + anchor)
    assert time.perf_counter() - started < 2.0


@pytest.mark.parametrize("piece", ["(a pid=1) ", "INFO ", "12-02 ", "(", "[a.py:1] ", "(VllmWorker rank=1 ", "[x] "])
def test_no_prefix_takes_long(piece: str) -> None:
    started = time.perf_counter()
    log.said(piece * (100_000 // len(piece)))
    assert time.perf_counter() - started < 2.0


# --- one launch -------------------------------------------------------------------------------------------------


def test_warnings_come_once_with_how_often() -> None:
    found = log.launched(BOOT).warnings
    fallback = next(w for w in found if "V1 model runner" in w.text)
    assert fallback.text == "Model Runner V2 requires Triton; using the V1 model runner instead."
    assert (fallback.level, fallback.line, fallback.times) == ("warning", 4, 2)
    assert len(found) == len({w.text for w in found}) == 4
    errors = "ERROR 12-02 14:23:53 [a.py:1] a\nCRITICAL 12-02 14:23:53 [a.py:1] a\nERROR 12-02 14:23:53 [a.py:1] \n"
    (both,) = log.launched(errors).warnings
    assert (both.level, both.times) == ("error", 2)


def test_the_last_statement_holds() -> None:
    start = log.launched(BOOT + "Loading weights took 2.50 seconds\n")
    found = start.last_of("weights loaded")
    assert found is not None
    assert found["load_seconds"] == "2.50"
    assert found.line.number == len(BOOT.splitlines()) + 1
    assert log.launched(BOOT).last_of("graphs") is None


@pytest.mark.parametrize(
    ("name", "text", "seconds"),
    [
        ("load weights", "Loading weights took 12.34 seconds", "12.34"),
        ("compile", "torch.compile takes 35.2 s in total", "35.2"),
        ("compile", "[backbone] torch.compile took 7.00 s in total", "7.00"),
        ("capture graphs", "Graph capturing finished in 9 secs, took 0.55 GiB", "9"),
        ("capture graphs", "Graph capturing finished in 19 secs.", "19"),
        (
            "profile, allocate KV, warm up",
            "init engine (profile, create kv cache, warmup model) took 60.12 seconds",
            "60.12",
        ),
    ],
)
def test_phases(name: str, text: str, seconds: str) -> None:
    statement, group = from_log.TIMED[name]
    found = log.launched(f"INFO 01-01 00:00:01 [a.py:1] {text}\n").last_of(statement)
    assert found is not None
    assert found[group] == seconds


def test_graph_bytes_and_runner_fallback() -> None:
    start = log.launched("Graph capturing finished in 9 secs, took -0.02 GiB\n")
    found = start.last_of("graphs")
    assert found is not None
    assert found["graphs_gib"] == "-0.02"
    fallback = "Model Runner V2 requires Triton; using the V1 model runner instead."
    reason = from_log.reason(log.launched(f"WARNING 01-01 00:00:01 [vllm.py:1] {fallback}\n"))
    assert reason is not None
    assert reason.value == fallback
    assert from_log.reason(log.launched("Using V2 Model Runner\n")) is None


pieces = st.sampled_from(
    [
        "Loading weights took ",
        "1.2.3",
        " seconds",
        "Graph capturing finished in 9 secs, took . GiB",
        "WARNING 12-02 14:23:53 [a.py:1] ",
        "(EngineCore pid=1) ",
        "GPU KV cache size: ",
        "Available KV cache memory: ",
        '{"message": ',
        "\x1b[0m",
        "\n",
        "\r\n",
        "\u2028",
    ]
)


@given(st.lists(pieces | st.text(max_size=20)).map("".join))
def test_any_text_fuzz(text: str) -> None:
    start = log.launched(text)
    from_log.phases(start)
    from_log.reason(start)
    from_log.stage(start)
