"""One key over many captures of an engine, oldest first: its values, where it moved, and what is known of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from engdiff.diff.compare import compare
from engdiff.diff.pinning import known_settings
from engdiff.diff.tolerance import moved
from engdiff.diff.values_at import value_at
from engdiff.engines.contract import Engine, PinStyle
from engdiff.engines.layers import same
from engdiff.knowledge.settings import registry
from engdiff.knowledge.tables import Change
from engdiff.knowledge.versions import came_between
from engdiff.schema.capture import Capture
from engdiff.schema.diff import Finding, Pin
from engdiff.schema.history import Account, History, Left, Moved, Span
from engdiff.schema.values import Known, Unknown, Value, plain

PLATFORMS = ("any", "cuda")
"""Of which changes a history on a GPU tells."""


@dataclass(frozen=True)
class Release:
    """One release and what it decided; or, where it decided nothing, why."""

    version: str
    capture: Capture | Unknown


@dataclass(frozen=True)
class Asked:
    """Of what the history is told: a key, and on what the captures were made."""

    key: str
    device: str
    model: str
    arguments: tuple[str, ...] = ()


def history(engine: Engine, asked: Asked, releases: Iterable[Release], style: PinStyle = "flags") -> History:
    """The history of a key. ``releases``: oldest first; a capture is held only while its neighbour is read."""
    spans: list[Span] = []
    moves: list[Moved] = []
    without: list[Left] = []
    changes = [one for one in engine.knowledge.changes_of(asked.key.removeprefix(engine.native_root)) if _on_gpus(one)]
    before: Release | None = None
    for release in releases:
        if isinstance(release.capture, Unknown):
            without.append(Left(version=release.version, because=release.capture.because))
            continue
        value = value_at(release.capture, asked.key)
        if spans and before and _same(spans[-1].value, value):
            spans[-1] = _longer(spans[-1], release)
        else:
            if spans and before:
                moves.append(_move(engine, asked.key, before, release, changes, style))
            spans.append(_span(asked.key, release, value))
        before = release
    return History(
        engine=engine.name,
        key=asked.key,
        unit=registry()[asked.key].unit if asked.key in registry() else "",
        device=asked.device,
        model=asked.model,
        arguments=asked.arguments,
        spans=tuple(spans),
        moves=tuple(moves),
        accounts=tuple(one for one in map(_account, changes) if not any(one in move.accounts for move in moves)),
        without=tuple(without),
        notes=before.capture.notes if before and isinstance(before.capture, Capture) else (),
    )


def _same(one: Value, other: Value) -> bool:
    """Whether a value held; not being known is a value as well, whatever the reason."""
    if isinstance(one, Known) and isinstance(other, Known):
        return same(one.value, other.value) or not moved(one, other)
    return isinstance(one, Unknown) and isinstance(other, Unknown)


def _longer(span: Span, release: Release) -> Span:
    return span.model_copy(update={"last": release.version, "releases": span.releases + 1})


def _span(key: str, release: Release, value: Value) -> Span:
    assert isinstance(release.capture, Capture)
    setting = release.capture.settings.get(key)
    return Span(
        first=release.version,
        last=release.version,
        releases=1,
        value=value,
        origin=setting.origin if setting else None,
        because=setting.because if setting else None,
    )


def _move(
    engine: Engine, key: str, before: Release, after: Release, changes: Sequence[Change], style: PinStyle
) -> Moved:
    """What a diff of the two neighbours says of this key, and what is known to have happened between them."""
    assert isinstance(before.capture, Capture)
    assert isinstance(after.capture, Capture)
    found = compare(before.capture, after.capture, old_label=before.version, new_label=after.version, style=style)
    finding = next((one for one in found.findings if one.key == key), None)
    settings, value = known_settings(after.capture, engine), plain(value_at(after.capture, key))
    acting = [
        one for one in changes if came_between(before.version, one.since, after.version) and one.meets(value, settings)
    ]
    return Moved(
        before=before.version,
        since=after.version,
        headline=finding.headline if finding else "",
        accounts=tuple(map(_account, acting)),
        pin=_pin(finding),
    )


def _pin(finding: Finding | None) -> Pin:
    if finding is None:
        return Pin(text=None, because="a release on one side does not hold it")
    return finding.pin


def _on_gpus(change: Change) -> bool:
    return change.platform in PLATFORMS


def _account(change: Change) -> Account:
    return Account(
        since=change.since, kind=change.kind, summary=change.summary, matters=change.matters, source=change.source
    )
