"""Damaged logs: no exception but a clear one, no hang, and no invented value."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engdiff.errors import EngdiffError
from engdiff.schema.capture import Capture
from engdiff.sources.log import read_text
from tests.logs.cited import invented
from tests.logs.corpus import records

CASES = 100_000 if os.environ.get("HYPOTHESIS_PROFILE") == "fuzz" else 2_000

PREFIXES = (
    "",
    "vllm-1  | ",
    "Jan 01 00:00:01 host ollama[1001]: ",
    "2025-01-01T00:00:00.000000000Z stdout F ",
    "[pod/llm-0/main] ",
    "\x1b[0;36m",
    "^[[0;36m",
    "│ ",
    "> ",
    "[rank0]: ",
    "(Worker_TP3 pid=7) ",
    "[2025-01-01 00:00:01 TP2] ",
)

Text = st.sampled_from([text for _, _, text in records()])
Cut = st.integers(min_value=0, max_value=4000)


@st.composite
def damaged(draw: st.DrawFn) -> str:
    """One to three logs, cut, spliced, shuffled, prefixed, wrapped and sprinkled with other things."""
    texts = [draw(Text) for _ in range(draw(st.integers(1, 3)))]
    lines: list[str] = []
    for text in texts:
        start, length = draw(Cut), draw(Cut)
        part = text[min(start, len(text) // 2) :][: length + 200] if draw(st.booleans()) else text
        lines.extend(part.split("\n"))
    if draw(st.booleans()):
        lines = draw(st.permutations(lines)) if len(lines) < 40 else lines[::-1]
    prefix = draw(st.sampled_from(PREFIXES))
    lines = [prefix + line for line in lines]
    for _ in range(draw(st.integers(0, 3))):
        lines.insert(draw(st.integers(0, len(lines))), draw(st.text(max_size=40)).replace("\n", " ").replace("\r", " "))
    if draw(st.booleans()):
        at = draw(st.integers(0, len(lines) - 1))
        cut = draw(st.integers(0, 200))
        lines[at : at + 1] = [lines[at][:cut], lines[at][cut:]]
    return draw(st.sampled_from(("\n", "\n", "\n", "\r\n"))).join(lines)


def read(log: bytes) -> Capture | None:
    """The capture, or ``None`` where engdiff says in a sentence why there is none."""
    try:
        return read_text(log)
    except EngdiffError as error:
        told = error
    assert told.message
    assert told.advice
    return None


LONG = settings(max_examples=CASES, deadline=None, suppress_health_check=list(HealthCheck))
SHORT = settings(max_examples=max(100, CASES // 20), deadline=None, suppress_health_check=list(HealthCheck))


@LONG
@given(damaged())
def test_fuzz_damaged_logs_invent_nothing(log: str) -> None:
    text = log.encode("utf-8", errors="replace")
    capture = read(text)
    assert capture is None or invented(capture, text.decode("utf-8")) == []


@SHORT
@given(damaged(), st.sampled_from(("utf-16", "utf-16-le", "latin-1", "utf-8-sig")))
def test_fuzz_encodings_raise_nothing(log: str, encoding: str) -> None:
    read(log.encode(encoding, errors="replace"))


@SHORT
@given(st.binary(max_size=3000))
def test_fuzz_any_bytes_raise_nothing(log: bytes) -> None:
    read(log)
