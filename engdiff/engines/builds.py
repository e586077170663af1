"""Which build of an engine fits a machine, where there is one for the CPU and one for CUDA."""

from __future__ import annotations

from engdiff.engines.contract import Build
from engdiff.machine import Machine

WISHES = (None, "cpu", "cuda")
"""What a user may want; ``None`` leaves it to the machine."""


def fitting(machine: Machine, wanted: str | None, *, cpu: str, cuda: str) -> Build:
    """The user's wish, else what the machine has; ``cpu`` and ``cuda`` are the distributions of the two builds."""
    if wanted:
        distribution = cpu if wanted == "cpu" else cuda
        return Build(distribution, "cpu" if wanted == "cpu" else "cuda", f"chosen with --build {wanted}")
    if machine.gpus:
        return Build(cuda, "cuda", f"this machine has a GPU: {machine.gpus[0].name}")
    return Build(cpu, "cpu", f"no GPU here: {machine.gpus_unknown_because or 'none found'}")
