"""The GPUs that engdiff knows, and how many one machine has: facts of ``profiles/gpus``, each with its source."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from engdiff.errors import UsageError
from engdiff.shipped import folder

MOST = 1024
"""More devices than any one engine instance has."""


@dataclass(frozen=True)
class Gpu:
    """One kind of GPU. What no source states is ``None``; ``sources`` has one text for each fact."""

    key: str
    name: str
    """As the driver reports it."""

    title: str
    vendor: Literal["nvidia", "amd"]
    architecture: str
    memory_bytes: int
    """As NVML (or the ROCm driver) reports it."""

    sources: Mapping[str, str]
    aliases: tuple[str, ...] = ()
    compute_capability: tuple[int, int] | None = None
    gfx: str | None = None
    usable_gib: float | None = None
    """As CUDA reports it to a process, and engines print it."""

    smi_mib: int | None = None
    multiprocessors: int | None = None
    l2_cache_bytes: int | None = None
    shared_memory_per_block_optin_bytes: int | None = None
    bandwidth_bytes_per_s: float | None = None
    compute: Mapping[str, float] = field(default_factory=dict)
    """Dense peak by element type, FLOP/s or OP/s."""

    nvlink: bool | None = None
    link_bytes_per_s: float | None = None
    per_node: int | None = None


@dataclass(frozen=True)
class Pretended:
    """A device to pretend: a kind of GPU, and how many of them the machine has."""

    gpu: Gpu
    count: int = 1

    @property
    def text(self) -> str:
        """As a user writes it: ``h100-80gb:8``."""
        return self.gpu.key if self.count == 1 else f"{self.gpu.key}:{self.count}"


@cache
def gpus() -> Mapping[str, Gpu]:
    """Every GPU by its key, in alphabetical order."""
    return MappingProxyType({p.stem: _read(p) for p in sorted((folder("profiles") / "gpus").glob("*.toml"))})


def gpu(text: str) -> Gpu:
    """The GPU of this key or alias, in any case. Raises :class:`~engdiff.errors.UsageError` for another."""
    named = {name: one for one in gpus().values() for name in (one.key, *one.aliases)}
    wanted = text.lower()
    if wanted in named:
        return named[wanted]
    near = get_close_matches(wanted, named, n=3, cutoff=0.4) or list(gpus())
    raise UsageError(
        f"`{text}`: no GPU of this name is known",
        f"known: {', '.join(near)}; all: engdiff profiles list --scenarios",
    )


def pretended(text: str) -> Pretended:
    """The device of ``h100-80gb:8``; the count is 1 where none is given. Raises UsageError."""
    name, colon, count = text.partition(":")
    if colon and not (re.fullmatch(r"[0-9]{1,4}", count) and 1 <= int(count) <= MOST):
        raise UsageError(f"`{text}`: `{count}` is no number of GPUs", f"write 1 to {MOST}: {name}:8")
    return Pretended(gpu(name), int(count) if colon else 1)


def _read(path: Path) -> Gpu:
    said: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    link = said.pop("link", {})
    capability = said.pop("compute_capability", None)
    return Gpu(
        key=path.stem,
        aliases=tuple(said.pop("aliases", ())),
        compute_capability=tuple(capability) if capability else None,
        nvlink=link.get("nvlink"),
        link_bytes_per_s=link.get("bytes_per_s"),
        per_node=link.get("per_node"),
        **said,
    )
