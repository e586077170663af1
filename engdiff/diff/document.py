"""Parts of a Diff that every comparison makes alike: its sides, its findings, their order, the warnings."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from engdiff.diff.accept import Acceptance
from engdiff.diff.findings import Found
from engdiff.diff.sides import ending, read_from, whole
from engdiff.knowledge.settings import AREAS
from engdiff.schema.capture import Capture
from engdiff.schema.diff import Accepted, Finding, Pin, Side
from engdiff.schema.values import Unknown, number, plain


def rank(found: Found) -> tuple[bool, bool, int, int, float, str]:
    """Unasked first, explained first, then by what it can cost, then by how much it moved."""
    old, new = number(found.old), number(found.new)
    size = abs(math.log(new) - math.log(old)) if old and new and old > 0 and new > 0 else 0.0
    return found.asked, not found.explained, AREAS.index(found.area), found.rank, -size, found.key


def finding_of(found: Found, pin: Pin) -> Finding:
    """A finding as the document holds it."""
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
        meanings=found.meanings,
    )


def split(findings: Sequence[Finding], accept: Sequence[Acceptance]) -> tuple[list[Finding], list[Accepted]]:
    """Those that stand, and those that the user accepts."""
    kept, accepted = [], []
    for finding in findings:
        reason = next((a.reason for a in accept if a.covers(finding)), None)
        if reason is None:
            kept.append(finding)
        else:
            accepted.append(Accepted(finding=finding, reason=reason))
    return kept, accepted


def side_of(capture: Capture, label: str) -> Side:
    """What a side is, and how to make it again."""
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


def warnings_of(old: Capture, new: Capture) -> tuple[str, ...]:
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
