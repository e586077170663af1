"""Three or more captures in order: what moved at which step, built on the Diffs of the captures, two by two."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from engdiff import engines
from engdiff.diff import findings as kinds
from engdiff.diff.accept import Acceptance
from engdiff.diff.compare import compare
from engdiff.diff.pinning import STDIN
from engdiff.diff.tolerance import about_equal
from engdiff.diff.values_at import value_at
from engdiff.engines.contract import PinStyle
from engdiff.knowledge.settings import AREAS
from engdiff.redact import REDACTED
from engdiff.schema.capture import Capture
from engdiff.schema.diff import Diff, Finding, Side
from engdiff.schema.series import Series, SeriesMove, SeriesRow
from engdiff.schema.values import Known, Unknown, number

Standing = tuple[bool, bool, int, int, float]

NAMES = {
    "start": "start-up",
    "runner.name": "model runner",
    "admission.rule": "admission rule",
    "admission.preemption": "preemption",
    "kv.max_concurrency": "requests that fit",
}
"""How a table calls what is no setting."""


@dataclass(frozen=True)
class Moved:
    """A finding between two sides, by their places in the series."""

    before: int
    at: int
    finding: Finding


def series(
    captures: Sequence[Capture],
    labels: Sequence[str],
    style: PinStyle = "flags",
    accept: Sequence[Acceptance] = (),
    launched: Sequence[bool] = (),
) -> Series:
    """The Series of three or more captures. Pure. ``launched``: which labels name an engine that was started for this.

    Every pair is compared: what a side in between does not know moves against the last side that knows it.
    """

    def between(before: int, at: int) -> Diff:
        return compare(
            captures[before],
            captures[at],
            old_label=labels[before],
            new_label=labels[at],
            style=style,
            accept=accept,
            old_launched=bool(launched and launched[before]),
        )

    places = range(len(captures))
    pairs = {(before, at): between(before, at) for at in places for before in range(at)}
    moved = _moved(captures, pairs)
    rows = sorted(
        (_row(key, captures, found) for key, found in moved.items()),
        key=lambda row: (min(_standing(one.finding) for one in moved[row.key]), row.key),
    )
    worst = min((one for found in moved.values() for one in found), key=_cost, default=None)
    neighbours = [pairs[at - 1, at] for at in places[1:]]
    sides = (neighbours[0].old, *(diff.new for diff in neighbours))
    return Series(
        sides=sides,
        rows=tuple(rows),
        diffs=tuple(neighbours),
        worst=worst.at if worst else None,
        next_command=_next(sides, launched or [False] * len(sides), worst) if worst else None,
    )


def _moved(captures: Sequence[Capture], pairs: Mapping[tuple[int, int], Diff]) -> dict[str, list[Moved]]:
    """By key: each move against the last side that knows the value, and what only adds up from first to last."""
    found: dict[str, list[Moved]] = {}
    for (before, at), diff in pairs.items():
        for finding in diff.findings:
            if all(isinstance(value_at(captures[i], finding.key), Unknown) for i in range(before + 1, at)):
                found.setdefault(finding.key, []).append(Moved(before, at, finding))
    last = len(captures) - 1
    for finding in pairs[0, last].findings:
        found.setdefault(finding.key, [Moved(0, last, finding)])
    return {key: _once(moves) for key, moves in found.items()}


def _once(moves: Sequence[Moved]) -> list[Moved]:
    """One move for each side: against the nearest side before it."""
    nearest = {one.at: one for one in sorted(moves, key=lambda m: m.before)}
    return [nearest[at] for at in sorted(nearest)]


def _row(key: str, captures: Sequence[Capture], moves: Sequence[Moved]) -> SeriesRow:
    worst = min(moves, key=lambda one: _standing(one.finding)).finding
    values = tuple(_values(key, captures, moves))
    known = [value for value in values if isinstance(value, Known)]
    return SeriesRow(
        key=key,
        name=_name(key, captures),
        area=worst.area,
        unit=worst.unit,
        values=values,
        steps=tuple(one.at for one in moves),
        moves=tuple(map(_move, moves)),
        pin=moves[-1].finding.pin,
        returned=len(moves) > 1 and about_equal(known[0], known[-1]),
        asked=all(one.finding.asked for one in moves),
        explained=any(one.finding.explained for one in moves),
    )


def _values(key: str, captures: Sequence[Capture], moves: Sequence[Moved]) -> Iterator[Known | Unknown]:
    """As the findings say it, where they do; else as the capture has it."""
    said = {one.before: one.finding.old for one in moves} | {one.at: one.finding.new for one in moves}
    for place, capture in enumerate(captures):
        yield said[place] if place in said else value_at(capture, key)


def _move(one: Moved) -> SeriesMove:
    finding = one.finding
    return SeriesMove(
        at=one.at,
        before=one.before,
        kind=finding.kind,
        headline=finding.headline,
        why=finding.why,
        since=finding.since,
        pin=finding.pin,
        asked=finding.asked,
    )


def _name(key: str, captures: Sequence[Capture]) -> str:
    """How a table calls it: settings by their keys, what is no setting by its name."""
    what, _, place = key.partition("[")
    where = f" ({place.rstrip(']')})" if place else ""
    if what == "kv.pool_bytes":
        pools = (p.name for c in captures for i in c.instances for r in i.ranks for p in r.pools)
        return f"{next(pools, 'KV cache')}{where}"
    if what.startswith("memory.") and key not in captures[0].settings:
        return f"memory for {what.removeprefix('memory.').replace('_', ' ')}{where}"
    if what.startswith("start."):
        return what.removeprefix("start.").removesuffix("_bytes").replace("_", " ")
    return NAMES[what] + where if what in NAMES else key.removeprefix(_root(captures))


def _root(captures: Sequence[Capture]) -> str:
    return engines.get(captures[-1].identity.engine).native_root


def _standing(finding: Finding) -> Standing:
    """As in a Diff: unasked first, explained first, then by what it can cost, then by how much it moved."""
    old, new = number(finding.old), number(finding.new)
    size = abs(math.log(new) - math.log(old)) if old and new and old > 0 and new > 0 else 0.0
    rank = getattr(kinds, finding.kind).rank
    return finding.asked, not finding.explained, AREAS.index(finding.area), rank, -size


def _cost(one: Moved) -> tuple[bool, Standing, int]:
    """What to look at first: what is cosmetic comes after what was asked for, and of equals the first step."""
    return one.finding.area == "cosmetic", _standing(one.finding), one.at


def _next(sides: Sequence[Side], launched: Sequence[bool], worst: Moved) -> str | None:
    """What shows the worst step in full; what was launched is launched again, with the words it had."""
    places = (worst.before, worst.at)
    labels = [sides[place].label for place in places]
    started = next((sides[place] for place in reversed(places) if launched[place]), None)
    if STDIN in labels:
        return None
    words = ["engdiff", "diff", *labels]
    if started is not None:
        words += ["--model", started.model] if started.model else []
        words += [w for k, v in started.variables.items() if REDACTED not in v for w in ("--env", f"{k}={v}")]
        words += ["--", *started.arguments] if started.arguments else []
    return shlex.join(words)
