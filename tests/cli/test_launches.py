"""Verbs that launch, with the launch itself faked: what they ask for, and what they do with what comes back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engdiff import errors
from engdiff.schema.capture import Capture
from engdiff.schema.diff import Diff
from engdiff.schema.files import load_capture, parse
from engdiff.sources import acquire
from engdiff.sources.order import Order, Outcome, Progress
from tests import factories as make
from tests.cli.conftest import Call

DIED = errors.EngineFailed(
    "llama.cpp 2026.9.11063 died at start: out of memory",
    cause="out of memory",
    advice="ask for less context (-c)",
    last_words=["loading", "no memory"],
    log=Path("/tmp/engine.log"),
)


class Launches:
    """Stands in for the launch; ``orders`` are what was asked for."""

    def __init__(self) -> None:
        self.orders: list[Order] = []
        self.outcome: Callable[[Order], Outcome] = lambda order: Outcome(make.llamacpp(cells=4096), None)

    def __call__(self, order: Order, progress: Progress) -> Outcome:
        self.orders.append(order)
        progress("llama.cpp 2026.9.11063: starting")
        progress("llama.cpp 2026.9.11063: starting, 1 s")
        progress("note: something to know")
        return self.outcome(order)


@pytest.fixture
def launches(monkeypatch: pytest.MonkeyPatch) -> Launches:
    """No engine is started and no environment is made."""
    fake = Launches()

    def provide(recipe: Any, *, progress: Progress) -> Any:
        from engdiff.environments.recipe import Environment

        return Environment(Path("/x"), Path("/x/python"), "3.12", recipe.distribution, recipe.version)

    monkeypatch.setattr(acquire, "launch", fake)
    monkeypatch.setattr(acquire, "provide", provide)
    monkeypatch.setattr("engdiff.engines.llamacpp.releases.problem", lambda version, machine: None)
    return fake


NEW = "llamacpp@2026.9.11063"
STARTING = "llama.cpp 2026.9.11063: starting\nnote: something to know\n"


def test_capture_into_a_pipe(call: Call, launches: Launches) -> None:
    ended = call("capture", NEW, "--model", "tiny", "--env", "A=b=c", "--", "-np", "4", "--", "x")
    assert (ended.code, ended.err) == (0, STARTING)
    assert parse(ended.out, "stdout", Capture) == make.llamacpp(cells=4096)
    (order,) = launches.orders
    assert order.arguments == ("-np", "4", "--", "x")
    assert order.variables["A"] == "b=c"
    assert (order.model_given, order.version) == ("tiny", "2026.9.11063")


def test_capture_into_a_file(call: Call, launches: Launches, tmp_path: Path) -> None:
    ended = call("capture", NEW, "--model", "tiny", "-o", "new.json")
    assert ended.code == 0
    assert "KV cache: 16 MiB" in ended.out
    assert ended.err == STARTING + "capture written to new.json\n"
    assert load_capture(tmp_path / "new.json") == make.llamacpp(cells=4096)


def test_capture_into_a_file_as_json(call: Call, launches: Launches, tmp_path: Path) -> None:
    ended = call("capture", NEW, "--model", "tiny", "-o", "new.json", "--json", "-q")
    assert ended.out == (tmp_path / "new.json").read_text(encoding="utf-8")
    assert ended.err == "note: something to know\ncapture written to new.json\n"


def test_an_output_that_is_there_is_told_before_anything_starts(call: Call, launches: Launches, old: str) -> None:
    ended = call("capture", NEW, "--model", "tiny", "-o", old)
    assert (ended.code, launches.orders) == (2, [])
    assert call("capture", NEW, "--model", "tiny", "-o", old, "--force").code == 0


def test_capture_like(call: Call, launches: Launches, old: str) -> None:
    assert call("capture", NEW, "--like", old).code == 0
    (order,) = launches.orders
    assert (order.model_given, order.arguments) == ("tiny", ("-np", "4"))


def test_a_failed_start_keeps_a_partial_capture(call: Call, launches: Launches, tmp_path: Path) -> None:
    launches.outcome = lambda order: Outcome(make.failed()(make.llamacpp()), DIED)
    ended = call("capture", NEW, "--model", "tiny", "-o", "new.json")
    assert (ended.code, ended.out) == (4, "")
    assert ended.err == STARTING + (
        "partial capture written to new.json\n"
        "error: llama.cpp 2026.9.11063 died at start: out of memory\n"
        "   | loading\n"
        "   | no memory\n"
        "   log: /tmp/engine.log\n"
        "   ask for less context (-c)\n"
    )
    assert load_capture(tmp_path / "new.json").failure


def test_a_failed_start_into_a_pipe_still_gives_the_document(call: Call, launches: Launches) -> None:
    launches.outcome = lambda order: Outcome(make.failed()(make.llamacpp()), DIED)
    ended = call("capture", NEW, "--model", "tiny")
    assert ended.code == 4
    assert parse(ended.out, "stdout", Capture).failure


def test_what_was_launched_survives_an_output_that_went_away(
    call: Call, launches: Launches, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, kept = tmp_path / "out", tmp_path / "kept"
    folder.mkdir()
    kept.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(kept))

    def vanish(order: Order) -> Outcome:
        folder.rmdir()
        return Outcome(make.llamacpp(), None)

    launches.outcome = vanish
    ended = call("capture", NEW, "--model", "tiny", "-o", "out/new.json")
    assert ended.code == 2
    (rescued,) = kept.glob("*.json")
    assert f"nothing is lost: it is in {rescued}" in ended.err
    assert load_capture(rescued) == make.llamacpp()


@pytest.mark.parametrize("words", [["capture", NEW, "--model", "tiny"], ["diff", "old.json", NEW]])
def test_interrupted(call: Call, launches: Launches, old: str, words: list[str]) -> None:
    def interrupt(order: Order) -> Outcome:
        raise KeyboardInterrupt

    launches.outcome = interrupt
    ended = call(*words)
    assert (ended.code, ended.out) == (130, "")
    assert ended.err.endswith("error: interrupted; what engdiff had started was stopped\n")


def test_diff_launches_with_the_command_of_the_file(call: Call, launches: Launches, old: str) -> None:
    ended = call("diff", old, NEW, "--json")
    assert (ended.code, ended.err) == (1, STARTING)
    (order,) = launches.orders
    assert (order.model_given, order.arguments) == ("tiny", ("-np", "4"))
    found = parse(ended.out, "stdout", Diff)
    assert (found.old.label, found.new.label) == (old, NEW)
    assert found.prove_command == f"engdiff diff {old} {NEW} --model tiny -- -np 4 -c 4096"


def test_diff_with_other_words(call: Call, launches: Launches, old: str) -> None:
    call("diff", old, NEW, "--", "-np", "4", "-c", "4096")
    assert launches.orders[0].arguments == ("-np", "4", "-c", "4096")


def test_diff_of_two_engines(call: Call, launches: Launches) -> None:
    ended = call("diff", "llamacpp@2026.8.10229", NEW, "--model", "tiny", "-q", "--", "-np", "2")
    assert ended.code == 0
    assert [(o.version, o.arguments) for o in launches.orders] == [
        ("2026.8.10229", ("-np", "2")),
        ("2026.9.11063", ("-np", "2")),
    ]
    assert ended.err == "note: something to know\n" * 2


def test_a_proof_of_two_launches_pins_the_new_one_alone(call: Call, launches: Launches) -> None:
    def outcome(order: Order) -> Outcome:
        grown = order.version == "2026.9.11063"
        return Outcome(make.llamacpp(order.version, cells=4096 if grown else 1024), None)

    launches.outcome = outcome
    ended = call("diff", "llamacpp@2026.8.10229", NEW, "--model", "tiny", "-q", "--json", "--", "-np", "4")
    assert parse(ended.out, "stdout", Diff).prove_command == (
        "engdiff capture llamacpp@2026.8.10229 --model tiny -- -np 4 | "
        f"engdiff diff - {NEW} --model tiny -- -np 4 -c 4096"
    )


def test_a_bad_file_is_told_before_anything_starts(call: Call, launches: Launches) -> None:
    ended = call("diff", NEW, "none.json", "--model", "tiny")
    assert (ended.code, launches.orders) == (2, [])


def test_a_failed_start_is_a_finding(call: Call, launches: Launches, old: str) -> None:
    launches.outcome = lambda order: Outcome(make.failed()(make.llamacpp()), DIED)
    ended = call("diff", old, NEW)
    assert ended.code == 1
    assert "llamacpp 2026.9.11063 does not start: out of memory" in ended.out
    assert "warning: llama.cpp 2026.9.11063 died at start: out of memory\n" in ended.err


def test_a_release_that_cannot_load_here(call: Call, launches: Launches, monkeypatch: pytest.MonkeyPatch) -> None:
    from engdiff.engines.contract import KnownProblem

    problem = KnownProblem("it needs AVX-512", "issue 1", "take 2026.8.10229")
    monkeypatch.setattr("engdiff.engines.llamacpp.releases.problem", lambda version, machine: problem)
    ended = call("capture", NEW, "--model", "tiny")
    assert (ended.code, launches.orders) == (5, [])
    assert "it needs AVX-512 (issue 1)" in ended.err
    assert "take 2026.8.10229" in ended.err


def test_a_redacted_secret_is_not_used_again(call: Call, launches: Launches, tmp_path: Path) -> None:
    from engdiff.redact import REDACTED
    from engdiff.schema.files import dump

    secret = make.with_launch(arguments=("--api-key", REDACTED))(make.llamacpp())
    (tmp_path / "old.json").write_text(dump(secret), encoding="utf-8")
    ended = call("diff", "old.json", NEW)
    assert (ended.code, launches.orders) == (2, [])
    assert "redacted secret" in ended.err


def test_an_order_is_complete(call: Call, launches: Launches) -> None:
    call("capture", NEW, "--model", "tiny", "--start-limit", "12", "--keep-log", "engine.log")
    (order,) = launches.orders
    assert (order.start_limit_seconds, order.keep_log) == (12.0, Path("engine.log"))
    assert replace(order).called == "llama.cpp 2026.9.11063"
