"""The one parser of references: wherever a verb wants a Capture, the user may give any of these.

A capture file or a log, ``-`` (standard input), a URL of a running server, ``engine@version`` or ``engine``
(launched now), ``engine@version/gpu`` (a shipped profile, else resolved by the engine's own code for a GPU that need
not be there).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from engdiff import errors

_ENGINE = re.compile(r"^(?P<engine>[A-Za-z][A-Za-z0-9_.\-]*?)(?:@(?P<version>[^/@\s]*))?(?:/(?P<gpu>[^/\s]+))?$")
HERE = "here"
"""In place of a GPU: this machine as it is, nothing pretended."""

ANY = "any"
"""In place of a GPU: whatever device there is, for engines whose defaults follow from none."""

_FILE_ENDINGS = (".json", ".log", ".txt", ".yaml", ".yml", ".gz")


@dataclass(frozen=True)
class FileReference:
    """A document or a log on disk."""

    path: Path


@dataclass(frozen=True)
class StdinReference:
    """A document or a log on standard input."""


@dataclass(frozen=True)
class EngineReference:
    """An engine to launch; ``version`` is ``None`` for the newest (or for the one that is installed).

    ``gpu``, as the user wrote it (``h100-80gb:8``, ``here``), is a device to pretend instead of a launch.
    """

    engine: str
    version: str | None
    gpu: str | None = None


@dataclass(frozen=True)
class UrlReference:
    """A server that runs already."""

    url: str


Reference = FileReference | StdinReference | UrlReference | EngineReference


def parse(text: str) -> Reference:
    """The reference that ``text`` names. Raises :class:`~engdiff.errors.ReferenceInvalid` for what is none."""
    if text == "-":
        return StdinReference()
    if re.match(r"^https?://", text):
        return UrlReference(text)
    path = Path(text)
    if text.endswith(_FILE_ENDINGS) or _is_there(path):
        return FileReference(path)
    match = _ENGINE.fullmatch(text)
    if match is None or (match["version"] is not None and not match["version"]):
        raise errors.ReferenceInvalid(
            f"`{text}` is neither a file nor ENGINE@VERSION",
            "examples: old.json, server.log, http://127.0.0.1:8000, vllm@0.32.0, llamacpp, -",
        )
    return EngineReference(match["engine"].lower(), match["version"], match["gpu"])


def _is_there(path: Path) -> bool:
    """Whether there is something to read; a folder that is named like an engine is none."""
    try:
        return path.exists() and not path.is_dir()
    except (OSError, ValueError):
        return False  # a name that no file can have
