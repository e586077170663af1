"""The managed environment of llama.cpp: one wheel, no dependencies."""

from __future__ import annotations

from engdiff.engines.llamacpp.releases import DISTRIBUTION
from engdiff.environments.recipe import Recipe
from engdiff.units import MIB

DOWNLOAD_AND_DISK_BYTES = 150 * MIB
"""Largest wheel (34 MB) and its files (104 MB), measured over 0.2.7 to 2026.10.11549."""


def recipe(version: str, python: str) -> Recipe:
    """How to make it, for a Python version such as ``3.11``."""
    return Recipe(
        engine="llamacpp",
        version=version,
        distribution=DISTRIBUTION,
        python=python,
        download_bytes_estimate=DOWNLOAD_AND_DISK_BYTES,
    )
