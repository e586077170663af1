"""Releases of SGLang, and which are known not to load on which machine, with evidence."""

from __future__ import annotations

from engdiff.engines.contract import KnownProblem
from engdiff.knowledge.versions import holds, release
from engdiff.machine import Machine

FIRST_SUPPORTED = "0.4.6"
"""The first release that was run; the probe reads the scheduler of this generation."""

TABLE = (
    "0.5.23",
    "0.5.22",
    "0.5.21",
    "0.5.20",
    "0.5.18",
    "0.5.15",
    "0.5.12",
    "0.5.9",
    "0.5.6",
    "0.5.4",
    "0.5.2",
    "0.4.10.post2",
    "0.4.6",
)
"""Releases that engdiff's own tests run, newest first."""

KNOWN = (
    *("0.5.23", "0.5.22", "0.5.21", "0.5.20", "0.5.19", "0.5.18", "0.5.17", "0.5.16", "0.5.15.post1", "0.5.15"),
    *("0.5.14", "0.5.13.post1", "0.5.13", "0.5.12.post1", "0.5.12", "0.5.11", "0.5.10.post1", "0.5.10", "0.5.9"),
    *("0.5.8.post1", "0.5.8", "0.5.7", "0.5.6.post2", "0.5.6.post1", "0.5.6", "0.5.5.post3", "0.5.5.post2"),
    *("0.5.5.post1", "0.5.5", "0.5.4.post3", "0.5.4.post2", "0.5.4.post1", "0.5.4", "0.5.3.post3", "0.5.3.post2"),
    *("0.5.3.post1", "0.5.3", "0.5.2", "0.5.1.post3", "0.5.1.post2", "0.5.1.post1", "0.5.1", "0.4.10.post2"),
    *("0.4.10.post1", "0.4.10", "0.4.9.post6", "0.4.9.post5", "0.4.9.post4", "0.4.9.post3", "0.4.9.post2"),
    *("0.4.9.post1", "0.4.9", "0.4.8.post1", "0.4.8", "0.4.7.post1", "0.4.7", "0.4.6.post5", "0.4.6.post4"),
    *("0.4.6.post3", "0.4.6.post2", "0.4.6.post1", "0.4.6"),
)
"""Newest first, as the package index listed them when this engdiff was made."""

NEW_GLIBC_SINCE = "0.5.11"
OLDEST_GLIBC = (2, 34)


def problem(version: str, machine: Machine) -> KnownProblem | None:
    """Why this release cannot be captured on this machine; ``None`` when nothing is known against it."""
    if release(version) < release(FIRST_SUPPORTED):
        return KnownProblem(
            f"engdiff launches SGLang from {FIRST_SUPPORTED} on",
            "older releases have another scheduler, which the probe does not read",
            f"use sglang@{FIRST_SUPPORTED} or newer, or read its log",
        )
    if machine.os != "Linux":
        return KnownProblem("SGLang runs on Linux only", f"this is {machine.os}", "run engdiff on Linux")
    if holds(version, since=NEW_GLIBC_SINCE) and _older(machine.glibc):
        return KnownProblem(
            "its wheels are built for glibc 2.34 and newer (manylinux_2_34)",
            f"this machine has {machine.glibc}",
            "use sglang@0.5.10 or older, or an image: --container",
        )
    return None


def _older(glibc: str | None) -> bool:
    if glibc is None:
        return False
    digits = tuple(int(part) for part in glibc.split(".")[:2] if part.isdigit())
    return len(digits) == 2 and digits < OLDEST_GLIBC
