"""vLLM's log lines without what differs from run to run."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engdiff.engines.vllm import log

BOOT = (Path(__file__).parent / "data" / "boot-0.32.0.log").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("raw", "text", "level"),
    [
        ("(EngineCore pid=8837) INFO 12-02 14:23:53 [core.py:402] ready  ", "ready", "INFO"),
        ("(EngineCore_DP0 pid=1) WARNING 01-31 00:00:00 [a.py:1] slow", "slow", "WARNING"),
        ("(APIServer) ERROR 12-02 14:23:53 [a.py:1] no", "no", "ERROR"),
        ("INFO 12-02 14:23:53 [a.py:1] plain", "plain", "INFO"),
        ("CRITICAL 12-02 14:23:53 without place", "without place", "CRITICAL"),
        ("\x1b[0;36m(Worker pid=9)\x1b[0;0m INFO 12-02 14:23:53 [a.py:1] coloured", "coloured", "INFO"),
        ("(Worker pid=9) Traceback (most recent call last):", "Traceback (most recent call last):", None),
        ("INFO:     Application startup complete.", "INFO:     Application startup complete.", None),
        ("(unclosed pid=3 text", "(unclosed pid=3 text", None),
        ("", "", None),
    ],
)
def test_prefix(raw: str, text: str, level: str | None) -> None:
    assert list(log.lines(f"{raw}\n")) == [log.Line(1, text, level)]


def test_warnings_come_once_with_how_often() -> None:
    found = log.warnings(BOOT)
    fallback = next(w for w in found if "V1 model runner" in w.text)
    assert fallback.text == "Model Runner V2 requires Triton; using the V1 model runner instead."
    assert (fallback.level, fallback.line, fallback.times) == ("warning", 4, 2)
    assert len(found) == len({w.text for w in found}) == 4
    errors = "ERROR 12-02 14:23:53 [a.py:1] a\nCRITICAL 12-02 14:23:53 [a.py:1] a\nERROR 12-02 14:23:53 [a.py:1] \n"
    (both,) = log.warnings(errors)
    assert (both.level, both.times) == ("error", 2)


def test_the_last_statement_holds() -> None:
    found = log.last(BOOT + "Loading weights took 2.50 seconds\n", log.SECONDS["load weights"])
    assert found is not None
    assert found[0]["seconds"] == "2.50"
    assert found[1].number == len(BOOT.splitlines()) + 1
    assert log.last(BOOT, log.GRAPH_GIB) is None


@pytest.mark.parametrize(
    ("name", "text", "seconds"),
    [
        ("load weights", "Loading weights took 12.34 seconds", "12.34"),
        ("compile", "torch.compile takes 35.2 s in total", "35.2"),
        ("compile", "torch.compile took 7.00 s in total", "7.00"),
        ("capture graphs", "Graph capturing finished in 9 secs, took 0.55 GiB", "9"),
        (
            "profile, allocate KV, warm up",
            "init engine (profile, create kv cache, warmup model) took 60.12 seconds",
            "60.12",
        ),
    ],
)
def test_phases(name: str, text: str, seconds: str) -> None:
    match = log.SECONDS[name].search(text)
    assert match is not None
    assert match["seconds"] == seconds


def test_graph_bytes_and_runner_fallback() -> None:
    match = log.GRAPH_GIB.search("Graph capturing finished in 9 secs, took -0.02 GiB")
    assert match is not None
    assert match["gib"] == "-0.02"
    assert log.RUNNER_FALLBACK.search("Model Runner V2 requires Triton; using the V1 model runner instead.")
    assert not log.RUNNER_FALLBACK.search("Using V2 Model Runner")


pieces = st.sampled_from(
    [
        "Loading weights took ",
        "1.2.3",
        " seconds",
        "Graph capturing finished in 9 secs, took . GiB",
        "WARNING 12-02 14:23:53 [a.py:1] ",
        "(EngineCore pid=1) ",
        "\x1b[0m",
        "\n",
        "\r\n",
        "\u2028",
    ]
)


@given(st.lists(pieces | st.text(max_size=20)).map("".join))
def test_any_text_fuzz(text: str) -> None:
    log.warnings(text)
    for pattern in (*log.SECONDS.values(), log.GRAPH_GIB, log.CONSUMED_GIB):
        if found := log.last(text, pattern):
            assert all(float(value) is not None for value in found[0].groups())
