"""Single source files of a release, out of the real wheel: from a managed environment, the cache, or the index.

A test that looks at a few files of every release fetches those only, and keeps them in engdiff's cache folder
(``sources/DISTRIBUTION-VERSION``).
"""

from __future__ import annotations

import os
import zipfile
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import Self

from engdiff.environments.store import cache_folder, environments, read
from engdiff.environments.wheel import NoWheelError, located, opened

NAMES = "names.txt"


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
    return located(requirement).url
