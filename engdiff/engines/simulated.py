"""What readings of simulations have in common, whichever engine was simulated."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from engdiff.engines.probed import Tree
from engdiff.schema.capture import EngineWarning, Group, Pool, Term
from engdiff.schema.values import Unknown, Value

NEEDS_DEVICE = Unknown(because="it is measured on the device, and this one is not there")

LEVELS: dict[str, Literal["warning", "error"]] = {"WARNING": "warning", "ERROR": "error"}


def weights(size: Value) -> tuple[Term, ...]:
    """The ledger of a model that was built without memory: nothing else is known."""
    meaning = "parameters and buffers of the first rank, as the model class declares them"
    return (Term(name="weights", kind="use", bytes=size, meaning=meaning),)


def cache(block_tokens: Value, groups: tuple[Group, ...]) -> tuple[Pool, ...]:
    """The cache by its geometry; how much of it there is only a device can tell."""
    if not groups:
        return ()
    return (
        Pool(
            name="KV cache",
            bytes=NEEDS_DEVICE,
            blocks=NEEDS_DEVICE,
            block_tokens=block_tokens,
            tokens=NEEDS_DEVICE,
            max_concurrency=NEEDS_DEVICE,
            concurrency_at_tokens=NEEDS_DEVICE,
            groups=groups,
        ),
    )


def lines_said(simulation: Tree) -> list[str]:
    """What the engine said about its decisions."""
    return [line for line in simulation.get("said") or () if isinstance(line, str)]


OURS = " is a stand-in: nothing can run"
"""How a stand-in refuses to be called (pretend_kit.py): an engine that warns of it speaks of no real machine."""


def warnings(said: Sequence[str]) -> Iterator[EngineWarning]:
    """What the engine itself marked as a warning, without the place in its code."""
    for number, line in enumerate(said, start=1):
        level, _, text = line.partition(" ")
        if level in LEVELS and OURS not in text:
            yield EngineWarning(level=LEVELS[level], text=text.partition("] ")[2], line=number)
