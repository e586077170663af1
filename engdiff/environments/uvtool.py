"""Run uv: found beside engdiff or on the PATH, told the user's package settings, ended when engdiff is interrupted."""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from engdiff.environments.index import redact_url, uv_settings
from engdiff.environments.store import cache_folder
from engdiff.errors import EnvironmentFailed

_STAGE = re.compile(r"^\s*(Resolved|Downloading|Building|Prepared|Installed|Bytecode compiled)\b")
# these would send an installation to another place than the one asked for
_MISLEADING = ("UV_PYTHON", "UV_SYSTEM_PYTHON", "UV_TARGET", "UV_PREFIX", "VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONPATH")
_END_S = 10.0


@dataclass(frozen=True)
class UvResult:
    """The exit code of uv and its output, standard output and standard error as they came, credentials removed."""

    code: int
    lines: tuple[str, ...]


def find_uv() -> str:
    """Find uv. Raises EnvironmentFailed when there is none."""
    try:
        import uv

        return str(uv.find_uv_bin())
    except (ImportError, FileNotFoundError):
        found = shutil.which("uv")
        if found:
            return found
    raise EnvironmentFailed("uv is not installed, and engdiff makes environments with it", "pip install uv")


def run(
    words: Sequence[str],
    *,
    cache: Path | None = None,
    extra: Mapping[str, str] | None = None,
    progress: Callable[[str], None] | None = None,
    limit_s: float | None = None,
) -> UvResult:
    """Run uv and collect its output; its stage lines ("Downloading torch (2.1GiB)") go to ``progress`` at once.

    Raises EnvironmentFailed when uv cannot be found or started. After ``limit_s`` seconds uv is ended (code not 0).
    """
    process = _start(words, cache_folder(cache), extra or {})
    timer = threading.Timer(limit_s, process.terminate) if limit_s else None
    lines = []
    try:
        if timer:
            timer.start()
        for raw in process.stdout or ():
            lines.append(redact_url(raw.rstrip()))
            if progress and _STAGE.match(raw):
                progress(lines[-1].strip())
        return UvResult(process.wait(), tuple(lines))
    finally:
        if timer:
            timer.cancel()
        _end(process)


def _start(words: Sequence[str], folder: Path, extra: Mapping[str, str]) -> subprocess.Popen[str]:
    folder.mkdir(parents=True, exist_ok=True)
    try:
        return subprocess.Popen(
            [find_uv(), *words],
            env={**_environment(folder), **extra},
            cwd=folder,  # not the user's: uv would read the settings of a project it finds there
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            errors="replace",
        )
    except OSError as error:
        raise EnvironmentFailed(f"uv cannot be started: {error}", "pip install --force-reinstall uv") from error


def _end(process: subprocess.Popen[str]) -> None:
    """End a uv that still runs, because engdiff was interrupted, and close its pipe."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(_END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    if process.stdout:
        process.stdout.close()


def _environment(folder: Path) -> dict[str, str]:
    own = {name: value for name, value in os.environ.items() if name not in _MISLEADING}
    chosen = {"UV_NO_PROGRESS": "1", "NO_COLOR": "1"}
    if not os.environ.get("UV_CACHE_DIR") and not _linkable(folder):
        chosen["UV_CACHE_DIR"] = str(folder / "uv")
    return {**own, **uv_settings().variables, **chosen}


@functools.cache
def _linkable(folder: Path) -> bool:
    """Whether uv's own cache is on the file system of ours, so that environments can share files by hard links."""
    answer = subprocess.run([find_uv(), "cache", "dir"], capture_output=True, text=True, check=False).stdout.strip()
    place = Path(answer)
    while answer and not place.exists() and place != place.parent:
        place = place.parent
    return bool(answer) and place.stat().st_dev == folder.stat().st_dev
