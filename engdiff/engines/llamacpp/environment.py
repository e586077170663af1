"""The managed environment of llama.cpp: one wheel, no dependencies."""

from __future__ import annotations

from engdiff.engines.contract import Image
from engdiff.engines.images import build_in
from engdiff.engines.llamacpp import deployment
from engdiff.engines.llamacpp.releases import DISTRIBUTION
from engdiff.environments.recipe import Recipe
from engdiff.errors import UsageError
from engdiff.machine import Machine
from engdiff.units import MIB

DOWNLOAD_AND_DISK_BYTES = 150 * MIB
"""Largest wheel (34 MB) and its files (104 MB), measured over 0.2.7 to 2026.10.11549."""


IMAGE = "ghcr.io/ggml-org/llama.cpp"
"""Tags are ``server``, the back end and the build (.github/workflows/docker.yml); they are made daily, not for every
build."""


def recipe(version: str, python: str) -> Recipe:
    """How to make it, for a Python version such as ``3.11``."""
    return Recipe(
        engine="llamacpp",
        version=version,
        distribution=DISTRIBUTION,
        python=python,
        download_bytes_estimate=DOWNLOAD_AND_DISK_BYTES,
    )


def image(version: str, named: str | None, machine: Machine, wanted: str | None) -> Image:
    """The user's image, else the project's of the build in the wheel of this version. Neither has a Python."""
    if named:
        chosen = build_in(named, DISTRIBUTION, machine, wanted)
        return Image(named, deployment.version_of(named), chosen, interpreter=None)
    build = deployment.build_of(version)
    if build is None:
        raise UsageError(
            f"llamacpp {version}: the wheel's version does not tell its build of llama.cpp, which images are named by",
            "name the image: --container ghcr.io/ggml-org/llama.cpp:server-b8929",
        )
    chosen = build_in("", DISTRIBUTION, machine, wanted)
    kind = "server-cuda" if chosen.device == "cuda" else "server"
    return Image(f"{IMAGE}:{kind}-b{build}", version, chosen, interpreter=None)
