"""The small faces: progress, errors, the doctor's lines, environments."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from engdiff.doctor import Check
from engdiff.environments.store import Stored
from engdiff.errors import EngdiffError, EngineFailed, UsageError
from engdiff.report.console import THEME
from engdiff.report.doctor import print_check
from engdiff.report.environments import print_environments, print_removed
from engdiff.report.errors import print_error
from engdiff.report.progress import Progress
from engdiff.units import GIB, MIB

CODES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal(StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def environ(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")


def printed(print_it: Callable[[Console], None], width: int = 60) -> list[str]:
    stream = StringIO()
    print_it(Console(file=stream, theme=THEME, width=width, highlight=False, emoji=False, markup=False))
    return stream.getvalue().splitlines()


# --- progress -------------------------------------------------------------------------------------------------------

STEPS = ("vLLM: starting, 1 s", "vLLM: starting, 2 s", "note: [one] thing", "warning: two", "vLLM: [/stopping]")


@pytest.mark.parametrize(
    ("quiet", "expected"),
    [
        (False, ["vLLM: starting", "note: [one] thing", "warning: two", "vLLM: [/stopping]"]),
        (True, ["note: [one] thing", "warning: two"]),
    ],
)
def test_progress_in_a_log(capsys: pytest.CaptureFixture[str], quiet: bool, expected: list[str]) -> None:
    with Progress(quiet=quiet) as progress:
        for step in STEPS:
            progress(step)
    out, err = capsys.readouterr()
    assert (out, err.splitlines()) == ("", expected)


@pytest.mark.parametrize("quiet", [False, True])
def test_progress_on_a_terminal(monkeypatch: pytest.MonkeyPatch, quiet: bool) -> None:
    """Brackets are no markup, not even on the line that changes; notes stay."""
    stream = Terminal()
    monkeypatch.setattr("sys.stderr", stream)
    with Progress(quiet=quiet) as progress:
        for step in STEPS:
            progress(step)
    text = CODES.sub("", stream.getvalue())
    assert "note: [one] thing" in text
    assert "warning: two" in text
    assert ("[/stopping]" in text) is not quiet


def test_progress_gives_the_cursor_back_when_something_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal()
    monkeypatch.setattr("sys.stderr", stream)

    def fail() -> None:
        with Progress() as progress:
            progress("starting")
            raise UsageError("x")

    with pytest.raises(UsageError):
        fail()
    assert stream.getvalue().rfind("\x1b[?25h") > stream.getvalue().rfind("\x1b[?25l") >= 0


# --- errors ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (UsageError("a [b] c"), ["error: a [b] c"]),
        (UsageError("a", "do this"), ["error: a", "   do this"]),
        (
            EngineFailed("died", cause="c", advice="less", last_words=["one [x]", "two"], log=Path("/tmp/a.log")),
            ["error: died", "   | one [x]", "   | two", "   log: /tmp/a.log", "   less"],
        ),
        (EngineFailed("died", cause=None, advice="less", last_words=[], log=None), ["error: died", "   less"]),
        (UsageError("x" * 300), ["error: " + "x" * 300]),
    ],
)
def test_errors(capsys: pytest.CaptureFixture[str], error: EngdiffError, expected: list[str]) -> None:
    print_error(error)
    out, err = capsys.readouterr()
    assert (out, err.splitlines()) == ("", expected)


# --- doctor ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("check", "expected"),
    [
        (Check("memory", "good", "64 GiB"), ["ok    memory            64 GiB"]),
        (
            Check("GPU", "note", "none", "engines run on the CPU here"),
            ["note  GPU               none", " " * 24 + "engines run on the CPU here"],
        ),
        (
            Check("uv", "bad", "no answer from the package manager of this machine"),
            ["BAD   uv                no answer from the package manager", " " * 24 + "of this machine"],
        ),
    ],
)
def test_doctor(check: Check, expected: list[str]) -> None:
    assert printed(lambda console: print_check(check, console)) == expected


# --- environments ---------------------------------------------------------------------------------------------------


def stored(version: str, *, complete: bool = True) -> Stored:
    return Stored(
        name=f"vllm-{version}",
        engine="vllm",
        version=version,
        folder=Path("/cache/envs") / version,
        complete=complete,
        bytes_own=300 * MIB if complete else None,
        bytes_total=2 * GIB if complete else None,
        last_used=datetime(2026, 12, 1, tzinfo=UTC),
    )


def test_environments() -> None:
    both = [stored("0.32.0"), stored("0.9", complete=False)]
    assert printed(lambda console: print_environments(both, Path("/cache/envs"), console)) == [
        "environment  on disk  its own  last used",
        "vllm@0.32.0    2 GiB  300 MiB  2026-12-01",
        "vllm@0.9     unknown  unknown  half-made",
        "/cache/envs",
    ]


def test_no_environments() -> None:
    assert printed(lambda console: print_environments([], Path("/cache/" + "x" * 80), console)) == [
        f"no environments in /cache/{'x' * 80}; `engdiff capture ENGINE@VERSION` makes one"
    ]


def test_removed() -> None:
    assert printed(lambda console: print_removed([stored("0.32.0"), stored("0.9", complete=False)], console)) == [
        "removed vllm-0.32.0, 300 MiB freed",
        "removed vllm-0.9, unknown freed",
    ]
    assert printed(lambda console: print_removed([], console)) == ["nothing to remove"]
