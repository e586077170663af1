"""Which releases of a package can be installed here."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from packaging.version import InvalidVersion, Version

from engdiff.environments import uvtool
from engdiff.environments.index import is_true, uv_settings

_LIST_LIMIT_S = 120.0


def list_versions(distribution: str, *, python: str | None = None, cache: Path | None = None) -> tuple[str, ...]:
    """List the releases that can be installed here, newest first, without pre-releases; empty when it cannot be told.

    pip is asked, run by uv, because it knows all of the user's settings by itself. ``python`` is the version whose
    wheels count (``3.11``).
    """
    words = [
        "tool",
        "run",
        *uv_settings().arguments,
        "--quiet",
        *(["--python", python] if python else []),
        "--from",
        "pip",
    ]
    words += ["pip", "index", "versions", "--only-binary", ":all:", distribution]
    result = uvtool.run(words, cache=cache, extra=_for_pip(os.environ), limit_s=_LIST_LIMIT_S)
    listed = [line for line in result.lines if line.strip().startswith("Available versions:")]
    if result.code != 0 or not listed:
        return ()
    found = listed[0].partition(":")[2].replace(",", " ").split()
    return tuple(str(version) for version in sorted(_releases(found), reverse=True))


def _releases(words: Iterable[str]) -> Iterable[Version]:
    for word in words:
        try:
            version = Version(word)
        except InvalidVersion:
            continue
        if not version.is_prerelease:
            yield version


def _for_pip(environ: Mapping[str, str]) -> dict[str, str]:
    """Tell pip what the user told only uv."""
    pairs = {
        "PIP_INDEX_URL": environ.get("UV_DEFAULT_INDEX") or environ.get("UV_INDEX_URL"),
        "PIP_EXTRA_INDEX_URL": environ.get("UV_INDEX") or environ.get("UV_EXTRA_INDEX_URL"),
        "PIP_FIND_LINKS": (environ.get("UV_FIND_LINKS") or "").replace(",", " "),
        "PIP_NO_INDEX": "1" if is_true(environ.get("UV_OFFLINE", "")) else None,
        "PIP_RETRIES": "1",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }
    return {name: value for name, value in pairs.items() if value and name not in environ}
