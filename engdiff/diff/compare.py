"""Compare two captures: collect what moved, rank it, and give each finding its pin."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from engdiff import engines
from engdiff.diff.accept import Acceptance
from engdiff.diff.across.compare import compare_engines
from engdiff.diff.behaviours import behaviours
from engdiff.diff.document import finding_of, rank, side_of, split, warnings_of
from engdiff.diff.findings import Found
from engdiff.diff.ground import ground_not_compared, machine_moves, package_moves
from engdiff.diff.native import Leaves
from engdiff.diff.natives import leaves, natives_found, natives_only, why_not
from engdiff.diff.parts import parts_found
from engdiff.diff.pinning import (
    Command,
    costly_pins,
    informed,
    inherited,
    known_change,
    pin_for,
    pinned_commands,
)
from engdiff.diff.pools import pool_waterfalls, pools_found, pools_not_compared
from engdiff.diff.reach import beyond_knowledge
from engdiff.diff.settings import settings_found, settings_not_compared
from engdiff.diff.starts import start_found, start_not_compared
from engdiff.engines.contract import Engine, PinStyle
from engdiff.schema.capture import Capture
from engdiff.schema.diff import Diff


@dataclass(frozen=True)
class Pair:
    """Two captures of one engine and what is needed to judge them."""

    old: Capture
    new: Capture
    engine: Engine
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
    if old.identity.engine != new.identity.engine:
        return compare_engines(
            old,
            new,
            old_label=old_label,
            new_label=new_label,
            style=style,
            accept=accept,
            old_launched=old_launched,
        )
    engine = engines.get(new.identity.engine)
    pair = Pair(old, new, engine, leaves(old, new, engine))
    known = [(found, known_change(found, old, new, pair.engine)) for found in _asked_along(list(_collect(pair)))]
    ranked = sorted(
        ((informed(found, change, new, pair.engine), change) for found, change in known), key=lambda one: rank(one[0])
    )
    findings = [finding_of(found, pin_for(found, change, old, new, pair.engine, style)) for found, change in ranked]
    kept, accepted = split([inherited(finding, findings) for finding in findings], accept)
    native_only, compared, not_native = natives_only(pair.native, pair.engine, why_not(old, new))
    command = Command(old_label=old_label, old_launched=old_launched, pins=costly_pins(kept))
    commands = pinned_commands(old, new, pair.engine, command)
    return Diff(
        old=side_of(old, old_label),
        new=side_of(new, new_label),
        findings=tuple(kept),
        accepted=tuple(accepted),
        waterfalls=tuple(pool_waterfalls(old, new)),
        native_only=native_only,
        native_compared=compared,
        machine=machine_moves(old, new),
        packages=package_moves(old, new),
        not_compared=(
            *start_not_compared(old, new),
            *beyond_knowledge(old, new, engine),
            *pools_not_compared(old, new),
            *settings_not_compared(old, new),
            *not_native,
            *ground_not_compared(old, new),
        ),
        warnings_new=warnings_of(old, new),
        warnings_gone=warnings_of(new, old),
        behaviours=behaviours(old, new, engine, [change for _, change in known if change]),
        pinned_command=commands.native,
        prove_command=commands.prove,
    )


def _collect(pair: Pair) -> Iterator[Found]:
    """Everything that moved. Where one side did not start, only that and what was resolved before."""
    yield from start_found(pair.old, pair.new)
    yield from parts_found(pair.old, pair.new)
    yield from pools_found(pair.old, pair.new)
    yield from settings_found(pair.old, pair.new, pair.engine)
    yield from natives_found(pair.native, pair.engine)


def _asked_along(founds: list[Found]) -> Iterator[Found]:
    """What follows only from what the user asked for was asked for as well; only findings can be a cause."""
    moved = {found.key for found in founds}
    asked = {found.key for found in founds if found.asked}
    for found in founds:
        follows = tuple(key for key in found.follows_from if key in moved)
        yield replace(found, follows_from=follows, asked=found.asked or (bool(follows) and asked.issuperset(follows)))
