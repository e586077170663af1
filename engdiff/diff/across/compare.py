"""The Diff of two captures of different engines."""

from __future__ import annotations

from collections.abc import Sequence

from engdiff import engines
from engdiff.diff.accept import Acceptance
from engdiff.diff.across.capacity import capacity, pool_found
from engdiff.diff.across.decisions import decisions, spoken
from engdiff.diff.across.ledger import ledger, ledger_of
from engdiff.diff.across.one_sided import one_sided
from engdiff.diff.across.party import Party
from engdiff.diff.across.pins import Carrier
from engdiff.diff.across.settings import other_meanings, settings_found, settings_not_compared, shared_settings
from engdiff.diff.across.starts import start_found, start_not_compared
from engdiff.diff.document import finding_of, rank, side_of, split, warnings_of
from engdiff.diff.findings import Found, PoolDiffers, SettingNotCarried
from engdiff.diff.ground import ground_not_compared, machine_moves, package_moves
from engdiff.diff.pinning import Command, pinned_commands
from engdiff.engines.contract import PinStyle
from engdiff.schema.capture import Capture
from engdiff.schema.diff import Across, Diff, NotCompared

ONLY_CANONICAL = NotCompared(
    what="native configuration", because="the two are different engines; only canonical settings are compared"
)

CARRIED = frozenset({SettingNotCarried.__name__, PoolDiffers.__name__})
"""Kinds of findings whose pins are what the user had asked for."""


def compare_engines(
    old: Capture,
    new: Capture,
    *,
    old_label: str,
    new_label: str,
    style: PinStyle,
    accept: Sequence[Acceptance],
    old_launched: bool,
) -> Diff:
    """What the two engines have in common and how they differ in it; what only one has. Pure."""
    left, right = (Party(capture, engines.get(capture.identity.engine)) for capture in (old, new))
    shared = shared_settings(left, right)
    found = sorted(
        (*start_found(left, right), *pool_found(left, right), *settings_found(shared, left, right)), key=_rank
    )
    carrier = Carrier(left, right, style)
    findings = [finding_of(one, carrier.pin(one)) for one in found]
    kept, accepted = split(findings, accept)
    carried = [finding.pin for finding in kept if finding.kind in CARRIED]
    command = Command(old_label=old_label, old_launched=old_launched, pins=carried)
    commands = pinned_commands(old, new, right.engine, command)
    titles = (left.title, right.title)
    return Diff(
        old=side_of(old, old_label),
        new=side_of(new, new_label),
        findings=tuple(kept),
        accepted=tuple(accepted),
        machine=machine_moves(old, new),
        packages=tuple(move for move in package_moves(old, new) if move.old and move.new),
        not_compared=(
            *start_not_compared(left, right),
            ONLY_CANONICAL,
            *settings_not_compared(left, right),
            *ground_not_compared(old, new, titles),
        ),
        warnings_new=warnings_of(old, new),
        warnings_gone=warnings_of(new, old),
        pinned_command=commands.native,
        prove_command=commands.prove,
        across=Across(
            old_title=left.title,
            new_title=right.title,
            compared=len(shared),
            same=sum(one.agrees for one in shared),
            capacity=tuple(capacity(left, right)),
            ledger=tuple(ledger(left, right)),
            ledger_of=ledger_of(left, right),
            decisions=tuple(decisions(left, right)),
            one_sided=one_sided(left, right),
            other_meanings=(*other_meanings(shared), *spoken(left, right)),
        ),
    )


def _rank(found: Found) -> tuple[object, ...]:
    """What the user had set and lost comes first, after the start itself."""
    return found.area != "startup", not isinstance(found, SettingNotCarried), *rank(found)
