"""What every engine promises, asked of each in turn: the toy of a fork, and the real ones."""

from __future__ import annotations

import http.client
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

import psutil
import pytest
from packaging.version import Version

from engdiff import engines, errors
from engdiff.diff.tolerance import moved
from engdiff.engines.contract import LaunchPlan
from engdiff.machine import look
from engdiff.references import EngineReference
from engdiff.schema.capture import Capture
from engdiff.schema.values import Known, number
from engdiff.sources import launch as launching
from engdiff.sources.acquire import Wishes, order
from engdiff.sources.attach import AttachWishes, attach
from engdiff.sources.launch import launch
from engdiff.sources.log import LogWishes, read_log
from engdiff.sources.order import Order, Outcome
from tests.contract.subjects import SUBJECTS, TOYS, Subject

pytestmark = pytest.mark.parametrize("subject", SUBJECTS, indirect=True)


def ordered(subject: Subject, wishes: Wishes | None = None) -> Order:
    """The launch of a subject, with its environment made."""
    asked = wishes or Wishes(model="tiny", arguments=subject.words)
    given = replace(asked, python=subject.python, variables={**subject.variables, **asked.variables})
    return order(EngineReference(subject.engine, None if subject.python else subject.version), given, lambda _: None)


@dataclass(frozen=True)
class Seen:
    """One start, seen in every way."""

    order: Order
    outcome: Outcome
    attached: Capture
    logged: Capture
    probe_files: dict[str, bool]
    address: tuple[str, int]
    processes: list[psutil.Process]


Seeing = Callable[[Subject], Seen]


@pytest.fixture(scope="module")
def seeing(tmp_path_factory: pytest.TempPathFactory) -> Seeing:
    """Each subject is started once for all that one start shows."""
    known: dict[str, Seen] = {}

    def see(subject: Subject) -> Seen:
        if subject.engine not in known:
            known[subject.engine] = _start(subject, tmp_path_factory.mktemp(subject.engine))
        return known[subject.engine]

    return see


def _start(subject: Subject, folder: Path) -> Seen:
    log = folder / "server.log"
    found: dict[str, Any] = {}

    def meanwhile(plan: LaunchPlan) -> None:
        parts = urlsplit(plan.ready_url)
        assert parts.hostname
        assert parts.port
        found["address"] = (parts.hostname, parts.port)
        found["files"] = {name: (plan.probe_output / name).exists() for name in plan.probe_files}
        found["processes"] = psutil.Process().children(recursive=True)
        found["attached"] = attach(urljoin(plan.ready_url, "/"), AttachWishes(), lambda _: None)

    asked = ordered(subject, Wishes(model="tiny", arguments=subject.words, keep_log=log))
    outcome = launch(asked, lambda _: None, meanwhile)
    assert outcome.error is None, outcome.error
    logged = read_log((log,), LogWishes(engine=subject.engine))
    return Seen(
        asked,
        outcome,
        found["attached"],
        logged,
        found["files"],
        found["address"],
        found["processes"],
    )


def test_releases(subject: Subject) -> None:
    engine = engines.get(subject.engine)
    build = engine.build(look(), None)
    versions = engine.known_versions(build.distribution)
    assert list(versions) == sorted(versions, key=Version, reverse=True)
    assert subject.version in versions
    assert build.distribution in engine.distributions
    refused = engine.problem("0.0.1", build.distribution, look())
    assert refused is not None
    assert refused.because
    assert subject.engine in refused.instead


def test_provision(subject: Subject, seeing: Seeing) -> None:
    asked = seeing(subject).order
    assert asked.environment.python.exists()
    assert asked.environment.version == subject.version
    assert asked.environment.distribution in asked.engine.distributions
    recipe = asked.engine.recipe(subject.version, asked.build, asked.machine)
    again = asked.engine.recipe(subject.version, asked.build, asked.machine)
    assert recipe.folder_name() == again.folder_name()
    assert recipe.folder_name().startswith(f"{subject.engine}-{subject.version}")


def test_launch_and_ready(subject: Subject, seeing: Seeing) -> None:
    made = seeing(subject).outcome.capture
    assert made.failure is None
    assert made.identity.source == "launch"
    assert isinstance(made.identity.version, Known)
    assert made.identity.version.value == subject.version
    assert number(made.boot[-1].seconds)
    assert made.launch.native_command[-len(subject.words) :] == subject.words


def test_probe(subject: Subject, seeing: Seeing) -> None:
    seen = seeing(subject)
    assert seen.probe_files
    assert all(seen.probe_files.values())
    settings = seen.outcome.capture.settings
    asked = [key for key, setting in settings.items() if setting.origin == "user" and key != "model.path"]
    assert asked, "what the user wrote is known as the user's"
    assert "the probe" not in " ".join(seen.outcome.capture.notes)


def test_attach(subject: Subject, seeing: Seeing) -> None:
    seen = seeing(subject)
    assert seen.attached.identity.engine == subject.engine
    _agree(seen.outcome.capture, seen.attached)


def test_log(subject: Subject, seeing: Seeing) -> None:
    seen = seeing(subject)
    assert seen.logged.identity.engine == subject.engine
    assert seen.logged.failure is None
    assert seen.logged.reading is not None
    assert seen.logged.reading.starts[-1].ended == "ready"
    _agree(seen.outcome.capture, seen.logged)


def _agree(launched: Capture, other: Capture) -> None:
    """Where both know the version or a setting, they know the same."""
    keys = launched.settings.keys() & other.settings.keys()
    both = {key: (launched.settings[key].final, other.settings[key].final) for key in keys}
    both["version"] = (launched.identity.version, other.identity.version)
    known = {key: pair for key, pair in both.items() if all(isinstance(value, Known) for value in pair)}
    assert known, "an agreement on nothing is none"
    assert {key: pair for key, pair in known.items() if moved(*pair)} == {}


def test_stop(subject: Subject, seeing: Seeing) -> None:
    seen = seeing(subject)
    assert len(seen.processes) >= subject.processes
    assert [process for process in seen.processes if process.is_running()] == []
    with pytest.raises(OSError, match="refused"):
        http.client.HTTPConnection(*seen.address, timeout=2).connect()


def test_die(subject: Subject, tmp_path: Path) -> None:
    model = tmp_path / "model"
    model.mkdir()
    (model / subject.empty_model).write_text("")
    path = model / subject.empty_model if subject.empty_model.endswith(".gguf") else model
    wishes = Wishes(model=str(path), arguments=subject.words, variables=subject.dying)
    _failed(launch(ordered(subject, wishes), lambda _: None))


def _failed(outcome: Outcome) -> str:
    """The outcome of a start that failed: an error, a partial capture, the last words, and nothing left behind."""
    assert outcome.error is not None
    failure = outcome.capture.failure
    assert failure is not None
    assert failure.last_words
    assert failure.advice
    assert psutil.Process().children(recursive=True) == []
    return failure.cause or ""


def test_unknown_flag(subject: Subject) -> None:
    wishes = Wishes(model="tiny", arguments=subject.unknown_flag)
    if subject.refuses_itself:
        with pytest.raises(errors.UnknownFlag, match=subject.unknown_flag[0]):
            launch(ordered(subject, wishes), lambda _: None)
        return
    assert subject.unknown_flag[0].lstrip("-") in _failed(launch(ordered(subject, wishes), lambda _: None))


def test_port_taken(subject: Subject, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        monkeypatch.setattr(launching, "free_port", lambda: other.getsockname()[1])
        wishes = Wishes(model="tiny", arguments=subject.words, start_limit_seconds=120)
        cause = _failed(launch(ordered(subject, wishes), lambda _: None))
    assert "port" in cause or "address" in cause, cause


def test_kill_9(subject: Subject, tmp_path: Path) -> None:
    python = ("--python", str(subject.python)) if subject.python else ()
    words = ("-m", "engdiff", "capture", subject.reference, "--model", "tiny", "-o", str(tmp_path / "x.json"), "-q")
    paths = [os.environ.get("PYTHONPATH", ""), str(TOYS)]
    environ = {**os.environ, **subject.variables, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    killed = psutil.Popen([sys.executable, *words, *python, "--", *subject.words], env=environ)
    shared = _shared_memory()
    family = list(_family(killed, subject.processes))
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    _, alive = psutil.wait_procs(family, timeout=15)
    assert alive == []
    assert _shared_memory() <= shared


def _family(root: psutil.Popen, count: int) -> Iterator[psutil.Process]:
    """Its processes, once so many are there."""
    deadline = time.monotonic() + 300
    while len(root.children(recursive=True)) < count:
        assert time.monotonic() < deadline
        assert root.poll() is None
        time.sleep(0.05)
    yield from root.children(recursive=True)


def _shared_memory() -> set[str]:
    folder = Path("/dev/shm")
    return {entry.name for entry in folder.iterdir()} if folder.is_dir() else set()
