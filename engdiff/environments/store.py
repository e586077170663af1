"""The environments on disk: which there are, which are complete, how big they are, and removing them.

An environment is complete when its marker can be read and its interpreter is there; the marker is written last. Its
modification time is when the environment was last used.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import platformdirs
from filelock import FileLock, Timeout

from engdiff.environments.recipe import Environment, Recipe
from engdiff.errors import UsageError

MARKER = "engdiff-env.json"
_SCHEMA = 1
_DAY_S = 86_400


@dataclass(frozen=True)
class Stored:
    """One environment on disk. Sizes are in bytes, as of when it was made; None when it is half-made."""

    name: str
    engine: str
    version: str
    folder: Path
    complete: bool
    bytes_own: int | None
    bytes_total: int | None
    last_used: datetime


def cache_folder(cache: Path | None = None) -> Path:
    """Give engdiff's cache folder: the argument, ``ENGDIFF_CACHE_DIR``, or the user's cache folder."""
    named = cache or os.environ.get("ENGDIFF_CACHE_DIR")
    return Path(named).expanduser().absolute() if named else Path(platformdirs.user_cache_dir("engdiff"))


def environments_folder(cache: Path | None = None) -> Path:
    """Give the folder that holds one folder per environment."""
    return cache_folder(cache) / "envs"


def interpreter(folder: Path) -> Path:
    """Give the path of an environment's Python."""
    return folder / "Scripts/python.exe" if os.name == "nt" else folder / "bin/python"


def read(folder: Path) -> Environment | None:
    """Read an environment from its marker; None when it is half-made."""
    try:
        marker = json.loads((folder / MARKER).read_text(encoding="utf-8"))
        found = Environment(
            folder=folder,
            python=interpreter(folder),
            python_version=marker["python_version"],
            distribution=marker["distribution"],
            version=marker["version"],
            packages=dict(marker["packages"]),
            notes=tuple(marker["notes"]),
            bytes_own=marker["bytes_own"],
            bytes_total=marker["bytes_total"],
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return found if marker.get("schema") == _SCHEMA and found.python.exists() else None


def write(environment: Environment, recipe: Recipe) -> None:
    """Write the marker, atomically: from now on the environment is complete. Raises OSError."""
    marker: dict[str, Any] = {
        "schema": _SCHEMA,
        "recipe": asdict(recipe),
        "made_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "python_version": environment.python_version,
        "distribution": environment.distribution,
        "version": environment.version,
        "packages": dict(environment.packages),
        "notes": list(environment.notes),
        "bytes_own": environment.bytes_own,
        "bytes_total": environment.bytes_total,
    }
    draft = environment.folder / f"{MARKER}.new"
    draft.write_text(json.dumps(marker, indent=1) + "\n", encoding="utf-8")
    draft.replace(environment.folder / MARKER)


def touch(folder: Path) -> None:
    """Note that an environment is used now."""
    with suppress(OSError):  # a cache that is read only can be used all the same
        os.utime(folder / MARKER)


def environments(cache: Path | None = None) -> tuple[Stored, ...]:
    """List all environments, complete or not, by name."""
    root = environments_folder(cache)
    if not root.is_dir():
        return ()
    folders = [path for path in sorted(root.iterdir()) if path.is_dir() and not path.name.startswith(".")]
    return tuple(_stored(folder) for folder in folders)


def _stored(folder: Path) -> Stored:
    found = read(folder)
    engine, _, rest = folder.name.partition("-")
    return Stored(
        name=folder.name,
        engine=engine,
        version=rest.rpartition("-")[0],
        folder=folder,
        complete=found is not None,
        bytes_own=found.bytes_own if found else None,
        bytes_total=found.bytes_total if found else None,
        last_used=datetime.fromtimestamp((folder / MARKER if found else folder).stat().st_mtime, UTC),
    )


def remove(names: Iterable[str], cache: Path | None = None) -> tuple[Stored, ...]:
    """Remove environments by name, ``ENGINE-VERSION`` or ``ENGINE@VERSION``; returns those removed.

    Raises UsageError, before anything is removed, when a name fits none.
    """
    stored = environments(cache)
    chosen: dict[str, Stored] = {}
    for name in names:
        fits = [
            one for one in stored if name in {one.name, f"{one.engine}-{one.version}", f"{one.engine}@{one.version}"}
        ]
        if not fits:
            raise UsageError(f"no environment is called `{name}`", "`engdiff env list` shows them")
        chosen |= {one.name: one for one in fits}
    return _remove_all(chosen.values())


def prune(
    older_than_days: float | None = None, *, half_made: bool = True, cache: Path | None = None
) -> tuple[Stored, ...]:
    """Remove what was not used for so many days, and what is half-made; returns those removed.

    An environment that is being made at this moment is left alone.
    """
    limit = time.time() - (older_than_days or 0) * _DAY_S
    return _remove_all(
        one
        for one in environments(cache)
        if (half_made and not one.complete)
        or (older_than_days is not None and one.complete and one.last_used.timestamp() < limit)
    )


def _remove_all(chosen: Iterable[Stored]) -> tuple[Stored, ...]:
    removed = []
    for one in chosen:
        with suppress(Timeout), _lock_file(one.folder).acquire(timeout=0):
            erase(one.folder)
            removed.append(one)
    return tuple(removed)


def erase(folder: Path) -> None:
    """Remove an environment's folder, its marker first, so that it is never taken for complete. Raises OSError."""
    (folder / MARKER).unlink(missing_ok=True)
    if folder.exists():
        shutil.rmtree(folder)


def _lock_file(folder: Path) -> FileLock:
    locks = folder.parent / ".locks"
    locks.mkdir(parents=True, exist_ok=True)
    return FileLock(locks / f"{folder.name}.lock", poll_interval=0.1)


@contextmanager
def locked(folder: Path, progress: Callable[[str], None]) -> Iterator[None]:
    """Keep other processes away from an environment; who is waited for is told through ``progress``."""
    lock = _lock_file(folder)
    owner = folder.parent / ".locks" / f"{folder.name}.owner"
    try:
        lock.acquire(timeout=0)
    except Timeout:
        progress(f"waiting for {_owner(owner)}, which is making {folder.name}")
        lock.acquire()
    try:
        owner.write_text(str(os.getpid()), encoding="ascii")
        yield
    finally:
        owner.unlink(missing_ok=True)
        lock.release()


def _owner(path: Path) -> str:
    try:
        return f"process {path.read_text(encoding='ascii').strip()}"
    except (OSError, ValueError):
        return "another engdiff"


def sizes(folder: Path) -> tuple[int, int]:
    """Measure bytes on disk: what removing the folder would free, and all of it with what it shares by hard links."""
    found: Counter[tuple[int, int]] = Counter()
    files: dict[tuple[int, int], os.stat_result] = {}
    pending = [folder]
    while pending:
        with os.scandir(pending.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    pending.append(Path(entry.path))
                    continue
                # os.stat, not entry.stat: on Windows the latter does not count links
                stat = os.stat(entry.path, follow_symlinks=False)  # noqa: PTH116
                key = (stat.st_dev, stat.st_ino)
                found[key] += 1
                files[key] = stat
    shared = sum(_on_disk(stat) for key, stat in files.items() if stat.st_nlink > found[key])
    total = sum(_on_disk(stat) for stat in files.values())
    return total - shared, total


def _on_disk(stat: os.stat_result) -> int:
    """Bytes that a file takes; its length where the system does not count blocks (Windows)."""
    return int(stat.st_blocks) * 512 if hasattr(stat, "st_blocks") else stat.st_size
