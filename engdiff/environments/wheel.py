"""Python files of an engine's release, out of the real wheel on the index.

A GPU wheel has several hundred MB; only the members that are wanted are fetched, by HTTP ranges, and kept in engdiff's
cache folder (``trees/DISTRIBUTION-VERSION``). The wheel itself is never kept.
"""

from __future__ import annotations

import io
import json
import shutil
import ssl
import tempfile
import tomllib
import urllib.request
import zipfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPResponse
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast
from urllib.parse import urlsplit
from urllib.request import url2pathname

from engdiff.environments.index import uv_settings
from engdiff.environments.store import cache_folder
from engdiff.environments.uvtool import run
from engdiff.errors import EngdiffError
from engdiff.units import KIB

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

READ_AHEAD_BYTES = 128 * KIB
"""One request brings a typical source file of an engine, compressed, with its header."""

LIMIT_SECONDS = 60.0

ANY_LINUX = ("--python-version", "3.11", "--python-platform", "x86_64-manylinux_2_40")
"""The sources are the same for every platform; engines have wheels for this one."""


class NoWheelError(EngdiffError):
    """The wheel cannot be had here; the text says which, why, and what to do."""


@dataclass(frozen=True)
class Tree:
    """A release's Python files and metadata in a folder, and the wheel that they are of."""

    folder: Path
    wheel: str
    sha256: str | None


PYTHON_PARTS = (".py", ".json", ".cuh", "/METADATA", "/entry_points.txt")
"""Members that configuration code may read, or whose folders it looks for; compiled ones are left out."""

IN_ONE_GO_BYTES = 512 * KIB
PROVENANCE = "engdiff.json"


def tree(distribution: str, version: str, progress: Callable[[str], None], cache: Path | None = None) -> Tree:
    """All that is Python of a release, fetched once into engdiff's cache folder. Raises NoWheelError."""
    folder = cache_folder(cache) / "trees" / f"{distribution}-{version}"
    said = folder / PROVENANCE
    if not said.is_file():
        progress(f"fetching the Python files of {distribution} {version}")
        _fetch_tree(f"{distribution}=={version}", folder)
    found = json.loads(said.read_text(encoding="utf-8"))
    return Tree(folder, found["wheel"], found["sha256"])


def _fetch_tree(requirement: str, folder: Path) -> None:
    """Unpack into a folder beside it, which takes its place when it is whole."""
    at = located(requirement)
    folder.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=f"{folder.name}-", dir=folder.parent))
    try:
        with opened(at.url, IN_ONE_GO_BYTES) as file, zipfile.ZipFile(file) as archive:
            members = [m for m in archive.infolist() if m.filename.endswith(PYTHON_PARTS)]
            for member in sorted(members, key=lambda m: m.header_offset):
                archive.extract(member, draft)
        facts = {"wheel": at.url.rpartition("/")[2].partition("#")[0], "sha256": at.sha256}
        (draft / PROVENANCE).write_text(json.dumps(facts), encoding="utf-8")
        with suppress(OSError):  # somebody else was faster
            draft.rename(folder)
    except (OSError, zipfile.BadZipFile) as error:
        raise NoWheelError(f"the wheel of {requirement} cannot be read: {error}", "try again") from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)


@dataclass(frozen=True)
class Located:
    """Where an index keeps a wheel, and its hash as the index states it."""

    url: str
    sha256: str | None


def located(requirement: str) -> Located:
    """The wheel on the user's own package index. Raises NoWheelError."""
    with tempfile.TemporaryDirectory() as folder:
        asked = Path(folder, "requirements.in")
        asked.write_text(requirement, encoding="utf-8")
        words = ["pip", "compile", "--quiet", "--no-deps", "--no-header", "--format", "pylock.toml"]
        words += [*ANY_LINUX, *uv_settings().arguments, str(asked)]
        answer = run(words, limit_s=LIMIT_SECONDS)
    if answer.code != 0:
        raise NoWheelError(f"{requirement}: the package index has no wheel for here: {' '.join(answer.lines)[-300:]}")
    package = tomllib.loads("\n".join(answer.lines))["packages"][0]
    found = [wheel for wheel in package.get("wheels", ()) if "url" in wheel]
    if not found or "***@" in found[0]["url"]:
        raise NoWheelError(f"{requirement}: the package index names no wheel that can be read without a login")
    return Located(str(found[0]["url"]), found[0].get("hashes", {}).get("sha256"))


def opened(url: str, ahead_bytes: int = READ_AHEAD_BYTES) -> IO[bytes]:
    """A wheel as a file that can be read at any place; fetched whole only where the index knows no ranges."""
    if urlsplit(url).scheme == "file":
        return Path(url2pathname(urlsplit(url).path)).open("rb")
    ask = _asker(url)
    with ask("bytes=0-0") as answer:
        if answer.status == 206:
            size = int(answer.headers["content-range"].rpartition("/")[2])
            return cast("IO[bytes]", io.BufferedReader(Ranges(ask, size), ahead_bytes))
        whole = tempfile.TemporaryFile()  # noqa: SIM115 - the caller closes it, and so removes it
        shutil.copyfileobj(answer, whole)
        return cast("IO[bytes]", whole)


Ask = Callable[[str], HTTPResponse]


def _asker(url: str) -> Ask:
    """How to ask for a range of bytes, with the user's certificates and proxy."""
    variables = uv_settings().variables
    handlers: list[urllib.request.BaseHandler] = [
        urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=variables.get("SSL_CERT_FILE")))
    ]
    if "HTTPS_PROXY" in variables:
        handlers.append(urllib.request.ProxyHandler(dict.fromkeys(("http", "https"), variables["HTTPS_PROXY"])))
    opener = urllib.request.build_opener(*handlers)

    def ask(wanted: str) -> HTTPResponse:
        request = urllib.request.Request(url, headers={"Range": wanted})  # noqa: S310 - the user's own index names it
        return cast("HTTPResponse", opener.open(request, timeout=LIMIT_SECONDS))

    return ask


class Ranges(io.RawIOBase):
    """A remote file of ``size`` bytes, read by ranges."""

    def __init__(self, ask: Ask, size: int) -> None:
        self._ask = ask
        self._size = size
        self._at = 0

    def readable(self) -> bool:
        """Always."""
        return True

    def seekable(self) -> bool:
        """Always."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go there; nothing is asked for yet."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = start + offset
        return self._at

    def tell(self) -> int:
        """Where it is."""
        return self._at

    def readinto(self, buffer: WriteableBuffer) -> int:
        """Ask for as many bytes as the buffer takes."""
        target = memoryview(buffer).cast("B")
        end = min(self._at + len(target), self._size)
        if end <= self._at:
            return 0
        with self._ask(f"bytes={self._at}-{end - 1}") as answer:
            data = answer.read()
        target[: len(data)] = data
        self._at += len(data)
        return len(data)
