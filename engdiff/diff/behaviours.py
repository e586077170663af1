"""Known changes of behaviour that came between two releases and that no value of either side shows."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from engdiff.diff.effect import no_effect
from engdiff.diff.pinning import between, known_pin, known_settings, platform_of, sentence
from engdiff.diff.values_at import value_at
from engdiff.engines.contract import Engine
from engdiff.knowledge.settings import AREAS, registry
from engdiff.knowledge.tables import Change
from engdiff.schema.capture import Capture
from engdiff.schema.diff import Area, Behaviour
from engdiff.schema.values import Known, plain

AREA_OF: dict[str, Area] = {
    "admission": "scheduling",
    "boot": "startup",
    "graphs": "memory",
    "kv": "memory",
    "lora": "memory",
    "memory": "memory",
    "parallel": "kernels",
    "runner": "kernels",
    "sampling": "numerics",
    "scheduler": "scheduling",
    "speculative": "scheduling",
}
"""What a change can cost, by the first word of a key that is no setting."""


def behaviours(old: Capture, new: Capture, engine: Engine, used: Collection[Change]) -> tuple[Behaviour, ...]:
    """Those that can act on the new side, costly areas first. ``used``: what explains a finding already."""
    releases = between(old, new)
    if releases is None:
        return ()
    found = [_behaviour(change, engine) for change in _silent(old, new, engine, releases) if change not in used]
    return tuple(sorted(found, key=lambda one: (AREAS.index(one.area), one.since, one.key)))


def _silent(old: Capture, new: Capture, engine: Engine, releases: Sequence[str]) -> Iterator[Change]:
    settings = known_settings(new, engine)
    platform = platform_of(new)
    for change in engine.knowledge.came_between(releases[0], releases[1]):
        if change.platform != "any" and platform not in (change.platform, "not stated"):
            continue
        if change.kind not in ("behaviour", "default") or no_effect(change.key, new, engine):
            continue
        if change.kind == "default" and _shown(change.key, old, new, engine):
            continue
        if change.meets(plain(value_at(new, change.key)), settings):
            yield change


def _shown(key: str, old: Capture, new: Capture, engine: Engine) -> bool:
    """Whether a side holds a value under this key, so that a finding tells whether it moved."""
    names = (key, f"{engine.native_root}{key}")
    return any(isinstance(value_at(side, name), Known) for side in (old, new) for name in names)


def _behaviour(change: Change, engine: Engine) -> Behaviour:
    return Behaviour(
        key=change.key,
        area=_area(change, engine),
        since=change.since,
        says=f"{sentence(change.summary)} {sentence(change.matters)}",
        applies_to=change.extra.get("applies_to"),
        pin=known_pin(change),
        source=change.source,
    )


def _area(change: Change, engine: Engine) -> Area:
    info = registry().get(change.key)
    first = change.key.partition(".")[0]
    return change.area or (info.area if info else None) or AREA_OF.get(first) or engine.knowledge.area(change.key)
