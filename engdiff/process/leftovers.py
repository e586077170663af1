"""What a killed engine leaves behind: shared memory segments, and files in its temporary folder. POSIX only.

A segment is removed only when a process of the engine's tree was seen using it, it was not there before the start, and
nobody else uses it. Linux only: elsewhere segments have no names that could be listed, and none are removed.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

import psutil

TRACKERS_S = 3.0  # what resource trackers get to unlink what they know, once nobody else is left
REMOVAL_S = 20.0  # for a container that is killed and removed, once or twice
_GONE = re.compile(r"no such container|no container with|already in progress", re.IGNORECASE)
_TRACKER = re.compile(r"from [\w.]*\bresource_tracker import main\b")
_FOLDER = "/dev/shm"  # noqa: S108 -- the system's own place
_LONGEST_BASE = 40  # a socket's path may have 107 bytes, and engines append a name with a UUID


class SharedMemory:
    """The segments that an engine's processes were seen using, of those that did not exist before."""

    def __init__(self) -> None:
        self._before = _names()
        self._looked_at = self._before
        self._used: set[str] = set()

    def something_new(self) -> bool:
        """Whether names appeared since the last look; cheap, and the answer is mostly no."""
        names = _names()
        news = not names <= self._looked_at
        self._looked_at = names
        return news

    def note(self, processes: Iterable[psutil.Process]) -> None:
        """Remember what these processes have mapped or opened now."""
        if not _names() <= self._before:
            for process in processes:
                self._used |= segments_of(process.pid)
            self._used -= self._before

    def remove(self) -> list[str]:
        """Unlink what is still there and nobody uses any more; returns the paths."""
        candidates = self._used & _names()
        if not candidates:
            return []
        for pid in psutil.pids():
            candidates -= segments_of(pid)
        removed = []
        for name in sorted(candidates):
            with suppress(OSError):
                Path(_FOLDER, name).unlink()
                removed.append(f"{_FOLDER}/{name}")
        return removed


def _names() -> frozenset[str]:
    try:
        return frozenset(os.listdir(_FOLDER))  # noqa: PTH208 -- called twice a second
    except OSError:
        return frozenset()


def segments_of(pid: int) -> set[str]:
    """Names under /dev/shm that a process has mapped or opened; empty when it is gone or not ours to look at."""
    paths: list[str] = []
    with suppress(OSError):
        maps = Path(f"/proc/{pid}/maps").read_text(errors="replace")
        paths += [line[line.index(_FOLDER) :] for line in maps.splitlines() if f" {_FOLDER}/" in line]
    with suppress(OSError):
        for entry in os.scandir(f"/proc/{pid}/fd"):
            with suppress(OSError):
                paths.append(os.readlink(entry.path))  # noqa: PTH115 -- the target need not be a path
    return {
        path.removeprefix(f"{_FOLDER}/")
        for path in paths
        if path.startswith(f"{_FOLDER}/") and not path.endswith(" (deleted)")
    }


def temporary_folder(wanted: str | None) -> str:
    """Make the engine's private TMPDIR: in the user's own when its path is short enough for sockets, else in /tmp.

    Raises OSError when neither can be written.
    """
    if wanted and len(os.fsencode(wanted)) <= _LONGEST_BASE and os.access(wanted, os.W_OK | os.X_OK):
        return tempfile.mkdtemp(prefix="ed-", dir=wanted)
    return tempfile.mkdtemp(prefix="ed-", dir="/tmp")


def is_tracker(process: psutil.Process) -> bool:
    """Whether this is a resource tracker of Python: it ends by itself, after unlinking what its users left."""
    try:
        return any(_TRACKER.match(word) for word in process.cmdline())
    except psutil.Error:
        return False


def processes_of(folder: str) -> list[psutil.Process]:
    """Find the processes, anywhere on the machine, that were given this folder as their TMPDIR."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.environ().get("TMPDIR") == folder:
                found.append(process)
    return found


def run_removal(command: Sequence[str]) -> str:
    """Run what removes something outside the tree, such as a container; says why it failed, or nothing.

    Where there is nothing to remove any more, all is well.
    """
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=REMOVAL_S, check=False
        )
    except subprocess.TimeoutExpired:
        return f"no answer within {REMOVAL_S:.0f} s"
    except OSError as error:
        return str(error)
    said = " ".join((done.stderr or done.stdout).split())
    return "" if done.returncode == 0 or _GONE.search(said) else said or f"exit code {done.returncode}"


def remaining(folder: str) -> list[str]:
    """List what lies in the temporary folder, one level deep."""
    try:
        return [str(path) for path in sorted(Path(folder).iterdir())]
    except OSError:
        return []
