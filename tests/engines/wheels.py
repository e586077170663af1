"""Source files of an engine's release, out of the real wheel: from a managed environment, the cache, or the index.

A GPU wheel has several hundred MB; only the members that are asked for are fetched, by HTTP ranges, and kept in
engdiff's cache folder (``sources/DISTRIBUTION-VERSION``). The wheel itself is never kept.
"""

from __future__ import annotations

import io
import os
import shutil
import ssl
import tempfile
import tomllib
import urllib.request
import zipfile
from collections.abc import Callable
from contextlib import ExitStack
from functools import cached_property
from http.client import HTTPResponse
from pathlib import Path
from typing import IO, TYPE_CHECKING, Self, cast
from urllib.parse import urlsplit
from urllib.request import url2pathname

from engdiff.environments.index import uv_settings
from engdiff.environments.store import cache_folder, environments, read
from engdiff.environments.uvtool import run
from engdiff.units import KIB

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

READ_AHEAD_BYTES = 128 * KIB
"""One request brings a typical source file of an engine, compressed, with its header."""

LIMIT_SECONDS = 60.0
NAMES = "names.txt"

ANY_LINUX = ("--python-version", "3.11", "--python-platform", "x86_64-manylinux_2_40")
"""The sources are the same for every platform; engines have wheels for this one."""


class NoWheelError(Exception):
    """The wheel cannot be had here; the text says which, why, and what to do."""


class Installed:
    """The sources of a release in a managed environment."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...

    def text(self, path: str) -> str | None:
        """The source of one file; None where the release has no such file."""
        found = self._folder / path
        return found.read_text(encoding="utf-8") if found.is_file() else None


class Wheel:
    """The sources of a release on the index, each file fetched once."""

    def __init__(self, distribution: str, version: str, cache: Path | None = None) -> None:
        self._requirement = f"{distribution}=={version}"
        self._folder = cache_folder(cache) / "sources" / f"{distribution}-{version}"
        self._open = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def text(self, path: str) -> str | None:
        """The source of one file; None where the release has no such file. Raises NoWheelError."""
        kept = self._folder / path
        if kept.is_file():
            return kept.read_text(encoding="utf-8")
        if path not in self._names:
            return None
        data = self._zip.read(path)
        _keep(kept, data)
        return data.decode("utf-8")

    @cached_property
    def _names(self) -> frozenset[str]:
        """Python files of the wheel."""
        kept = self._folder / NAMES
        if not kept.is_file():
            names = [name for name in self._zip.namelist() if name.endswith(".py")]
            _keep(kept, "\n".join(names).encode())
        return frozenset(kept.read_text(encoding="utf-8").splitlines())

    @cached_property
    def _zip(self) -> zipfile.ZipFile:
        try:
            file = self._open.enter_context(opened(wheel_url(self._requirement)))
            return self._open.enter_context(zipfile.ZipFile(file))
        except (OSError, zipfile.BadZipFile) as error:
            raise NoWheelError(f"the wheel of {self._requirement} cannot be read: {error}; try again") from error


def _keep(path: Path, data: bytes) -> None:
    """Write a file of the cache, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    draft.write_bytes(data)
    draft.replace(path)


def sources(distribution: str, version: str) -> Installed | Wheel:
    """Where to read a release's sources: what a managed environment holds, else the wheel on the index."""
    for one in environments():
        found = read(one.folder) if one.complete and one.version == version else None
        if found and found.distribution == distribution:
            site = next(iter((found.folder / "lib").glob("python*/site-packages")), None)
            if site:
                return Installed(site)
    return Wheel(distribution, version)


def wheel_url(requirement: str) -> str:
    """Where the user's own package index keeps the wheel. Raises NoWheelError."""
    with tempfile.TemporaryDirectory() as folder:
        asked = Path(folder, "requirements.in")
        asked.write_text(requirement, encoding="utf-8")
        words = ["pip", "compile", "--quiet", "--no-deps", "--no-header", "--format", "pylock.toml"]
        words += [*ANY_LINUX, *uv_settings().arguments, str(asked)]
        answer = run(words, limit_s=LIMIT_SECONDS)
    if answer.code != 0:
        raise NoWheelError(f"{requirement}: the package index has no wheel for here: {' '.join(answer.lines)[-300:]}")
    package = tomllib.loads("\n".join(answer.lines))["packages"][0]
    urls = [str(wheel["url"]) for wheel in package.get("wheels", ()) if "url" in wheel]
    if not urls or "***@" in urls[0]:
        raise NoWheelError(f"{requirement}: the package index names no wheel that can be read without a login")
    return urls[0]


def opened(url: str) -> IO[bytes]:
    """A wheel as a file that can be read at any place; fetched whole only where the index knows no ranges."""
    if urlsplit(url).scheme == "file":
        return Path(url2pathname(urlsplit(url).path)).open("rb")
    ask = _asker(url)
    with ask("bytes=0-0") as answer:
        if answer.status == 206:
            size = int(answer.headers["content-range"].rpartition("/")[2])
            return cast("IO[bytes]", io.BufferedReader(Ranges(ask, size), READ_AHEAD_BYTES))
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
        request = urllib.request.Request(url, headers={"Range": wanted})
        return cast("HTTPResponse", opener.open(request, timeout=LIMIT_SECONDS))

    return ask


class Ranges(io.RawIOBase):
    """A remote file of ``size`` bytes, read by ranges."""

    def __init__(self, ask: Ask, size: int) -> None:
        self._ask = ask
        self._size = size
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = start + offset
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: WriteableBuffer) -> int:
        target = memoryview(buffer).cast("B")
        end = min(self._at + len(target), self._size)
        if end <= self._at:
            return 0
        with self._ask(f"bytes={self._at}-{end - 1}") as answer:
            data = answer.read()
        target[: len(data)] = data
        self._at += len(data)
        return len(data)
