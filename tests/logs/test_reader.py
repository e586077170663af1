"""From bytes to starts: cuts, wraps, streams, restarts, run-time lines and warnings, with a made-up engine."""

from __future__ import annotations

import re
from io import BytesIO

import pytest

from engdiff.logs import messages
from engdiff.logs.patterns import LinePattern, Role
from engdiff.logs.reader import Heard, Reader
from engdiff.logs.starts import LogFormat, Start
from engdiff.logs.statements import Said
from engdiff.logs.values import amount

PREFIX = re.compile(r"^(?:\((?P<process>\w+)\) )?(?:(?P<level>INFO|WARNING|ERROR) )")


def said(text: str) -> Said:
    prefix = PREFIX.match(text)
    if prefix is None:
        return Said(text)
    return Said(text[prefix.end() :], process=prefix["process"] or "", level=prefix["level"], prefixed=True)


def pattern(name: str, anchor: str, expression: str, role: Role = "boot") -> LinePattern:
    return LinePattern(name, (anchor,), re.compile(expression), role)


FORMAT = LogFormat(
    lines=(
        pattern("hello", "engine version", r"engine version (?P<version>\S+)", "start"),
        pattern("pool", "pool size", r"pool size: (?P<pool_gib>-?[\d.,]+) GiB"),
        pattern("tokens", "pool size", r"(?P<tokens>[\d,]+) tokens"),
        pattern("ready", "server is up", r"server is up", "ready"),
        pattern("speed", "tokens/s", r"(?P<rate>[\d.]+) tokens/s", "run"),
        pattern("died", "engine died", r"engine died", "died"),
    ),
    said=said,
    level_marks=("WARNING", "ERROR"),
)


def hear(text: str | bytes) -> Heard:
    return Reader({"toy": FORMAT}).hear(BytesIO(text.encode() if isinstance(text, str) else text))


def starts(text: str | bytes, source: str = "") -> list[Start]:
    return hear(text).speeches["toy", source].starts


def pools(text: str | bytes) -> list[tuple[int, object]]:
    found = [(s.line.number, amount(s, "pool_gib")) for start in starts(text) for s in start.all("pool")]
    return [(number, value.value if value else None) for number, value in found]


GIB = 2**30


@pytest.mark.parametrize(
    ("log", "wanted"),
    [
        ("INFO pool size: 2 GiB", [(1, 2 * GIB)]),
        ("\n\nx\nINFO pool size: 2 GiB\n", [(4, 2 * GIB)]),
        ("INFO pool size: 2 GiB\r\nINFO pool size: 3 GiB\r\n", [(1, 2 * GIB), (2, 3 * GIB)]),
        ("INFO pool size: -1.5 GiB\n", [(1, -3 * GIB // 2)]),
        ("INFO pool size:\n2 GiB\n", [(1, 2 * GIB)]),
        ("INFO pool size: 2\nGiB and more\n", [(1, 2 * GIB)]),
        ("INFO pool size:\n\n\n2 GiB\n", [(1, 2 * GIB)]),
        ("INFO pool size: 2\nINFO GiB\n", []),
        ("INFO pool size: 2", []),
        ("bar 0%\rbar 50%\rINFO pool size: 2 GiB\n", [(1, 2 * GIB)]),
        ("INFO pool size: 1,024.5 GiB\n", [(1, 1024 * GIB + GIB // 2)]),
        ("INFO pool size: 1..5 GiB\n", [(1, None)]),
    ],
)
def test_one_fact(log: str, wanted: list[tuple[int, object]]) -> None:
    assert (pools(log) if hear(log).speeches and starts(log)[0].statements else []) == wanted


def test_rounding_gives_bounds_and_the_line_is_cited() -> None:
    (statement,) = starts("INFO pool size: 2.50 GiB\n")[0].all("pool")
    value = amount(statement, "pool_gib")
    assert value is not None
    assert (value.low, value.high) == (2.495 * GIB, 2.505 * GIB)
    assert value.evidence is not None
    assert (value.evidence.where, value.evidence.line) == ("INFO pool size: 2.50 GiB", 1)


def test_a_continued_number_cites_its_own_line() -> None:
    (statement,) = starts("INFO pool size:\n2 GiB\n")[0].all("pool")
    value = amount(statement, "pool_gib")
    assert value is not None
    assert value.evidence is not None
    assert (value.evidence.where, value.evidence.line) == ("2 GiB", 2)


def test_a_terminal_s_rows_are_joined() -> None:
    columns = 64
    lines = [f"INFO step {n} " + "some words that are long enough to be cut " * 2 for n in range(6)]
    lines.append("INFO " + "x" * 45 + " pool size: 46.80 GiB")
    rows = [line[i : i + columns] for line in lines for i in range(0, len(line), columns)]
    found = pools("\n".join(rows) + "\n")
    assert [value for _, value in found] == [round(46.8 * GIB)]


def test_a_container_runtime_s_parts_are_joined() -> None:
    stamp = "2025-01-01T00:00:00.1Z stdout"
    assert pools(f"{stamp} P INFO pool size: 4\n{stamp} F 6 GiB\n{stamp} F 7 GiB\n") == [(1, 46 * GIB)]
    assert pools(f"{stamp} P INFO pool size: \n{stamp} P 4\n{stamp} F 6 GiB\n") == [(1, 46 * GIB)]


def test_streams_are_kept_apart() -> None:
    heard = hear("a-1  | INFO pool size: 1 GiB\nb-1  | INFO pool size: 2 GiB\na-1  | INFO server is up\n")
    assert {source: s.starts[0].ready for (_, source), s in heard.speeches.items()} == {"a-1": True, "b-1": False}


@pytest.mark.parametrize(
    ("log", "wanted"),
    [
        (
            "INFO engine version 1\nINFO pool size: 1 GiB\nINFO engine version 1\nINFO pool size: 2 GiB\n",
            [(1, 2), (3, 4)],
        ),
        ("INFO engine version 1\nINFO engine version 1\nINFO pool size: 1 GiB\n", [(1, 3)]),
        ("INFO pool size: 1 GiB\nINFO engine version 1\n", [(1, 2)]),
        ("INFO pool size: 1 GiB\nINFO server is up\nINFO engine version 1\n", [(1, 2), (3, 3)]),
        ("INFO pool size: 1 GiB\nINFO engine died\nINFO engine version 1\n", [(1, 2), (3, 3)]),
        ("(A) INFO engine version 1\n(A) INFO pool size: 1 GiB\n(B) INFO engine version 1\n", [(1, 3)]),
    ],
)
def test_restarts(log: str, wanted: list[tuple[int, int]]) -> None:
    assert [(start.first, start.last) for start in starts(log)] == wanted


def test_the_tail_is_that_of_its_own_start() -> None:
    log = "INFO engine version 1\nINFO pool size: 1 GiB\ntraceback\nINFO engine version 1\nINFO pool size: 2 GiB\nend\n"
    first, second = starts(log)
    assert [line.number for line in first.tail] == [1, 2, 3]
    assert [line.number for line in second.tail] == [4, 5, 6]


def test_of_many_run_time_lines_a_sample_is_summarised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages, "MOST_RUN_LINES", 5)
    monkeypatch.setattr(messages, "FIRST_RUN_LINES", 10)
    log = "INFO pool size: 1 GiB\n" + "".join(f"INFO {n}.5 tokens/s\n" for n in range(50)) + "INFO pool size: 3 GiB\n"
    heard = hear(log)
    (start,) = heard.speeches["toy", ""].starts
    series = start.run.series["speed", "rate"]
    assert heard.run_lines_in_part
    assert (series.count, series.least, series.most, series.first_line) == (10, 0.5, 9.5, 2)
    assert [value for _, value in pools(log)] == [GIB, 3 * GIB]
    assert [s.line.number for s in start.all("pool")] == [1, 52]


def test_warnings_are_told_once_with_how_often() -> None:
    (start,) = starts("INFO pool size: 1 GiB\nWARNING low\nWARNING low\nERROR worse\nINFO pool size: 2 GiB\n")
    assert [(w.level, w.text, w.line, w.times) for w in start.warnings] == [
        ("warning", "low", 2, 2),
        ("error", "worse", 4, 1),
    ]
