"""Defaults of a release on a GPU, from its shipped profile: what an engine's own code made of a like model there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from engdiff.engines.contract import Engine
from engdiff.engines.sizing import Sizing
from engdiff.errors import UsageError
from engdiff.geometry import Geometry
from engdiff.knowledge.gpus import Gpu
from engdiff.knowledge.versions import release
from engdiff.schema.capture import Setting
from engdiff.schema.values import plain
from engdiff.sources.profiles import grid, shipped


@dataclass(frozen=True)
class Defaults:
    """Settings by canonical key, and where they come from in words."""

    settings: Mapping[str, JsonValue]
    where: str


ORDER = ("state", "mla", "sliding window")
"""Kinds of cache that change defaults, the strongest first."""


def defaults(engine: Engine, sizing: Sizing, version: str, gpu: Gpu, geometry: Geometry) -> Defaults:
    """The profile of this release, or of the newest one before it.

    Raises :class:`~engdiff.errors.UsageError` when none is shipped.
    """
    held = nearest(engine.name, version)
    key, why = (gpu.key, "") if gpu.key in grid.GPUS else sizing.like(gpu)
    model = sizing.baseline[kind(geometry)]
    scenario = next(one for one in grid.scenarios() if one.device and one.device.gpu.key == key and one.model == model)
    tree = shipped.tree_of(engine.name, held, scenario.key)
    if tree is None:
        raise UsageError(
            f"{engine.name} {held} refused {model} on {key}, so that its defaults are not known",
            f"take a release that knows such models: engdiff profiles list {engine.name}",
        )
    told_there = ((name, tree["settings"].get(name)) for name in sizing.reads)
    found = {name: plain(Setting.model_validate(one).final) for name, one in told_there if one is not None}
    told = f"{engine.name}@{held}/{scenario.text}, {model}"
    return Defaults(found, f"{told}: {why}" if why else told)


def kind(geometry: Geometry) -> str:
    """The kind of cache that decides on defaults."""
    kinds = {cache.kind for cache in geometry.caches}
    return next((one for one in ORDER if one in kinds), "full")


def nearest(engine: str, version: str) -> str:
    """This release, or the newest before it that a profile is shipped of. Raises UsageError."""
    held = [one for one in shipped.versions(engine) if release(one) <= release(version)]
    if not held:
        raise UsageError(
            f"no profile of {engine} {version} or of a release before it is shipped",
            f"the oldest is {engine}@{next(iter(shipped.versions(engine)), 'none')}",
        )
    return held[-1]
