"""Making profiles: every shipped scenario of a release, resolved by the engine itself. Nothing else writes them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from engdiff import engines
from engdiff.engines.contract import Engine
from engdiff.errors import EngineFailed, UsageError
from engdiff.knowledge.tables import Knowledge
from engdiff.references import EngineReference, parse
from engdiff.schema.capture import CAPTURE_SCHEMA, Capture
from engdiff.schema.values import Unknown
from engdiff.sources.order import Progress
from engdiff.sources.profiles import grid
from engdiff.sources.profiles.packing import Tree, content, merged, own, packed, shared, unpacked
from engdiff.sources.profiles.shipped import ENDING, NOT_DATED, by_device
from engdiff.sources.simulate import Ask, simulate_all

Simulated = Capture | EngineFailed
SimulateAll = Callable[[Sequence[grid.Shipped]], Iterable[Simulated]]
"""Resolves scenarios of one GPU, in their order."""

NOT_KEPT = Unknown(because="a profile is the same on every machine that makes it")


@dataclass(frozen=True)
class Refreshed:
    """How it ended: one sentence, and whether it is what was there."""

    says: str
    same: bool


def refreshed(text: str, folder: Path, progress: Progress, *, check: bool = False) -> Refreshed:
    """Make the profile of ``engine@version`` and write it; with ``check`` only compare it with the one that is there.

    Raises :class:`~engdiff.errors.UsageError` for what is no release.
    """
    reference = parse(text)
    if not isinstance(reference, EngineReference) or reference.version is None or reference.gpu:
        raise UsageError(f"`{text}` is no release", "write ENGINE@VERSION: vllm@0.33.1")
    tree = profile(engines.get(reference.engine), reference.version, progress)
    path = folder / f"{reference.version}{ENDING}"
    before = unpacked(path.read_bytes()) if path.is_file() else None
    same = before is not None and content(before) == content(tree)
    if check:
        return Refreshed(f"{text}: {'the same, byte for byte' if same else _differs(before, tree)}", same)
    write(tree, folder)
    refusals = sum("refused" in entry for entry in tree["scenarios"].values())
    told = f"{text}: {path}, scenarios: {len(tree['scenarios'])}, refused by the engine: {refusals}"
    return Refreshed(f"{told}{' (as before)' if same else ''}", same)


def _differs(before: Tree | None, after: Tree) -> str:
    """Which scenarios are not what is shipped."""
    if before is None:
        return "no profile of it is shipped"
    keys = sorted(before["scenarios"].keys() | after["scenarios"].keys())
    moved = [key for key in keys if _scenario(before, key) != _scenario(after, key)]
    return f"differs from what is shipped in {', '.join(moved) or 'its frame'}"


def _scenario(tree: Tree, key: str) -> bytes:
    entry = tree["scenarios"].get(key) or {}
    return content(merged(tree["shared"], entry["own"]) if "own" in entry else entry)


def profile(engine: Engine, version: str, progress: Progress) -> Tree:
    """The whole profile of a release as data."""

    def resolve(scenarios: Sequence[grid.Shipped]) -> Iterable[Simulated]:
        asks = [Ask(one.device, one.model, one.arguments) for one in scenarios]
        return simulate_all(engine, version, asks, {}, progress)

    return assembled(engine, version, grid.scenarios(by_device=by_device(engine)), resolve)


def assembled(engine: Engine, version: str, scenarios: Sequence[grid.Shipped], resolve: SimulateAll) -> Tree:
    """Every scenario resolved, with what all captures share kept once."""
    made = {
        one.key: result
        for _, several in groupby(scenarios, key=lambda one: one.device and one.device.gpu.key)
        for one, result in _pairs(list(several), resolve)
    }
    trees = {key: lasting(result, engine) for key, result in made.items() if isinstance(result, Capture)}
    common = shared(list(trees.values()))
    return {
        "schema": CAPTURE_SCHEMA,
        "engine": engine.name,
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


def lasting(capture: Capture, engine: Engine) -> Tree:
    """A capture without what tells the machine or the day on which it was made."""
    identity = capture.identity.model_copy(
        update={"captured_at": NOT_DATED, "engdiff_version": "", "environment": NOT_KEPT}
    )
    simulated = capture.simulated
    if simulated is not None:
        pinned = {name: one for name, one in simulated.libraries.items() if one.asked.startswith("==")}
        simulated = simulated.model_copy(update={"libraries": pinned})
    native = _without_noise(dict(capture.native), engine)
    update = {"identity": identity, "simulated": simulated, "native": native}
    tree: Tree = capture.model_copy(update=update).model_dump(mode="json")
    return tree


SPOKEN = ("flags",)
"""What pins are written from: how this release spells its flags, of which none is compared."""


def _without_noise(tree: Tree, engine: Engine, path: str = "") -> Tree:
    """The native configuration without leaves that differ run by run, or that say where things lie."""
    found: Tree = {}
    for name, value in tree.items():
        at = f"{path}{name}"
        if at in SPOKEN:
            found[name] = value
        elif isinstance(value, dict):
            found[name] = _without_noise(value, engine, f"{at}.")
        elif _kept(at.removeprefix(engine.native_root), engine.knowledge):
            found[name] = value
    return found


def _kept(path: str, knowledge: Knowledge) -> bool:
    return path in knowledge.looked_at or not knowledge.is_noise(path)


def write(tree: Tree, folder: Path) -> Path:
    """Pack a profile into a folder of its engine."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{tree['version']}{ENDING}"
    path.write_bytes(packed(tree))
    return path
