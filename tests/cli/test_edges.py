"""Verbs that look around, what only shows on a terminal, and what is told beside a result."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path

import pytest

from engdiff.cli.app import main, run
from engdiff.doctor import Check
from engdiff.environments.store import Stored
from engdiff.errors import UsageError
from engdiff.schema.files import load_capture
from engdiff.sources import acquire
from engdiff.sources.order import Order, Outcome, Progress
from tests import factories as make
from tests.cli.conftest import Call

GOOD, NOTE, BAD = Check("CPU", "good", "16 CPUs"), Check("GPU", "note", "none", "CPU it is"), Check("uv", "bad", "gone")


def looks(*checks: Check) -> Callable[[Callable[[str], None]], Iterator[Check]]:
    def examine(progress: Callable[[str], None]) -> Iterator[Check]:
        progress("asking the package index")
        yield from checks

    return examine


@pytest.mark.parametrize(("checks", "code"), [((GOOD, NOTE), 0), ((GOOD, BAD), 5), ((), 0)])
@pytest.mark.parametrize("words", [[], ["--json"]])
def test_doctor(
    call: Call, monkeypatch: pytest.MonkeyPatch, checks: tuple[Check, ...], code: int, words: list[str]
) -> None:
    monkeypatch.setattr("engdiff.doctor.examine", looks(*checks))
    ended = call("doctor", *words)
    assert (ended.code, ended.err) == (code, "asking the package index\n")
    if words:
        assert [Check(**one) for one in json.loads(ended.out)] == list(checks)
    else:
        assert [line.split()[1] for line in ended.out.splitlines() if line[0] != " "] == [c.name for c in checks]


def test_doctor_really_looks(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an index: what can be said is said, and there is no defect."""
    monkeypatch.setattr("engdiff.doctor.list_versions", lambda distribution: ())
    ended = call("doctor", "--json")
    names = [one["name"] for one in json.loads(ended.out)]
    assert {"CPU", "memory", "uv", "vLLM", "llama.cpp"} <= set(names)
    assert ended.code in (0, 5)


def stored(name: str) -> Stored:
    return Stored(name, "vllm", "0.32.0", Path("/envs") / name, True, 1024, 4096, datetime(2026, 12, 1, tzinfo=UTC))


def test_env(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []

    def removed(what: object) -> list[Stored]:
        asked.append(what)
        return [stored("vllm-a")]

    monkeypatch.setattr("engdiff.environments.store.environments", lambda: [stored("vllm-a")])
    monkeypatch.setattr("engdiff.environments.store.remove", removed)
    monkeypatch.setattr("engdiff.environments.store.prune", removed)
    assert "vllm@0.32.0    4 KiB    1 KiB  2026-12-01" in call("env", "list").out.splitlines()
    assert call("env", "remove", "vllm@0.32.0", "vllm-b").out == "removed vllm-a, 1 KiB freed\n"
    assert call("env", "prune", "--days", "7").code == 0
    assert asked == [["vllm@0.32.0", "vllm-b"], 7.0]


def test_an_accept_entry_that_accepts_nothing_is_told_beside_the_result(call: Call, old: str, tmp_path: Path) -> None:
    (tmp_path / "accept.toml").write_text('[[accept]]\nkey = "gone.*"\nreason = "long ago"\n', encoding="utf-8")
    ended = call("diff", old, old, "--accept", "accept.toml")
    assert ended.code == 0
    assert ended.err == "note: accept.toml: `gone.*` accepts nothing in this diff\n"
    assert "gone" not in ended.out


class Terminal(StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_on_a_terminal_a_capture_gets_a_name_that_replaces_nothing(
    call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def launch(order: Order, progress: Progress) -> Outcome:
        return Outcome(make.llamacpp(), None)

    monkeypatch.setattr(acquire, "order", lambda reference, wishes, progress: None)
    monkeypatch.setattr(acquire, "launch", launch)
    monkeypatch.setattr("sys.stdout", Terminal())
    for name in ("llamacpp-2026.9.11063.json", "llamacpp-2026.9.11063-2.json", "llamacpp-2026.9.11063-3.json"):
        assert run(["capture", "llamacpp", "--model", "tiny"]) == 0
        assert load_capture(tmp_path / name) == make.llamacpp()
    assert len(list(tmp_path.glob("*.json"))) == 3


@pytest.mark.parametrize(("argv", "code"), [(["--version"], 0), (["show", "none.json"], 2)])
def test_main_leaves_with_the_code(call: Call, argv: list[str], code: int) -> None:
    with pytest.raises(SystemExit) as ended:
        main(argv)
    assert ended.value.code == code


def test_an_error_goes_to_stderr_whole(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """No line of an error is wrapped: a path must survive being copied."""
    name = "x" * 150 + ".json"
    ended = call("show", name)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith(f"error: {name}: no such file\n")


def test_an_error_with_brackets_is_no_markup(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object) -> None:
        raise UsageError("`vllm[cuda]` and [/bold] stay", "as [they] are")

    monkeypatch.setattr("engdiff.sources.given.load_capture", refuse)
    assert call("show", "old.json").err == "error: `vllm[cuda]` and [/bold] stay\n   as [they] are\n"


@pytest.mark.parametrize("verb", ["show", "schema", "env"])
def test_an_empty_double_dash_is_harmless(call: Call, verb: str) -> None:
    ended = call(verb, "--")
    assert "starts no engine" not in ended.err
