"""What readings of simulations have in common, whichever engine was simulated."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from engdiff.engines.probed import Tree
from engdiff.schema.capture import EngineWarning
from engdiff.schema.values import Unknown

NEEDS_DEVICE = Unknown(because="it is measured on the device, and this one is not there")

LEVELS: dict[str, Literal["warning", "error"]] = {"WARNING": "warning", "ERROR": "error"}


def lines_said(simulation: Tree) -> list[str]:
    """What the engine said about its decisions."""
    return [line for line in simulation.get("said") or () if isinstance(line, str)]


def warnings(said: Sequence[str]) -> Iterator[EngineWarning]:
    """What the engine itself marked as a warning, without the place in its code."""
    for number, line in enumerate(said, start=1):
        level, _, text = line.partition(" ")
        if level in LEVELS:
            yield EngineWarning(level=LEVELS[level], text=text.partition("] ")[2], line=number)
