"""Releases of ``xllamacpp``, and which are known not to load on which machine, with evidence."""

from __future__ import annotations

from engdiff.engines.contract import KnownProblem
from engdiff.knowledge.versions import release
from engdiff.machine import Machine

DISTRIBUTION = "xllamacpp"
FIRST_WITH_HTTP = "0.2.7"

KNOWN = (
    "2026.10.11549",
    "2026.9.11063",
    "2026.9.10809",
    "2026.8.10566",
    "2026.8.10229",
    "2026.7.10068",
    "2026.7.9873",
    "2026.6.9713",
    "2026.6.9538",
    "2026.5.9294",
    "2026.5.9093",
    "2026.4.8929",
    "2026.4.8672.1",
    "2026.4.8672",
    "0.2.14",
    "0.2.13",
    "0.2.12",
    "0.2.11",
    "0.2.10",
    "0.2.9",
    "0.2.8",
    "0.2.7",
)
"""Newest first; those before 0.2.7 have no HTTP server."""

FLOOR = ("avx2", "f16c", "fma")
"""CPU features that every x86-64 wheel was built for (get_system_info of each wheel lists them)."""

NATIVE_AVX512 = "2026.4.8672"
"""Built with its build machine's AVX-512 flags; the next day's .1 is the same llama.cpp commit without them."""


def problem(version: str, machine: Machine) -> KnownProblem | None:
    """Why this release cannot serve on this machine; ``None`` when nothing is known against it."""
    if release(version) < release(FIRST_WITH_HTTP):
        return KnownProblem(
            "it has no HTTP server",
            f"xllamacpp listens from {FIRST_WITH_HTTP} on",
            f"use llamacpp@{FIRST_WITH_HTTP} or newer",
        )
    if machine.arch not in ("x86_64", "AMD64"):
        return None
    features = set(machine.cpu_features)
    missing = [name for name in FLOOR if features and name not in features]
    if missing:
        return KnownProblem(
            f"this CPU lacks {', '.join(missing)}",
            "every x86-64 wheel of xllamacpp is built for them",
            "use a CPU with AVX2",
        )
    if version == NATIVE_AVX512 and features and "avx512f" not in features:
        return KnownProblem(
            "it was built with AVX-512 and this CPU has none: it dies of an illegal instruction at start",
            "seen on a CPU with AVX2 only",
            f"llamacpp@{NATIVE_AVX512}.1 is the same llama.cpp commit, built without AVX-512",
        )
    return None
