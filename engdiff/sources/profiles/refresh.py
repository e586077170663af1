"""Making profiles: every shipped scenario of a release, resolved by the engine itself. Nothing else writes them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from engdiff.engines.contract import Engine
from engdiff.errors import EngineFailed
from engdiff.schema.capture import CAPTURE_SCHEMA, Capture
from engdiff.schema.values import Unknown
from engdiff.sources.order import Progress
from engdiff.sources.profiles import grid
from engdiff.sources.profiles.packing import Tree, own, packed, shared
from engdiff.sources.profiles.shipped import ENDING, NOT_DATED
from engdiff.sources.simulate import Ask, simulate_all

Simulated = Capture | EngineFailed
SimulateAll = Callable[[Sequence[grid.Shipped]], Iterable[Simulated]]
"""Resolves scenarios of one GPU, in their order."""

NOT_KEPT = Unknown(because="a profile is the same on every machine that makes it")


def profile(engine: Engine, version: str, progress: Progress) -> Tree:
    """The whole profile of a release as data."""

    def resolve(scenarios: Sequence[grid.Shipped]) -> Iterable[Simulated]:
        asks = [Ask(one.device, one.model, one.arguments) for one in scenarios]
        return simulate_all(engine, version, asks, {}, progress)

    return assembled(engine.name, version, grid.scenarios(), resolve)


def assembled(engine: str, version: str, scenarios: Sequence[grid.Shipped], resolve: SimulateAll) -> Tree:
    """Every scenario resolved, with what all captures share kept once."""
    made = {
        one.key: result
        for _, several in groupby(scenarios, key=lambda one: one.device.gpu.key)
        for one, result in _pairs(list(several), resolve)
    }
    trees = {key: lasting(result) for key, result in made.items() if isinstance(result, Capture)}
    common = shared(list(trees.values()))
    return {
        "schema": CAPTURE_SCHEMA,
        "engine": engine,
        "version": version,
        "shared": common,
        "scenarios": {
            key: {"own": own(trees[key], common)} if isinstance(result, Capture) else {"refused": refusal(result)}
            for key, result in made.items()
        },
    }


def _pairs(scenarios: Sequence[grid.Shipped], resolve: SimulateAll) -> Iterable[tuple[grid.Shipped, Simulated]]:
    return zip(scenarios, resolve(scenarios), strict=True)


def refusal(error: EngineFailed) -> dict[str, Any]:
    """Why the engine refused a scenario, in its words."""
    return {
        "message": error.message,
        "cause": error.cause,
        "advice": error.advice,
        "last_words": list(error.last_words),
    }


def lasting(capture: Capture) -> Tree:
    """A capture without what tells the machine or the day on which it was made."""
    identity = capture.identity.model_copy(
        update={"captured_at": NOT_DATED, "engdiff_version": "", "environment": NOT_KEPT}
    )
    simulated = capture.simulated
    if simulated is not None:
        pinned = {name: one for name, one in simulated.libraries.items() if one.asked.startswith("==")}
        simulated = simulated.model_copy(update={"libraries": pinned})
    tree: Tree = capture.model_copy(update={"identity": identity, "simulated": simulated}).model_dump(mode="json")
    return tree


def write(tree: Tree, folder: Path) -> Path:
    """Pack a profile into a folder of its engine."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{tree['version']}{ENDING}"
    path.write_bytes(packed(tree))
    return path
