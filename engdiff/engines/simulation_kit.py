"""What simulations have in common: scenarios in processes of their own, and who answered. Runs in the engine.

Standard library only; it is copied beside the simulation as ``engdiff_simulation_kit.py``. A scenario leaves the files
that a probe leaves, with ``simulation.json`` or, when the engine refused its command line, ``failure.json``.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import logging
import os
import re
import sys
import traceback
from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path
from typing import Any

if __name__ == "engdiff_simulation_kit":
    import engdiff_pretend_kit as kit
    from engdiff_probe_kit import OUT, plain, write
else:
    from engdiff.engines import pretend_kit as kit
    from engdiff.engines.probe_kit import OUT, plain, write

INSTALLED = importlib.metadata.version
"""What is really installed, whatever is pretended later."""

CUDA_OF_TORCH = (((2, 6), "12.4"), ((2, 7), "12.6"), ((2, 10), "12.8"))
"""CUDA of the torch build on the public index, up to a release (pytorch.org/get-started/previous-versions)."""

NEWEST_CUDA = "13.0"


Resolve = Callable[[dict[str, Any], "kit.Device | None"], None]
"""Resolves one scenario, on a pretended device or on this machine, and writes down what came out."""


def each_scenario(order: dict[str, Any], device: kit.Device | None, resolve: Resolve) -> int:
    """Resolve every scenario in a child process, in a folder of its own; the worst exit status."""
    return max((in_child(partial(prepared, one, order, device, resolve)) for one in order["scenarios"]), default=0)


def in_child(work: Callable[[], None]) -> int:
    """Do it in a process that ends with it: what it changes is seen by nobody else."""
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        except BaseException:
            traceback.print_exc()
            raise
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def prepared(scenario: dict[str, Any], order: dict[str, Any], device: kit.Device | None, resolve: Resolve) -> None:
    """The scenario on as many devices as it wants, with its folder made and known to what writes."""
    folder = Path(order["output"]) / scenario["name"]
    folder.mkdir(parents=True, exist_ok=True)
    os.environ[OUT] = str(folder)
    if device and scenario["count"]:
        device.show(scenario["count"])
    resolve(scenario, device)


def refused(error: BaseException, said: list[str]) -> None:
    """Write why this command line was refused, in the engine's own words."""
    last = traceback.format_exception(error)[-1].strip().splitlines()
    told = {"type": type(error).__name__, "message": str(error), "last": last, "trace": traceback.format_exc()}
    write("failure", lambda: {**told, "said": said})


def listened(package: str) -> list[str]:
    """What the engine says about its decisions from now on, each line once."""
    said: list[str] = []
    handle = logging.Logger.handle

    def keep(self: Any, record: Any) -> Any:
        if record.name.startswith(package) and record.levelno >= logging.INFO:
            with contextlib.suppress(Exception):
                line = f"{record.levelname} [{record.filename}:{record.lineno}] {record.getMessage()}"
                if line not in said:
                    said.append(line)
        return handle(self, record)

    logging.Logger.handle = keep  # type: ignore[method-assign]
    return said


def built(build: Callable[[], Any]) -> Any:
    """The model without memory, or why this release cannot build it here."""
    try:
        return plain(build())
    except Exception as error:
        return {"unreadable": f"{type(error).__name__}: {error}", "trace": traceback.format_exc()}


# --- whose libraries answered ----------------------------------------------------------------------------------


def requirements(distribution: str, extras: Collection[str] = ()) -> dict[str, str]:
    """What a release asks for, with some of its extras, by name: ``==2.11.0``, or nothing of any release."""
    found: dict[str, str] = {}
    for line in importlib.metadata.requires(distribution) or ():
        asked, _, marker = line.partition(";")
        name = re.split(r"[^A-Za-z0-9_.-]", asked, maxsplit=1)[0]
        extra = re.search(r"extra == ['\"]([^'\"]+)", marker)
        if extra is None or extra[1] in extras:
            found.setdefault(normal(name), re.sub(r"^\[[^]]*\]", "", asked[len(name) :].strip()).strip())
    return found


def normal(name: str) -> str:
    """The name of a distribution as indexes write it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def pinned(asked: str | None) -> str | None:
    """The one release that is asked for, if it is one."""
    return asked.removeprefix("==").strip() if asked and asked.startswith("==") and "," not in asked else None


def libraries(asked: dict[str, str]) -> dict[str, dict[str, str | None]]:
    """What the release asks for, and what is installed here instead; a stand-in is not installed."""
    return {name: {"asked": wanted, "answered": installed(name)} for name, wanted in asked.items()}


def installed(name: str) -> str | None:
    """The release of a library that is really here."""
    try:
        return INSTALLED(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def state_versions(stated: dict[str, str]) -> None:
    """Let these distributions be of these releases, whatever is installed."""
    pretended = {normal(name): release for name, release in stated.items()}

    def version(distribution_name: str) -> str:
        return pretended.get(normal(distribution_name)) or INSTALLED(distribution_name)

    importlib.metadata.version = version


def cuda_of(torch_version: str) -> str:
    """The CUDA that a torch release is built for on the public index."""
    major, minor = (int(part) for part in torch_version.split(".")[:2])
    return next((cuda for until, cuda in CUDA_OF_TORCH if (major, minor) <= until), NEWEST_CUDA)


def stand_ins() -> list[str]:
    """What stood in for the engine and for its machine."""
    return list(kit.NOTES)
