"""Native leaves as findings, and those that only one side has."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pydantic import JsonValue

from engdiff.diff.findings import Found, NativeMoved
from engdiff.diff.native import Leaves, compare_leaves
from engdiff.diff.sides import both_whole, resolved, whole
from engdiff.engines.contract import Engine
from engdiff.schema.capture import Capture
from engdiff.schema.diff import NativeLeaf, NotCompared
from engdiff.schema.values import Known, plain

SAID = "log"
"""Where the native tree of a log keeps what its lines say: no configuration, and other numbers in every start."""

STARTED_NOT = "one side did not start, so it was never resolved"
OTHERWISE = "the two were read in different ways, which name and write it differently"
NOTHING = "one side does not state it"


def why_not(old: Capture, new: Capture) -> str | None:
    """Why the two native trees cannot be compared; ``None`` when they can."""
    if not resolved(old) or not resolved(new):
        return STARTED_NOT
    if old.identity.source != new.identity.source and not both_whole(old, new):
        return OTHERWISE
    if not _tree(old) or not _tree(new):
        return STARTED_NOT if old.failure or new.failure else NOTHING
    return None


def _tree(capture: Capture) -> dict[str, JsonValue]:
    """The native configuration without what only a log says."""
    return {k: v for k, v in capture.native.items() if k != SAID or whole(capture)}


def leaves(old: Capture, new: Capture, engine: Engine) -> Leaves | None:
    """The comparison of the two native trees; ``None`` when there is none to be made."""
    if why_not(old, new):
        return None
    versions = [str(plain(c.identity.version)) for c in (old, new)]
    covered = frozenset(
        f"{engine.native_root}{names.native}"
        for version in versions
        for names in engine.knowledge.names(version).values()
        if names.native
    )
    renamed = {
        f"{engine.native_root}{a}": f"{engine.native_root}{b}" for a, b in engine.knowledge.renamed(*versions).items()
    }
    found = compare_leaves(
        _tree(old), _tree(new), knowledge=engine.knowledge, root=engine.native_root, renamed=renamed, covered=covered
    )
    return found if both_whole(old, new) else replace(found, only_old={}, only_new={})


def natives_found(found: Leaves | None, engine: Engine) -> Iterator[Found]:
    """A finding for every leaf that both sides have with different values."""
    for path, (before, after) in found.changed.items() if found else ():
        yield NativeMoved(
            key=path,
            name=path.removeprefix(engine.native_root),
            old=Known(value=before),
            new=Known(value=after),
            area=engine.knowledge.area(path.removeprefix(engine.native_root)),
            why="engdiff has no account of what this costs.",
        )


def natives_only(
    found: Leaves | None, engine: Engine, because: str | None
) -> tuple[tuple[NativeLeaf, ...], int, tuple[NotCompared, ...]]:
    """Leaves that one side has alone, how many were compared, and why if none were."""
    if found is None:
        return (), 0, (NotCompared(what="native configuration", because=because or NOTHING),)

    def leaf(path: str, side: str, value: JsonValue) -> NativeLeaf:
        area = engine.knowledge.area(path.removeprefix(engine.native_root))
        return NativeLeaf(path=path, side=side, value=value, area=area)  # type: ignore[arg-type]

    only = (
        *(leaf(p, "old", v) for p, v in found.only_old.items()),
        *(leaf(p, "new", v) for p, v in found.only_new.items()),
    )
    retyped = tuple(
        NotCompared(what=path, because=f"it took the place of an option of another type: {old} became {new}")
        for path, (old, new) in found.retyped.items()
    )
    return only, found.compared, retyped
