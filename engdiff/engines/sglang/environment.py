"""The managed environment of SGLang: on CUDA as its metadata says, on the CPU without what only CUDA needs.

There is no CPU wheel of SGLang: the package index holds its Python (and, from 0.5.11 on, its Rust) once for all
devices, and kernel packages for CUDA only. The CPU path of every release runs without them when what it imports by
name is there (:mod:`engdiff.engines.sglang.support`).
"""

from __future__ import annotations

from engdiff.engines.builds import WISHES, fitting
from engdiff.engines.contract import Build, Image
from engdiff.engines.images import build_in
from engdiff.engines.sglang import deployment
from engdiff.environments.recipe import RUNNING_PYTHON, Recipe
from engdiff.errors import UsageError
from engdiff.knowledge.versions import holds
from engdiff.machine import Machine
from engdiff.units import GIB

DISTRIBUTION = "sglang"

TORCH = "2.13.0"
"""With which every release from 0.4.6 to 0.5.23 was run on a CPU; 0.5.18 to 0.5.21 pin it themselves."""

TORCHVISION = "0.28.0"
"""The one that torch 2.13.0 belongs to; releases before 0.5.18 import it at start."""

TRITON = "3.9.0"
OLD_TRITON = "3.2.0"
"""Imported everywhere, never run on a CPU; 0.4.6 imports a name that newer ones no longer have."""

CUDA_ONLY = (
    "cuda-python",
    "cuda-tile",
    "flash-attn-4",
    "flashinfer-cubin",
    "flashinfer-python",
    "humming-kernels",
    "nvidia-cutlass-dsl",
    "nvidia-mathdx",
    "nvshmem4py-cu13",
    "quack-kernels",
    "sgl-deep-ep",
    "sgl-deep-gemm",
    "sgl-flash-mla",
    "sgl-kernel",
    "sglang-kernel",
    "tilelang",
    "tokenspeed-mla",
)
"""Kernel packages; none has a build for a CPU."""

UNUSED = (
    "av",
    "decord",
    "decord2",
    "grpcio-tools",
    "hf-transfer",
    "modelscope",
    "py-spy",
    "smg-grpc-proto",
    "smg-grpc-servicer",
    "torchaudio",
    "torchcodec",
)
"""Asked for, and imported only for video, audio, gRPC, another hub or by hand."""

NEVER = "sys_platform == 'never'"

FIRST_ENVIRONMENT_BYTES = 4 * GIB
GPU_ENVIRONMENT_BYTES = 16 * GIB
"""Room for a first environment; later ones share files."""

PYTHONS = ("3.10", "3.11", "3.12", "3.13")

ALL_IN_ONE = "0.5.3"
"""The first release that needs no extra: before, the server's requirements are those of ``srt``."""


IMAGE = "lmsysorg/sglang"

PLAIN_TAGS = "0.5.3"
"""From here on ``v`` and the release are a tag, and there is one for Xeon CPUs; before, a tag names its CUDA as well
(.github/workflows/release-docker.yml)."""

CUDA_TAGS = (("0.4.7", "cu124"), ("0.5.2", "cu126"))
"""Up to which release (post-releases with it) which CUDA is in the tag."""


def build(machine: Machine, wanted: str | None) -> Build:
    """One distribution for both; what differs is what is installed beside it."""
    if wanted not in WISHES:
        raise UsageError(f"sglang: no build for `{wanted}`", "builds: cpu, cuda")
    return fitting(machine, wanted, cpu=DISTRIBUTION, cuda=DISTRIBUTION)


def recipe(version: str, build: Build) -> Recipe:
    """How to make it. Python: the running one where SGLang supports it."""
    python = RUNNING_PYTHON if RUNNING_PYTHON in PYTHONS else "3.12"
    extras = () if holds(version, since=ALL_IN_ONE) else ("openai", "srt")
    if build.device == "cuda":
        return Recipe(
            "sglang", version, DISTRIBUTION, python, extras=extras, download_bytes_estimate=GPU_ENVIRONMENT_BYTES
        )
    return Recipe(
        "sglang",
        version,
        DISTRIBUTION,
        python,
        extras=extras,
        requirements=(
            f"triton=={OLD_TRITON if holds(version, until='0.4.9') else TRITON}",
            "accelerate",
            *_later(version),
        ),
        overrides=(
            f"torch=={TORCH}",
            f"torchvision=={TORCHVISION}",
            *(f"{name} ; {NEVER}" for name in (*CUDA_ONLY, *UNUSED)),
        ),
        constraints=_constraints(version),
        compile_bytecode=True,
        download_bytes_estimate=FIRST_ENVIRONMENT_BYTES,
        notes=(
            f"torch {TORCH}, with which the CPU path of every release was run, whatever the release pins",
            "without the CUDA kernel packages and what serves video, audio and gRPC; "
            "what SGLang imports of them by name is a stand-in that does nothing and says so when it is called",
        ),
    )


def _later(version: str) -> tuple[str, ...]:
    """What a release imports and does not ask for."""
    return ("torchao==0.17.0",) if holds(version, since="0.5.18") else ()


def _constraints(version: str) -> tuple[str, ...]:
    """Releases of what SGLang does not pin that fit the release's age."""
    if holds(version, until="0.5.2"):
        return ("compressed-tensors==0.10.2", "torchao==0.9.0", "openai==1.99.1")
    if holds(version, until="0.5.11"):
        return ("compressed-tensors==0.12.2",)
    if holds(version, until="0.5.19"):
        return ("compressed-tensors==0.15.0", "kernels>=0.14.1,<0.15")
    return ()


def image(version: str, named: str | None, machine: Machine, wanted: str | None) -> Image:
    """The user's image, else the project's for this release: CUDA's, or the one for Xeon CPUs."""
    if named:
        return Image(named, deployment.version_of(named), build_in(named, DISTRIBUTION, machine, wanted))
    chosen = build(machine, wanted)
    return Image(f"{IMAGE}:v{version}{_tag_end(version, chosen)}", version, chosen)


def _tag_end(version: str, chosen: Build) -> str:
    if holds(version, since=PLAIN_TAGS):
        return "" if chosen.device == "cuda" else "-xeon"
    if chosen.device == "cpu":
        raise UsageError(
            f"sglang {version}: there is no image for a CPU before {PLAIN_TAGS}", "name one: --container IMAGE"
        )
    return next(f"-{cuda}" for until, cuda in CUDA_TAGS if holds(version, until=until))
