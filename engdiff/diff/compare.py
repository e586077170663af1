"""Compare two captures: collect what moved, rank it, and give each finding its pin."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from engdiff import engines
from engdiff.diff.accept import Acceptance
from engdiff.diff.findings import Found
from engdiff.diff.ground import ground_not_compared, machine_moves, package_moves
from engdiff.diff.native import Leaves
from engdiff.diff.natives import leaves, natives_found, natives_only, why_not
from engdiff.diff.parts import parts_found
from engdiff.diff.pinning import informed, inherited, known_change, pin_for, pinned_commands
from engdiff.diff.pools import pool_waterfalls, pools_found, pools_not_compared
from engdiff.diff.settings import settings_found, settings_not_compared
from engdiff.diff.sides import ending, read_from, whole
from engdiff.diff.starts import start_found, start_not_compared
from engdiff.engines.contract import Engine, PinStyle
from engdiff.knowledge.settings import AREAS
from engdiff.schema.capture import Capture
from engdiff.schema.diff import Accepted, Diff, Finding, NotCompared, Pin, Side
from engdiff.schema.values import Unknown, number, plain

STDIN = "-"
"""A label that names nothing that could be read again."""


@dataclass(frozen=True)
class Pair:
    """Two captures and what is needed to judge them. ``engine`` is ``None`` when they are of different engines."""

    old: Capture
    new: Capture
    engine: Engine | None
    native: Leaves | None


def compare(
    old: Capture,
    new: Capture,
    *,
    old_label: str,
    new_label: str,
    style: PinStyle = "flags",
    accept: Sequence[Acceptance] = (),
    old_launched: bool = False,
) -> Diff:
    """The Diff of two captures. Pure: the same two give the same Diff.

    ``old_launched``: the old label names an engine that was started for this, not a file.
    """
    same_engine = old.identity.engine == new.identity.engine
    engine = engines.get(new.identity.engine) if same_engine else None
    pair = Pair(old, new, engine, leaves(old, new, engine) if engine else None)
    known = [(found, known_change(found, old, new, pair.engine)) for found in _asked_along(list(_collect(pair)))]
    ranked = sorted(
        ((informed(found, change, new, pair.engine), change) for found, change in known), key=lambda one: _rank(one[0])
    )
    findings = [_finding(found, pin_for(found, change, old, new, pair.engine, style)) for found, change in ranked]
    kept, accepted = _split([inherited(finding, findings) for finding in findings], accept)
    native_only, compared, not_native = natives_only(pair.native, pair.engine, why_not(old, new))
    commands = pinned_commands(old, new, pair.engine, kept, old_label=old_label, old_launched=old_launched)
    return Diff(
        old=_side(old, old_label),
        new=_side(new, new_label),
        findings=tuple(kept),
        accepted=tuple(accepted),
        waterfalls=tuple(pool_waterfalls(old, new)),
        native_only=native_only,
        native_compared=compared,
        machine=machine_moves(old, new),
        packages=package_moves(old, new),
        not_compared=(
            *start_not_compared(old, new),
            *_different_engines(pair),
            *pools_not_compared(old, new),
            *settings_not_compared(old, new),
            *not_native,
            *ground_not_compared(old, new),
        ),
        warnings_new=_warnings(old, new),
        warnings_gone=_warnings(new, old),
        pinned_command=commands.native,
        prove_command=commands.prove if old_label != STDIN else None,
    )


def _collect(pair: Pair) -> Iterator[Found]:
    """Everything that moved. Where one side did not start, only that and what was resolved before."""
    yield from start_found(pair.old, pair.new)
    yield from parts_found(pair.old, pair.new)
    yield from pools_found(pair.old, pair.new)
    yield from settings_found(pair.old, pair.new, pair.engine)
    if pair.engine:
        yield from natives_found(pair.native, pair.engine)


def _asked_along(founds: list[Found]) -> Iterator[Found]:
    """What follows only from what the user asked for was asked for as well; only findings can be a cause."""
    moved = {found.key for found in founds}
    asked = {found.key for found in founds if found.asked}
    for found in founds:
        follows = tuple(key for key in found.follows_from if key in moved)
        yield replace(found, follows_from=follows, asked=found.asked or (bool(follows) and asked.issuperset(follows)))


def _rank(found: Found) -> tuple[bool, bool, int, int, float, str]:
    """Unasked first, explained first, then by what it can cost, then by how much it moved."""
    old, new = number(found.old), number(found.new)
    size = abs(math.log(new) - math.log(old)) if old and new and old > 0 and new > 0 else 0.0
    return found.asked, not found.explained, AREAS.index(found.area), found.rank, -size, found.key


def _finding(found: Found, pin: Pin) -> Finding:
    return Finding(
        kind=found.kind,
        key=found.key,
        area=found.area,
        headline=found.headline(),
        old=found.old,
        new=found.new,
        unit=found.unit,
        old_origin=found.old_origin,
        new_origin=found.new_origin,
        why=found.why,
        since=found.since,
        evidence=found.evidence,
        pin=pin,
        asked=found.asked,
        explained=found.explained,
        follows_from=found.follows_from,
    )


def _split(findings: Sequence[Finding], accept: Sequence[Acceptance]) -> tuple[list[Finding], list[Accepted]]:
    kept, accepted = [], []
    for finding in findings:
        reason = next((a.reason for a in accept if a.covers(finding)), None)
        if reason is None:
            kept.append(finding)
        else:
            accepted.append(Accepted(finding=finding, reason=reason))
    return kept, accepted


def _side(capture: Capture, label: str) -> Side:
    version, environment = plain(capture.identity.version), capture.identity.environment
    return Side(
        label=label,
        engine=capture.identity.engine,
        version=str(version) if version is not None else None,
        distribution=None if isinstance(environment, Unknown) else environment.distribution,
        source=capture.identity.source,
        captured_at=capture.identity.captured_at,
        model=capture.launch.model_given,
        started=ending(capture) != "failed",
        arguments=capture.launch.arguments,
        variables=capture.launch.variables,
        words_unknown_because=capture.launch.unknown_because,
        read_from=read_from(capture),
    )


def _different_engines(pair: Pair) -> tuple[NotCompared, ...]:
    if pair.engine is not None:
        return ()
    return (
        NotCompared(
            what="native configuration", because="the two are different engines; only canonical settings are compared"
        ),
    )


def _warnings(old: Capture, new: Capture) -> tuple[str, ...]:
    """Warnings of ``new`` that ``old`` does not have, without numbers and paths, which differ run by run.

    None where ``old`` may have had them as well: a server does not tell, and a log may break off.
    """
    if not _tells_warnings(old):
        return ()
    known = {_shape(w.text) for w in old.warnings}
    fresh = {_shape(w.text): w.text for w in new.warnings if w.level == "warning" and not _heard(w.text, known)}
    return tuple(fresh.values())


def _heard(text: str, known: Collection[str]) -> bool:
    """Whether it is among the known ones; a log may keep the name of the function that spoke before it."""
    shape = _shape(text)
    return shape in known or any(one and (shape.endswith(f": {one}") or one.endswith(f": {shape}")) for one in known)


def _tells_warnings(capture: Capture) -> bool:
    return whole(capture) or (capture.reading is not None and ending(capture) != "not shown")


def _shape(text: str) -> str:
    return "".join("#" if c.isdigit() else c for c in " ".join(w for w in text.split() if "/" not in w))
