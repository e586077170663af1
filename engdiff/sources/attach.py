"""Attach: a server that runs already, read over HTTP. Only reads; what would take something away is asked for first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from engdiff import engines, errors
from engdiff.engines.contract import Engine
from engdiff.fetch import Access, Answer, get
from engdiff.redact import redact_text
from engdiff.schema.capture import Capture
from engdiff.sources.base import read_capture, redacted
from engdiff.sources.order import Progress

OK = 200
NOT_OVER_HTTP = "the server does not state it over HTTP"


@dataclass(frozen=True)
class AttachWishes:
    """What the user said beside the URL. ``drain``: also read what a reading takes away from other readers."""

    engine: str | None = None
    access: Access = field(default_factory=Access)
    drain: bool = False


def attach(url: str, wishes: AttachWishes, progress: Progress) -> Capture:
    """The capture of a running server.

    Raises the errors of :mod:`engdiff.fetch` when it cannot be reached, and
    :class:`~engdiff.errors.ServerForeign` when its answers are of no engine.
    """
    base = url.rstrip("/").removesuffix("/v1")
    asked: dict[str, Answer | errors.EngdiffError] = {}
    engine = _engine(base, wishes, asked)
    paths = {**engine.http.endpoints, **(engine.http.draining if wishes.drain else {})}
    progress(f"{redact_text(base)}: reading {len(paths)} endpoints of {engine.title}")
    for path in paths.values():
        _ask(base, path, wishes.access, asked)
    bodies = {name: answer.body for name, path in paths.items() if (answer := _good(asked[path]))}
    capture = engine.http.capture(bodies, read_capture(engine.name, "attach", NOT_OVER_HTTP))
    notes = (*capture.notes, *_notes(engine, paths, asked, drained=wishes.drain))
    return redacted(capture.model_copy(update={"notes": notes}))


def _engine(base: str, wishes: AttachWishes, asked: dict[str, Answer | errors.EngdiffError]) -> Engine:
    """The engine that the user named, else the one that recognises its answers."""
    if wishes.engine:
        named = engines.get(wishes.engine)
        for path in named.http.identify:
            _ask(base, path, wishes.access, asked)
        _reached(asked)
        return named
    candidates = [engines.get(name) for name in engines.names()]
    for path in dict.fromkeys(path for engine in candidates for path in engine.http.identify):
        _ask(base, path, wishes.access, asked)
        _reached(asked)
    answers = {path: answer.body for path, found in asked.items() if (answer := _good(found))}
    recognised = [engine for engine in candidates if engine.http.recognises(answers)]
    if not recognised:
        raise errors.ServerForeign(redact_text(base), sorted(answers), [engine.title for engine in candidates])
    return recognised[0]


def _ask(base: str, path: str, access: Access, asked: dict[str, Answer | errors.EngdiffError]) -> None:
    if path in asked:
        return
    try:
        asked[path] = get(base + path, access)
    except errors.EngdiffError as error:
        asked[path] = error


def _reached(asked: Mapping[str, Answer | errors.EngdiffError]) -> None:
    """Where nothing at all was answered, the first reason is the user's answer."""
    if asked and all(isinstance(found, errors.EngdiffError) for found in asked.values()):
        raise next(found for found in asked.values() if isinstance(found, errors.EngdiffError))


def _good(found: Answer | errors.EngdiffError) -> Answer | None:
    return found if isinstance(found, Answer) and found.status == OK else None


def _notes(
    engine: Engine, paths: Mapping[str, str], asked: Mapping[str, Answer | errors.EngdiffError], *, drained: bool
) -> tuple[str, ...]:
    notes = []
    for path in paths.values():
        found = asked[path]
        if isinstance(found, errors.EngdiffError):
            notes.append(f"{path}: not read: {found.message}")
        elif found.status != OK:
            notes.append(f"{path}: not read: status {found.status}")
    if engine.http.draining and not drained:
        notes.append(
            f"{', '.join(engine.http.draining.values())}: not read, because a reading is not without effect (counters "
            "that others collect begin again, or a sleeping model wakes); --drain reads them"
        )
    return tuple(notes)
