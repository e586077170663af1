"""What can run on this machine, what cannot, and why."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from engdiff import engines
from engdiff.engines.contract import Engine
from engdiff.environments import uvtool
from engdiff.environments.index import uv_settings
from engdiff.environments.listing import list_versions
from engdiff.environments.store import cache_folder
from engdiff.errors import EngdiffError
from engdiff.machine import Machine, look
from engdiff.units import GIB, format_bytes

State = Literal["good", "note", "bad"]

TIGHT_DISK_BYTES = 15 * GIB
"""Room for two vLLM environments with different builds of torch (2.3 to 7.5 GiB each, measured)."""


@dataclass(frozen=True)
class Check:
    """One line of the doctor: what was looked at, how it is, and what to do."""

    name: str
    state: State
    detail: str
    advice: str = ""


def examine(progress: Callable[[str], None]) -> Iterator[Check]:
    """All checks, in the order in which a user meets their subjects."""
    machine = look()
    yield _cpu(machine)
    yield _memory(machine)
    yield _glibc(machine)
    yield _gpu(machine)
    yield _disk()
    yield _uv()
    progress("asking the package index")
    for engine in map(engines.get, engines.names()):
        yield _engine(engine, machine)
    for note in uv_settings().notes:
        yield Check("package settings", "note", note)


def _cpu(machine: Machine) -> Check:
    features = " ".join(machine.cpu_features) or "unknown"
    return Check("CPU", "good", f"{machine.cpu_model or machine.arch}, {machine.cpu_count} CPUs: {features}")


def _memory(machine: Machine) -> Check:
    if machine.memory_bytes is None:
        return Check("memory", "note", "the system does not say")
    return Check("memory", "good", format_bytes(machine.memory_bytes))


def _glibc(machine: Machine) -> Check:
    if machine.glibc is None:
        return Check(
            "glibc",
            "note",
            f"none ({machine.os}): most engine wheels need Linux with glibc",
            "reading captures works; launching may not",
        )
    return Check("glibc", "good", machine.glibc)


def _gpu(machine: Machine) -> Check:
    if not machine.gpus:
        return Check("GPU", "note", machine.gpus_unknown_because or "none", "engines run on the CPU here")
    first = machine.gpus[0]
    memory = format_bytes(first.memory_bytes) if first.memory_bytes else "memory unknown"
    return Check("GPU", "good", f"{len(machine.gpus)} × {first.name}, {memory}, driver {first.driver or 'unknown'}")


def _disk() -> Check:
    folder = cache_folder()
    home = next(p for p in (folder, *folder.parents) if p.exists())
    free = shutil.disk_usage(home).free
    detail = f"{format_bytes(free)} free for {folder}"
    if not os.access(home, os.W_OK):
        return Check("cache", "bad", f"no permission to write in {home}", "set ENGDIFF_CACHE_DIR to a folder of yours")
    if free < TIGHT_DISK_BYTES:
        return Check(
            "cache", "note", detail, "two versions of vLLM may need up to 15 GiB; `engdiff env prune` makes room"
        )
    return Check("cache", "good", detail)


def _uv() -> Check:
    try:
        result = uvtool.run(["--version"], limit_s=20)
    except EngdiffError as error:
        return Check("uv", "bad", error.message, error.advice)
    return Check("uv", "good" if result.code == 0 else "bad", " ".join(result.lines) or "no answer")


def _engine(engine: Engine, machine: Machine) -> Check:
    """Which build fits, the range of versions, and those that will not load here."""
    build = engine.build(machine, None)
    listed = list_versions(build.distribution)
    versions = listed or engine.known_versions(build.distribution)
    problems = {v: p for v in versions if (p := engine.problem(v, build.distribution, machine))}
    usable = [v for v in versions if v not in problems]
    if not usable:
        problem = next(iter(problems.values()), None)
        if problem is None:
            return Check(engine.title, "bad", f"{build.distribution}: no release is known")
        return Check(
            engine.title,
            "note" if problem.anywhere else "bad",
            f"{build.distribution}: {problem.because}",
            problem.instead if problem.anywhere else "",
        )
    detail = f"{build.distribution} ({build.because}): {usable[-1]} to {usable[0]}, {len(usable)} releases"
    inside = [f"{v}: {p.because}" for v, p in problems.items() if v in engine.known_versions(build.distribution)]
    if not listed:
        return Check(
            engine.title,
            "note",
            f"{detail}, as known to this engdiff",
            "the package index could not be asked; cached environments work",
        )
    if inside:
        return Check(engine.title, "note", f"{detail}; not here: {'; '.join(inside)}")
    return Check(engine.title, "good", detail)
