"""engdiff's side of a running engine: start it under a guard, watch it, stop it.

The engine belongs to the guard (see :mod:`engdiff.process.guard`), so that it is stopped and tidied up after even when
engdiff itself is killed.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple

import psutil

from engdiff.errors import EngineFailed, MachineUnfit
from engdiff.process import leftovers

_POLL_S = 0.2
_START_S = 60.0  # for the guard, an import of psutil on a busy machine; not for the engine
_MARGIN_S = 15.0  # on top of the three limits of a stop: trackers, cleaning, a busy machine

StopStep = Literal["none", "ask", "terminate", "kill"]


class StopLimits(NamedTuple):
    """How long each step of a stop may take, in seconds, before the next one."""

    ask: float = 20.0
    terminate: float = 10.0
    kill: float = 10.0


_LIMITS = StopLimits()


@dataclass(frozen=True)
class EngineCommand:
    """What to start. ``env`` is the complete environment, but TMPDIR, which will be a private folder.

    ``scratch`` is a folder of engdiff's own for this run: the guard removes it when engdiff dies before it could.
    ``removal`` is a command that ends what is no child of the engine's main process (a container): it is run last,
    however the engine ended, and whoever of engdiff and guard is left to run it.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: Path
    log: Path
    stop_limits_s: StopLimits = _LIMITS
    scratch: Path | None = None
    removal: tuple[str, ...] = ()


@dataclass(frozen=True)
class ExitStatus:
    """How a process ended: with a code, or by a signal, given by its name (``SIGILL``)."""

    code: int | None
    signal: str | None

    def __str__(self) -> str:
        return f"killed by {self.signal}" if self.signal else f"exit code {self.code}"


@dataclass(frozen=True)
class ReadyResult:
    """The outcome of waiting: ``exit`` is known when the engine died."""

    state: Literal["ready", "died", "timed out"]
    seconds: float
    exit: ExitStatus | None = None


@dataclass(frozen=True)
class ProcessFact:
    """One process of the engine. ``title`` is its command line as the system shows it, which it may have rewritten."""

    pid: int
    parent_pid: int
    name: str
    command: tuple[str, ...]
    title: str
    threads: int


@dataclass(frozen=True)
class StopReport:
    """How an engine was stopped: the last step needed, what was removed, and the pids that would not end.

    ``unremoved``: why the command ``removal`` failed.
    """

    step: StopStep
    seconds: float
    removed: tuple[str, ...] = ()
    left: tuple[int, ...] = ()
    unremoved: str = ""


class RunningEngine:
    """A started engine. Made by :func:`running`; safe to ask from several threads."""

    def __init__(self, guard: subprocess.Popen[str], command: EngineCommand) -> None:
        self._guard = guard
        self._command = command
        self._events: dict[str, dict[str, Any]] = {}
        self._guard_ended = False
        self._news = threading.Condition()
        self._listener = threading.Thread(target=self._listen, name="engdiff-guard", daemon=True)
        self._listener.start()

    @property
    def pid(self) -> int:
        """The process id of the engine's main process."""
        return int(self._events["started"]["pid"])

    def alive(self) -> bool:
        """Whether the engine's main process is running."""
        return self.exit() is None

    def exit(self) -> ExitStatus | None:
        """How the engine's main process ended, or None while it runs."""
        with self._news:
            event = self._events.get("exited")
            lost = self._guard_ended and event is None
        if lost:  # the kernel kills the engine together with its guard
            return ExitStatus(None, "SIGKILL")
        return _exit_status(event["status"]) if event else None

    def wait_until(
        self, ready: Callable[[], bool], limit_s: float, on_tick: Callable[[float], None] | None = None
    ) -> ReadyResult:
        """Ask ``ready`` several times a second until it says yes, the engine dies, or the limit is over.

        ``on_tick`` is called after each try with the seconds since the start of the wait.
        """
        began = time.monotonic()
        while True:
            status = self.exit()
            if status is not None:
                return ReadyResult("died", time.monotonic() - began, status)
            if ready():
                return ReadyResult("ready", time.monotonic() - began)
            seconds = time.monotonic() - began
            if seconds >= limit_s:
                return ReadyResult("timed out", seconds)
            if on_tick:
                on_tick(seconds)
            self._wait_for("exited", min(_POLL_S, limit_s - seconds))

    def processes(self) -> tuple[ProcessFact, ...]:
        """Every process that came out of the engine and lives, the orphans too; parents before children."""
        facts = []
        with suppress(psutil.NoSuchProcess):
            for process in psutil.Process(self._guard.pid).children(recursive=True):
                with suppress(psutil.Error):
                    facts.append(_fact(process))
        return tuple(facts)

    def stop(self) -> StopReport:
        """Stop the whole tree and clean up after it; may be called again, and then only reports.

        Ctrl-C meanwhile goes straight to the last step (kill), and is raised when that is done.
        """
        self._send("stop")
        try:
            self._wait_for("stopped", sum(self._command.stop_limits_s) + self._margin_s)
        except KeyboardInterrupt:
            self._send("kill")
            self._wait_for("stopped", self._command.stop_limits_s.kill + self._margin_s)
            raise
        finally:
            self._release()
        event = self._events.get("stopped")
        if event is None:
            return self._clean_up_alone()
        return StopReport(
            event["step"], event["seconds"], tuple(event["removed"]), tuple(event["left"]), event["unremoved"]
        )

    @property
    def _margin_s(self) -> float:
        return _MARGIN_S + (leftovers.REMOVAL_S if self._command.removal else 0.0)

    def _clean_up_alone(self) -> StopReport:
        """Do what the guard would have done, when it was killed: its engine's processes are known by their TMPDIR."""
        folder = self._events.get("started", {}).get("temporary")
        if folder is None:
            return StopReport("none", 0.0)
        began = time.monotonic()
        limit_s = self._command.stop_limits_s.kill
        while (left := leftovers.processes_of(folder)) and time.monotonic() - began < limit_s:
            late = time.monotonic() - began > leftovers.TRACKERS_S
            for process in left:
                with suppress(psutil.Error):
                    if late or not leftovers.is_tracker(process):
                        process.kill()
            psutil.wait_procs(left, _POLL_S)
        unremoved = leftovers.run_removal(self._command.removal) if self._command.removal else ""
        removed = tuple(leftovers.remaining(folder))
        shutil.rmtree(folder, ignore_errors=True)
        pids = tuple(process.pid for process in left)
        return StopReport("kill", time.monotonic() - began, removed, pids, unremoved)

    def _begin(self) -> None:
        """Hand the order to the guard and wait for the engine's pid. Raises EngineFailed when it cannot be started."""
        order = {
            "argv": self._command.argv,
            "env": dict(self._command.env),
            "cwd": str(self._command.cwd),
            "limits": self._command.stop_limits_s,
            "scratch": str(self._command.scratch) if self._command.scratch else None,
            "removal": self._command.removal,
        }
        self._send(json.dumps(order))
        self._wait_for("started", _START_S)
        if "started" not in self._events:
            silent = {"because": f"its guard process said nothing; see {self._command.log}"}
            because = self._events.get("refused", silent)["because"]
            raise EngineFailed(
                f"{self._command.argv[0]}: cannot be started: {because}",
                cause=None,
                advice="the engine's environment may be damaged: `engdiff env list` shows it",
                last_words=(),
                log=self._command.log,
            )

    def _listen(self) -> None:
        for line in _pipe(self._guard.stdout):
            with suppress(ValueError), self._news:
                event = json.loads(line)
                self._events[event["event"]] = event
                self._news.notify_all()
        with self._news:
            self._guard_ended = True
            self._news.notify_all()

    def _wait_for(self, event: str, limit_s: float) -> None:
        with self._news:
            self._news.wait_for(lambda: event in self._events or self._guard_ended, limit_s)

    def _send(self, message: str) -> None:
        with suppress(OSError, ValueError):  # the guard is gone, or its pipe is closed: nothing to say any more
            _pipe(self._guard.stdin).write(message + "\n")
            _pipe(self._guard.stdin).flush()

    def _release(self) -> None:
        """Close the pipes and collect the guard; one that hangs is killed, and the kernel kills its engine then."""
        with suppress(OSError):
            _pipe(self._guard.stdin).close()
        try:
            self._guard.wait(_MARGIN_S)
        except subprocess.TimeoutExpired:
            for process in psutil.Process(self._guard.pid).children(recursive=True):
                with suppress(psutil.Error):
                    process.kill()
            self._guard.kill()
            self._guard.wait()
        self._listener.join(_MARGIN_S)
        _pipe(self._guard.stdout).close()


@contextmanager
def running(command: EngineCommand) -> Iterator[RunningEngine]:
    """Start an engine, and stop it with all that came out of it when the block is left, however it is left.

    Raises EngineFailed when it cannot be started, MachineUnfit where engines cannot be launched at all (Windows).
    """
    if os.name != "posix":
        raise MachineUnfit("engines cannot be launched on this system", "launch on Linux or macOS; files diff anywhere")
    command.log.parent.mkdir(parents=True, exist_ok=True)
    engine = RunningEngine(_start_guard(command.log), command)
    try:
        engine._begin()  # noqa: SLF001
        yield engine
    finally:
        engine.stop()


def _start_guard(log: Path) -> subprocess.Popen[str]:
    root = str(Path(__file__).parents[2])  # so that a source checkout works, too
    paths = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
    with log.open("ab") as stderr:
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "engdiff.process.guard"],
            env={**os.environ, "PYTHONPATH": paths},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            encoding="utf-8",
            start_new_session=True,  # Ctrl-C in the terminal must reach engdiff alone
        )


def _pipe(stream: IO[str] | None) -> IO[str]:
    if stream is None:  # pragma: no cover -- both pipes are always asked for
        raise ValueError("no pipe")
    return stream


def _exit_status(status: int) -> ExitStatus:
    if status >= 0:
        return ExitStatus(status, None)
    try:
        return ExitStatus(None, signal.Signals(-status).name)
    except ValueError:  # a real-time signal has no name
        return ExitStatus(None, f"signal {-status}")


def _fact(process: psutil.Process) -> ProcessFact:
    with process.oneshot():
        command = tuple(process.cmdline())
        return ProcessFact(
            pid=process.pid,
            parent_pid=process.ppid(),
            name=process.name(),
            command=command,
            title=" ".join(command).strip(),
            threads=process.num_threads(),
        )
