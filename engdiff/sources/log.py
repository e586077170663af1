"""Log: from one or more files of a start-up log to a Capture. Recognises the engine; cites a line for every value."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import IO, Any, Literal

from engdiff import engines, errors
from engdiff.engines.contract import Cause, Engine
from engdiff.logs.blocks import BLOCK_BYTES
from engdiff.logs.messages import FIRST_RUN_LINES, MOST_RUN_LINES
from engdiff.logs.reader import Heard, Reader, Speech
from engdiff.logs.starts import Start
from engdiff.redact import redact_text
from engdiff.schema.capture import Capture, Failure, LogStart, Reading
from engdiff.schema.values import Evidence, Known, Value
from engdiff.sources.base import read_capture, redacted
from engdiff.sources.failure import lacking, numbers_of
from engdiff.units import MIB

NOT_IN_A_LOG = "a log does not state it"
LAST_WORDS = 15


@dataclass(frozen=True)
class LogWishes:
    """What the user said beside the files: the engine, which start (from 1), which stream of a wrapper."""

    engine: str | None = None
    start: int | None = None
    source: str | None = None


def read_log(paths: Sequence[Path | None], wishes: LogWishes = LogWishes()) -> Capture:
    """The capture of the start that the logs show; ``None`` among ``paths`` is standard input.

    Raises :class:`~engdiff.errors.LogForeign` when no engine wrote them, and others that name the file.
    """
    reader = _reader((wishes.engine,) if wishes.engine else engines.names())
    heard = [_hear(reader, path, several=len(paths) > 1) for path in paths]
    return understand(heard, ", ".join("standard input" if p is None else str(p) for p in paths), wishes)


@cache
def _reader(names: tuple[str, ...]) -> Reader:
    return Reader({name: engines.get(name).log.format for name in names})


def read_text(text: bytes, wishes: LogWishes = LogWishes()) -> Capture:
    """The capture that a log in memory makes."""
    heard = _reader((wishes.engine,) if wishes.engine else engines.names()).hear(BytesIO(text))
    return understand([heard], "this log", wishes)


def understand(heard: Sequence[Heard], label: str, wishes: LogWishes) -> Capture:
    """The capture of what was heard. ``label`` is how the user knows the logs."""
    name, recognised = _recognised(heard, label)
    engine = engines.get(name)
    sources = [_speech(one, name, wishes.source) for one in heard]
    return _understood(engine, heard, [s for s in sources if s], recognised, wishes)


def _hear(reader: Reader, path: Path | None, *, several: bool) -> Heard:
    name = "standard input" if path is None else str(path)
    try:
        with _opened(path) as stream:
            return reader.hear(stream, path.name if several and path else None)
    except FileNotFoundError:
        raise errors.DocumentMissing(name) from None
    except OSError as error:
        raise errors.DocumentUnreadable(name, error.strerror or str(error)) from None


def _opened(path: Path | None) -> Any:
    stream: IO[bytes] = sys.stdin.buffer
    return nullcontext(stream) if path is None else path.open("rb")


def _recognised(heard: Sequence[Heard], label: str) -> tuple[str, str]:
    """The engine that wrote the logs, and the words that tell."""
    votes: dict[str, int] = {}
    names: dict[str, set[str]] = {}
    for one in heard:
        for (engine, _), speech in one.speeches.items():
            votes[engine] = votes.get(engine, 0) + speech.telling
            names.setdefault(engine, set()).update(speech.names)
    best = max(votes, key=lambda engine: votes[engine], default=None)
    if best is None or votes[best] == 0:
        raise errors.LogForeign(label, sum(one.lines for one in heard), [engines.get(n).title for n in engines.names()])
    count = len(names[best])
    others = [e for e in votes if e != best and votes[e] > 1]
    said = f"recognised by {count} {'kinds' if count > 1 else 'kind'} of line"
    if others:
        said += f"; the log also holds lines of {', '.join(engines.get(e).title for e in others)}"
    return best, said


def _speech(heard: Heard, engine: str, source: str | None) -> tuple[Heard, str, Speech] | None:
    """The stream of a log in which the engine says most, or the one that the user named."""
    found = {s: speech for (e, s), speech in heard.speeches.items() if e == engine}
    if source is not None:
        matching = [s for s in found if source in (s, s.rpartition("/")[2])]
        if not matching:
            raise errors.UsageError(
                f"--source {source}: no such stream in the log",
                f"its streams: {', '.join(s or '(without a prefix)' for s in found) or 'none'}",
            )
        return heard, matching[0], found[matching[0]]
    best = max(found, key=lambda s: found[s].telling, default=None)
    return None if best is None else (heard, best, found[best])


def _understood(
    engine: Engine,
    heard: Sequence[Heard],
    found: Sequence[tuple[Heard, str, Speech]],
    recognised: str,
    wishes: LogWishes,
) -> Capture:
    chosen = [_chosen(speech.starts, wishes.start if len(found) == 1 else None) for _, _, speech in found]
    start = _merged([speech.starts[i] for i, (_, _, speech) in zip(chosen, found, strict=True)])
    base = read_capture(engine.name, "log", NOT_IN_A_LOG)
    capture = engine.log.capture(start, base)
    failure = _failure(engine, start, [one.file or "" for one in heard])
    starts = tuple(_log_start(engine, s) for _, _, speech in found for s in speech.starts)
    reading = Reading(
        files=tuple(filter(None, (one.file for one in heard))),
        lines=sum(one.lines for one in heard),
        recognised=recognised,
        starts=starts,
        chosen=chosen[0],
    )
    capture = capture.model_copy(
        update={
            "warnings": tuple(start.warnings),
            "failure": failure,
            "reading": reading,
            "run_summary": _run_summary(start),
            "notes": (*capture.notes, *_notes(reading, found, failure, start)),
        }
    )
    return redacted(capture)


def _chosen(starts: Sequence[Start], wanted: int | None) -> int:
    """The start that the user named, else the last that came up, else the last."""
    if wanted is not None:
        if not 1 <= wanted <= len(starts):
            raise errors.UsageError(f"--start {wanted}: the log holds {len(starts)} start(s)", "they count from 1")
        return wanted - 1
    up = [index for index, start in enumerate(starts) if start.ready]
    return up[-1] if up else len(starts) - 1


def _merged(starts: Sequence[Start]) -> Start:
    """What several nodes said of one start."""
    first, *others = starts
    for other in others:
        first.statements.extend(other.statements)
        first.warnings.extend(other.warnings)
        first.ready = first.ready or other.ready
        first.died = first.died or other.died
        if not first.run.series:
            first.run = other.run
        if other.died and not other.ready:
            first.tail = other.tail
    return first


# --- how it ended -----------------------------------------------------------------------------------------------


def _failure(engine: Engine, start: Start, files: Sequence[str]) -> Failure | None:
    """How the start ended, when it says that it failed; a log that just breaks off is no failure."""
    if start.ready and not start.died:
        return None
    cause = engine.cause(_words(start), "")
    died = next((s for s in reversed(start.statements) if s.name == "died"), None)
    if cause is None and not start.died:
        return None
    cause = cause or Cause("", "its last lines show where")
    stage = cause.stage or ("serving" if start.ready else engine.log.stage(start))
    numbers = numbers_of(cause, start.tail)
    return Failure(
        stage=stage,
        exit=redact_text(died.text if died else "the engine says that it failed"),
        cause=cause.sentence or None,
        advice=cause.advice,
        last_words=tuple(redact_text(line.text) for line in start.tail[-LAST_WORDS:]),
        log=next(filter(None, files), ""),
        numbers=numbers,
        would_fit=cause.fits or lacking(numbers),
    )


def _log_start(engine: Engine, start: Start) -> LogStart:
    return LogStart(
        first_line=start.first,
        last_line=start.last,
        ended=_ended(engine, start),
        file=start.file,
        source=start.source,
    )


def _ended(engine: Engine, start: Start) -> Literal["ready", "failed", "breaks off"]:
    if start.ready and not start.died:
        return "ready"
    return "failed" if start.died or engine.cause(_words(start), "") else "breaks off"


def _words(start: Start) -> str:
    return "\n".join(line.text for line in start.tail)


def _run_summary(start: Start) -> dict[str, Value]:
    """Each number of the run-time lines: least, mean, most and last."""
    return {
        f"{name}.{group}": Known(
            value=series.summary(),
            basis="measured",
            evidence=Evidence(source="rule", where=f"lines {series.first_line} to {series.last_line} of the log"),
        )
        for (name, group), series in start.run.series.items()
    }


def _notes(
    reading: Reading, found: Sequence[tuple[Heard, str, Speech]], failure: Failure | None, start: Start
) -> tuple[str, ...]:
    notes = [note for heard, _, _ in found for note in heard.notes]
    if len(reading.starts) > 1 and len(found) == 1:
        notes.append(
            f"the log holds {len(reading.starts)} starts; this is number {reading.chosen + 1}: "
            + "; ".join(
                f"{n}: lines {s.first_line} to {s.last_line}, {s.ended}" for n, s in enumerate(reading.starts, start=1)
            )
            + " (--start N reads another)"
        )
    for heard, source, _ in found:
        others = sorted({s for (_, s) in heard.speeches if s != source})
        if others:
            notes.append(
                f"read from `{source or 'lines without a prefix'}`; the log also holds "
                f"{', '.join(s or 'lines without a prefix' for s in others)} (--source NAME reads another)"
            )
    if failure is None and not start.ready:
        notes.append("the log does not show whether the server came up")
    if any(heard.run_lines_in_part for heard, _, _ in found):
        notes.append(
            f"of the run-time lines a sample was read: the first {FIRST_RUN_LINES:,}, then {MOST_RUN_LINES} of each "
            f"{BLOCK_BYTES // MIB} MiB"
        )
    return tuple(notes)
