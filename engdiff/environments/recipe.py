"""What an engine says about the environment it needs, and what it gets."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

RUNNING_PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
"""The Python that engdiff itself runs in, as recipes write it."""


@dataclass(frozen=True)
class TorchRule:
    """An engine whose release pins a torch build (``torch==2.13.0+cpu``) that the configured indexes may not have.

    When they do not, the plain release of the same version is taken instead, and the environment says so.
    """

    package: str = "torch"
    local: str = "cpu"


@dataclass(frozen=True)
class Recipe:
    """How to make an engine's environment.

    ``python`` is a version (``3.11``); ``requirements`` are installed beside ``distribution==version``;
    ``overrides`` and ``constraints`` are lines as uv reads them; ``download_bytes_estimate`` is checked against the
    free space; ``notes`` are shown with the environment.
    """

    engine: str
    version: str
    distribution: str
    python: str
    extras: tuple[str, ...] = ()
    requirements: tuple[str, ...] = ()
    overrides: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    torch: TorchRule | None = None
    only_binary: bool = True
    compile_bytecode: bool = False
    download_bytes_estimate: int | None = None
    notes: tuple[str, ...] = ()

    @property
    def pin(self) -> str:
        """The requirement that names the engine itself."""
        extras = f"[{','.join(self.extras)}]" if self.extras else ""
        return f"{self.distribution}{extras}=={self.version}"

    def key(self) -> str:
        """Hash, in 8 characters, everything that changes what is installed."""
        facts = asdict(self)
        for name in ("download_bytes_estimate", "notes"):
            del facts[name]
        if not self.extras:
            del facts["extras"]
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:8]

    def folder_name(self) -> str:
        """Name the folder of this environment: engine, version and :meth:`key`."""
        return f"{self.engine}-{self.version}-{self.key()}"


@dataclass(frozen=True)
class Environment:
    """A place where an engine is installed.

    ``packages`` maps normalized names to versions. ``made`` says whether this call made it; ``managed`` whether it is
    engdiff's own. ``bytes_own`` is what deleting it would free, ``bytes_total`` its size with the files that it shares
    with uv's cache and other environments; None when unknown.
    """

    folder: Path
    python: Path
    python_version: str
    distribution: str
    version: str
    packages: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    made: bool = False
    managed: bool = True
    bytes_own: int | None = None
    bytes_total: int | None = None
