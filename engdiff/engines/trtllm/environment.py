"""Which package and device TensorRT-LLM is, and the recipe that nobody may follow (see ``releases.problem``)."""

from __future__ import annotations

from engdiff.engines.contract import Build, Image
from engdiff.engines.trtllm import deployment
from engdiff.engines.trtllm.releases import DISTRIBUTION, IMAGE
from engdiff.environments.recipe import Recipe
from engdiff.errors import UsageError
from engdiff.machine import Machine

PYTHON = "3.12"
"""Any would do: nothing is installed by it."""

OPTIONS = ("--ulimit", "memlock=-1", "--ulimit", "stack=67108864")
"""As the quick start guide runs it; the stack in bytes."""


def build(machine: Machine, wanted: str | None) -> Build:
    """Always for CUDA. Raises :class:`~engdiff.errors.UsageError` for any other wish."""
    if wanted not in (None, "cuda"):
        raise UsageError(
            f"trtllm: no build for `{wanted}`", "TensorRT-LLM computes on NVIDIA GPUs only; leave --build out"
        )
    here = f"this machine has {machine.gpus[0].name}" if machine.gpus else "it computes on NVIDIA GPUs only"
    return Build(DISTRIBUTION, "cuda", "chosen with --build cuda" if wanted else here)


def recipe(version: str) -> Recipe:
    """The bare requirement: engdiff never installs it."""
    return Recipe("trtllm", version, DISTRIBUTION, PYTHON)


def image(version: str, named: str | None, machine: Machine, wanted: str | None) -> Image:
    """The user's image, else NVIDIA's; what these start by themselves sets up the CUDA compatibility libraries."""
    chosen = build(machine, wanted)
    if named is None:
        return Image(f"{IMAGE}:{version}", version, chosen, keeps_entrypoint=True, options=OPTIONS)
    official = deployment.is_official(named)
    return Image(named, deployment.version_of(named), chosen, keeps_entrypoint=official, options=OPTIONS)
