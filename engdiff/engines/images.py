"""On which kind of device the engine in a container image computes: the user's word, the image's name, the machine."""

from __future__ import annotations

import re

from engdiff.engines.builds import WISHES, fitting
from engdiff.engines.contract import Build
from engdiff.errors import UsageError
from engdiff.machine import Machine

_CPU = re.compile(r"(?:^|[-_/:.])(?:cpu|xeon)(?=$|[-_/:.@\d])")
_GPU = re.compile(r"(?:^|[-_/:.])(?:cuda|cu\d|rocm)")


def build_in(reference: str, distribution: str, machine: Machine, wanted: str | None) -> Build:
    """The build inside an image. Raises :class:`~engdiff.errors.UsageError` for a wish that is neither cpu nor cuda."""
    if wanted not in WISHES:
        raise UsageError(f"no build is called `{wanted}`", "builds: cpu, cuda")
    if not wanted and _CPU.search(reference.lower()):
        return Build(distribution, "cpu", f"{reference} is an image for CPUs, by its name")
    if not wanted and _GPU.search(reference.lower()):
        return Build(distribution, "cuda", f"{reference} is an image for GPUs, by its name")
    return fitting(machine, wanted, cpu=distribution, cuda=distribution)
