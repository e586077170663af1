"""What uv's last words mean. uv has no codes for its failures, so that its English text is read."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from packaging.utils import canonicalize_name, canonicalize_version

from engdiff.environments.recipe import Recipe
from engdiff.errors import DiskFull, EngdiffError, EnvironmentFailed, NoNetwork
from engdiff.units import GIB, KIB, MIB

_DISK = ("No space left on device", "(os error 28)", "Disk quota exceeded", "(os error 112)")
_PERMISSION = ("Permission denied", "Read-only file system", "Access is denied", "Operation not permitted")
_LOGIN = ("401 Unauthorized", "403 Forbidden", "Missing credentials for")
_OFFLINE = ("network was disabled", "network connectivity is disabled")
_NETWORK = (
    "error sending request for url",
    "dns error",
    "tcp connect error",
    "operation timed out",
    "HTTP status server error",
    "Failed to download distribution due to network timeout",
    "invalid peer certificate",
    *_OFFLINE,
)
_BROKEN = ("Hash mismatch for", "invalid package format", "Failed to read from zip file", "Failed to extract archive")
_NO_PYTHON = ("No interpreter found for", "Failed to inspect Python interpreter", "No download found for request")
_PYTHON_DOWNLOAD = re.compile(r"Failed to download \S*/cpython-\d")
_CONFLICT = ("No solution found when resolving",)
_SIZE = re.compile(r"^\s*Downloading \S+ \(([\d.]+)(KiB|MiB|GiB)\)")
_UNITS = {"KiB": KIB, "MiB": MIB, "GiB": GIB}
_FRAME = re.compile(r"[×│╰─▶├\s]+")
_LAST = 15  # lines of uv's output in a message


class NoSuchRelease(Exception):
    """Internal: the distribution has no such release for this machine; the caller knows which it has."""

    def __init__(self, distribution: str, version: str, because: str) -> None:
        super().__init__(f"{distribution}=={version}: {because}")
        self.distribution = distribution
        self.version = version
        self.because = because


def failure(output: Sequence[str], recipe: Recipe, folder: Path) -> EngdiffError | NoSuchRelease:
    """Make the error that fits the output of a failed uv: the most specific cause first."""
    text = _FRAME.sub(" ", " ".join(output))  # older releases of uv wrap their sentences
    what = f"{recipe.engine} {recipe.version}"
    if _any(_DISK, text):
        return _disk(output, recipe, folder)
    if _any(_PERMISSION, text):
        return _failed(f"{what}: no permission to write its environment", output, folder, "set ENGDIFF_CACHE_DIR")
    if _any(_LOGIN, text):
        return _failed(f"{what}: the package index wants a login", output, folder, "check its user name and password")
    if _any(_NO_PYTHON, text) or _PYTHON_DOWNLOAD.search(text):
        advice = f"install Python {recipe.python}, or run engdiff with it"
        return _failed(f"{what}: there is no Python {recipe.python} to run it", output, folder, advice)
    if _any(_NETWORK, text):
        offline = _any(_OFFLINE, text)
        return NoNetwork(what, "uv is set to work offline (UV_OFFLINE)" if offline else _cause(output))
    missing = no_such_release(text, recipe.distribution, recipe.version)
    if missing:
        return NoSuchRelease(recipe.distribution, recipe.version, missing)
    for signs, problem, advice in (
        (_BROKEN, "a package arrived damaged", "try again with `uv cache clean` in between"),
        (_CONFLICT, "its packages cannot be had together", "check the package indexes that pip and uv are set to use"),
    ):
        if _any(signs, text):
            return _failed(f"{what}: {problem}", output, folder, advice)
    return _failed(f"{what}: uv could not make its environment", output, folder, "the last lines are uv's own")


def no_such_release(text: str, distribution: str, version: str) -> str | None:
    """Say why uv's output means that this very release cannot be had, or None when it means something else."""
    text = _FRAME.sub(" ", text)
    name = re.escape(canonicalize_name(distribution))
    pin = rf"{name}=={re.escape(canonicalize_version(version, strip_trailing_zero=False))}(?![\w.+])"
    for pattern, because in (
        (rf"there is no version of {pin}", "no such version"),
        (rf"{pin} has no (?:usable )?wheels", "no wheel fits this Python and this machine"),
        (rf"Because {name} was not found in", "no such package on the configured indexes"),
        (rf"there are no versions of {name}(?![\w.-])", "no such package on the configured indexes"),
    ):
        if re.search(pattern, text):
            return because
    return None


def _any(signs: Sequence[str], text: str) -> bool:
    return any(sign in text for sign in signs)


def _cause(output: Sequence[str]) -> str:
    """Give the innermost cause that uv names, in one line."""
    causes = [line.strip() for line in output if re.match(r"\s*(error|cause|Caused by):", line)]
    urls = [line for line in causes if "url (" in line or "Failed to fetch" in line]
    last = causes[-1].partition(":")[2].strip() if causes else " ".join(output[-1:]).strip()
    where = re.search(r"https?://[^\s`)]+", urls[-1]) if urls else None
    return f"{last} ({where[0]})" if where and where[0] not in last else last


def _failed(message: str, output: Sequence[str], folder: Path, advice: str) -> EnvironmentFailed:
    last = "\n".join(f"  {line}" for line in [line for line in output if line.strip()][-_LAST:])
    return EnvironmentFailed(f"{message} ({folder}):\n{last}", advice)


def _disk(output: Sequence[str], recipe: Recipe, folder: Path) -> EngdiffError:
    announced = sum(float(size[1]) * _UNITS[size[2]] for line in output if (size := _SIZE.match(line)))
    needed = int(max(announced, recipe.download_bytes_estimate or 0))
    place = next(path for path in (folder, *folder.parents) if path.exists())
    if needed:
        return DiskFull(folder, needed, shutil.disk_usage(place).free)
    message = f"{recipe.engine} {recipe.version}: no space left for its environment"
    return _failed(message, output, folder, "make room: `engdiff env list` shows sizes, `engdiff env prune` removes")
