"""The guard: a small process that holds an engine's process tree, and ends all of it.

engdiff runs ``python -m engdiff.process.guard`` in a session of its own and talks to it through pipes, one JSON
document per line. Into stdin goes first the order (``argv``, ``env``, ``cwd``, ``limits``, ``removal``), later
``"stop"`` or ``"kill"``; the end of stdin means that engdiff died, and is a request to stop as well. Out of stdout
come the events ``started``, ``refused``, ``exited`` and, last of all, ``stopped``. What the engine prints goes to the
guard's own stderr, which engdiff points at a log file.

Linux hands the orphans of the tree to the guard (it is their "child subreaper"), so that no double fork and no new
session escapes. What is no process of the tree, as in a container, is ended by the command ``removal``, which is run
last and always. macOS has no such thing: there orphans are found by the private TMPDIR in their environment, and one
that changed it can escape. POSIX only; standard library and psutil only.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import psutil

from engdiff.process import leftovers

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_REQUESTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_TICK_S = 0.5  # how often new names of shared memory are looked for
_ORPHANED_S = (1.5, 1.5, 3.0)  # limits when engdiff is gone: nobody reads results any more, so there is no time to give
_GRACE_S = 2.0  # what an engine's processes get to end by themselves, once their main process has


def _prctl(option: int, value: int) -> bool:
    """Set one attribute of this process; False where the system has no prctl."""
    if not sys.platform.startswith("linux"):
        return False
    return bool(ctypes.CDLL(None).prctl(option, value, 0, 0, 0) == 0)


def _die_with_guard() -> None:
    """In the engine's main process, before exec: a guard that is killed takes it along."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


@dataclass(frozen=True)
class Tree:
    """All processes that came out of the engine, however they detached themselves."""

    adopts_orphans: bool
    folder: str

    def living(self) -> list[psutil.Process]:
        """Every process of the tree that has not ended."""
        found = psutil.Process().children(recursive=True)
        if not self.adopts_orphans:
            found += [process for process in leftovers.processes_of(self.folder) if process not in found]
        return [process for process in found if _lives(process)]


def _lives(process: psutil.Process) -> bool:
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


class Guard:
    """One engine: its tree, its pipes, and the way it is ended."""

    def __init__(self, order: dict[str, Any], inbox: int) -> None:
        self.order = order
        self.folder = leftovers.temporary_folder(order["env"].get("TMPDIR"))
        self.tree = Tree(_prctl(_PR_SET_CHILD_SUBREAPER, 1), self.folder)
        self.memory = leftovers.SharedMemory()
        self.engine: int = 0
        self.engine_lives = False
        self.stop_wanted = False
        self.kill_wanted = False
        self._inbox: int | None = inbox
        self._text = b""
        self._alarm, self._alarm_end = os.pipe()

    def run(self) -> None:
        """Start the engine, wait for its end or for a request to stop, and leave nothing behind."""
        self._catch_signals()
        try:
            if self._start():
                self._watch()
                self._stop()
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)
            if self._inbox is None and self.order.get("scratch"):
                shutil.rmtree(self.order["scratch"], ignore_errors=True)

    def _catch_signals(self) -> None:
        """Turn signals into bytes on a pipe. Handlers, not SIG_IGN: that would be inherited by the engine."""
        os.set_blocking(self._alarm, False)
        os.set_blocking(self._alarm_end, False)
        signal.set_wakeup_fd(self._alarm_end, warn_on_full_buffer=False)
        for number in (*_REQUESTS, signal.SIGCHLD):
            signal.signal(number, lambda *_: None)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())

    def _start(self) -> bool:
        try:
            # preexec_fn is safe here: this process has one thread
            process = subprocess.Popen(
                self.order["argv"],
                env=self.order["env"] | {"TMPDIR": self.folder},
                cwd=self.order["cwd"],
                stdin=subprocess.DEVNULL,
                stdout=sys.stderr,
                stderr=sys.stderr,
                start_new_session=True,
                preexec_fn=_die_with_guard,
            )
        except (OSError, subprocess.SubprocessError, ValueError) as error:
            _tell("refused", because=str(error))
            return False
        process.returncode = 0  # its end is collected here, with every orphan's: Popen must not wait for it
        self.engine, self.engine_lives = process.pid, True
        _tell("started", pid=process.pid, temporary=self.folder)
        return True

    def _watch(self) -> None:
        while self.engine_lives and not self.stop_wanted:
            self._wait(_TICK_S)
            if self.memory.something_new():
                self.memory.note(self.tree.living())

    def _wait(self, limit_s: float) -> None:
        """Sleep until a message, a signal or the limit; then collect whoever ended."""
        sources = [self._alarm] if self._inbox is None else [self._alarm, self._inbox]
        ready, _, _ = select.select(sources, [], [], max(0.0, limit_s))
        if self._alarm in ready:
            numbers = os.read(self._alarm, 4096)
            self.stop_wanted |= any(number in numbers for number in _REQUESTS)
        if self._inbox in ready:
            self._read()
        self._reap()

    def _read(self) -> None:
        if self._inbox is None:
            return
        data = os.read(self._inbox, 4096)
        self._text += data
        self.kill_wanted |= b"kill" in self._text
        self.stop_wanted |= not data or self.kill_wanted or b"stop" in self._text
        if not data:
            self._inbox = None

    def _reap(self) -> None:
        with suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return
                if pid == self.engine:
                    self.engine_lives = False
                    _tell("exited", status=os.waitstatus_to_exitcode(status))

    def _stop(self) -> None:
        """Ask, terminate, kill: each step only for what the one before has left alive."""
        began = time.monotonic()
        orphaned = self._inbox is None
        ask_s, terminate_s, kill_s = _ORPHANED_S if orphaned else self.order["limits"]
        step = "none"
        self.memory.note(self.tree.living())
        if self.engine_lives and not self.kill_wanted:
            step = "ask"
            self._ask()
            self._wait_while(lambda: self.engine_lives, ask_s)
        if not self.engine_lives:
            self._wait_while(self._others, _GRACE_S)
        if self._others() and not self.kill_wanted:
            step = "terminate"
            self._signal_all(signal.SIGTERM)
            self._wait_while(self._others, terminate_s)
        if self._others():
            step = "kill"
            self._kill_all(kill_s)
        self._end_trackers()
        left = [process.pid for process in self.tree.living()]
        removed = [*self.memory.remove(), *leftovers.remaining(self.folder)]
        unremoved = self._remove()
        seconds = time.monotonic() - began
        _tell("stopped", step=step, seconds=seconds, removed=removed, left=left, unremoved=unremoved)

    def _remove(self) -> str:
        """Whatever its client did: a client that was killed leaves its container running."""
        removal = self.order.get("removal")
        return leftovers.run_removal(removal) if removal else ""

    def _wait_while(self, busy: Callable[[], object], limit_s: float) -> None:
        """Wait until nothing is busy, the limit is over, or engdiff is in a hurry."""
        end = time.monotonic() + limit_s
        while busy() and time.monotonic() < end and not self.kill_wanted:
            self._wait(min(0.1, end - time.monotonic()))
        self.memory.note(self.tree.living())

    def _kill_all(self, limit_s: float) -> None:
        """SIGKILL, again and again: a process may have forked between the look and the signal."""
        end = time.monotonic() + limit_s
        while self._others() and time.monotonic() < end:
            self._signal_all(signal.SIGKILL)
            self._wait(min(0.1, end - time.monotonic()))

    def _others(self) -> list[psutil.Process]:
        return [process for process in self.tree.living() if not leftovers.is_tracker(process)]

    def _ask(self) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.engine, signal.SIGINT)

    def _signal_all(self, number: signal.Signals) -> None:
        for process in self._others():
            with suppress(psutil.Error):
                process.send_signal(number)

    def _end_trackers(self) -> None:
        """Let the resource trackers unlink what they know, and kill those that do not end."""
        end = time.monotonic() + leftovers.TRACKERS_S
        while self.tree.living() and time.monotonic() < end:
            self._wait(0.05)
        end = time.monotonic() + leftovers.TRACKERS_S
        while (left := self.tree.living()) and time.monotonic() < end:
            for process in left:
                with suppress(psutil.Error):
                    process.kill()
            self._wait(0.05)


def _tell(event: str, **facts: object) -> None:
    with suppress(OSError):  # nobody listens when engdiff died
        sys.stdout.write(json.dumps({"event": event} | facts) + "\n")
        sys.stdout.flush()


def _read_line(source: int) -> bytes:
    """One line, byte by byte from the descriptor: a buffered reader would swallow a later message."""
    line = bytearray()
    while (data := os.read(source, 1)) and data != b"\n":
        line += data
    return bytes(line)


def main() -> None:
    """Read the order from stdin and guard its engine until both are gone."""
    inbox = sys.stdin.fileno()
    line = _read_line(inbox)
    if line:
        Guard(json.loads(line), inbox).run()


if __name__ == "__main__":
    main()
