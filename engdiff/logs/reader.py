"""One pass over a log: for every engine and every stream in it, what it stated, cut into starts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, Literal

from engdiff.logs.matcher import finder
from engdiff.logs.messages import Message, Scan
from engdiff.logs.patterns import LinePattern
from engdiff.logs.starts import LogFormat, Start
from engdiff.logs.statements import Said, Statement
from engdiff.logs.values import decimal
from engdiff.schema.capture import EngineWarning

TAIL_LINES = 600
MOST_STATEMENTS = 20_000
MOST_WARNINGS = 500
MOST_SHAPES = 1000
LONGEST_SHAPE = 500
_DIGITS = str.maketrans("123456789", "000000000")

Key = tuple[str, str]
"""Engine and stream (empty when no wrapper names one)."""


@dataclass
class Speech:
    """What one engine said in one stream."""

    starts: list[Start] = field(default_factory=list)
    names: dict[str, int] = field(default_factory=dict)

    @property
    def telling(self) -> int:
        """How surely this engine wrote it."""
        return sum(self.names.values())


@dataclass
class Heard:
    """Everything heard in one log."""

    file: str | None
    lines: int = 0
    run_lines_in_part: bool = False
    notes: list[str] = field(default_factory=list)
    speeches: dict[Key, Speech] = field(default_factory=dict)


class Reader:
    """Reads logs of any of the engines in ``formats`` (by engine name)."""

    def __init__(self, formats: Mapping[str, LogFormat]) -> None:
        self._formats = dict(formats)
        self._by_anchor: dict[str, list[tuple[str, LinePattern]]] = {}
        for engine, spoken in self._formats.items():
            for pattern in spoken.lines:
                for anchor in pattern.anchors:
                    self._by_anchor.setdefault(anchor, []).append((engine, pattern))
        levels = {mark for spoken in self._formats.values() for mark in spoken.level_marks}
        self._levels = {e: spoken.level_marks for e, spoken in self._formats.items()}
        boot = {p_anchor for p_anchor, found in self._by_anchor.items() if any(not p.abundant for _, p in found)}
        self._find = finder({*self._by_anchor, *levels})
        self._find_boot = finder({*boot, *levels})
        self._shapes = [(anchor.translate(_DIGITS), found) for anchor, found in self._by_anchor.items()]
        self._by_shape: dict[str, dict[str, list[LinePattern]]] = {}

    def hear(self, stream: IO[bytes], file: str | None = None) -> Heard:
        """Read to the end. Memory does not grow with the log."""
        heard = Heard(file)
        scan = Scan(stream, file, self._find, self._find_boot)
        for message in scan.messages():
            if self._take(message, heard, scan):
                scan.was_run()
        heard.lines, heard.run_lines_in_part, heard.notes = scan.lines, scan.run_lines_in_part, scan.notes
        for (_, source), speech in heard.speeches.items():
            self._end(speech.starts[-1], scan, scan.lines + 1, source)
        return heard

    def _take(self, message: Message, heard: Heard, scan: Scan) -> bool:
        """What every engine makes of a message; whether it was only a run-time line."""
        text = message.line.text
        if message.glued:
            text = "".join((text, *(line.text for line in message.following)))
        wanted = self._candidates(text)
        only_run = False
        for engine, spoken in self._formats.items():
            patterns = wanted.get(engine, ())
            if not patterns and not any(mark in text for mark in self._levels[engine]):
                continue
            said = spoken.said(text)
            found = [(p, s) for p in patterns if (s := _statement(p, said, message, spoken))]
            if found or (said.level and (engine, message.line.source) in heard.speeches):
                only_run = self._hear(engine, said, found, message, heard, scan)
        return only_run

    def _candidates(self, text: str) -> dict[str, list[LinePattern]]:
        """Patterns that may match, by engine; lines that differ in their digits only are looked up once."""
        shape = text.translate(_DIGITS)
        if len(shape) > LONGEST_SHAPE:
            return self._with_anchor_in(shape)
        if shape not in self._by_shape:
            if len(self._by_shape) >= MOST_SHAPES:
                self._by_shape.clear()
            self._by_shape[shape] = self._with_anchor_in(shape)
        return self._by_shape[shape]

    def _with_anchor_in(self, shape: str) -> dict[str, list[LinePattern]]:
        found: dict[str, dict[int, LinePattern]] = {}
        for engine, pattern in (one for image, patterns in self._shapes if image in shape for one in patterns):
            found.setdefault(engine, {})[id(pattern)] = pattern
        return {engine: list(patterns.values()) for engine, patterns in found.items()}

    def _hear(
        self,
        engine: str,
        said: Said,
        found: Sequence[tuple[LinePattern, Statement]],
        message: Message,
        heard: Heard,
        scan: Scan,
    ) -> bool:
        """Put what one engine says in a message into its start; whether it was only a run-time line."""
        speech = heard.speeches.setdefault((engine, message.line.source), Speech())
        number = message.line.number
        if not speech.starts:
            speech.starts.append(Start(number, number, heard.file, message.line.source))
        first_of_each: dict[str, tuple[LinePattern, Statement]] = {}
        for pattern, statement in found:
            first_of_each.setdefault(statement.name, (pattern, statement))
        for pattern, statement in first_of_each.values():
            speech.names[statement.name] = pattern.telling
            start = self._current(speech, statement, pattern, scan)
            start.last = number
            self._put(start, statement, pattern)
        if said.level and message.line.text:
            speech.starts[-1].last = number
            self._warn(speech.starts[-1], said, number)
        return bool(found) and all(pattern.abundant for pattern, _ in first_of_each.values())

    def _current(self, speech: Speech, statement: Statement, pattern: LinePattern, scan: Scan) -> Start:
        """The start that a statement belongs to; another one when it begins one."""
        start = speech.starts[-1]
        if pattern.role != "start" or not _begins_another(start, statement):
            return start
        number = statement.line.number
        self._end(start, scan, number, statement.line.source)
        fresh = Start(number, number, start.file, start.source)
        speech.starts.append(fresh)
        return fresh

    def _end(self, start: Start, scan: Scan, number: int, source: str) -> None:
        start.last = max(start.last, number - 1)
        start.tail = [line for line in scan.before(number, source, TAIL_LINES) if line.number >= start.first]

    def _put(self, start: Start, statement: Statement, pattern: LinePattern) -> None:
        if pattern.role == "run":
            groups = {
                g: float(n) for g, v in statement.match.groupdict().items() if v and (n := decimal(v)) is not None
            }
            start.run.add(statement.name, groups, statement.line.number)
            return
        if pattern.role == "ready":
            if start.ready and start.last_of(statement.name):
                return  # an engine may say so again whenever it has nothing to do
            start.ready = True
        elif pattern.role == "stop":
            start.stopped = True
        elif pattern.role == "died":
            start.died = start.died or not start.stopped
        if len(start.statements) < MOST_STATEMENTS:
            start.statements.append(statement)

    def _warn(self, start: Start, said: Said, number: int) -> None:
        level, text = _LOUD.get(str(said.level).upper()), said.text.strip()
        if level is None or not text:
            return
        for index, known in enumerate(start.warnings):
            if known.text == text and known.level == level:
                start.warnings[index] = known.model_copy(update={"times": known.times + 1})
                return
        if len(start.warnings) < MOST_WARNINGS:
            start.warnings.append(EngineWarning(level=level, text=text, line=number))


_LOUD: Mapping[str, Literal["warning", "error"]] = {
    **dict.fromkeys(("W", "WARN", "WARNING"), "warning"),
    **dict.fromkeys(("E", "ERROR", "CRITICAL", "FATAL"), "error"),
}


def _begins_another(start: Start, statement: Statement) -> bool:
    """Whether a first line is said for the second time, or after the server was up."""
    if start.ready or start.stopped or start.died:
        return True
    same = [i for i, s in enumerate(start.statements) if s.name == statement.name and s.speaker == statement.speaker]
    return bool(same) and any(s.name != statement.name for s in start.statements[same[-1] + 1 :])


def _statement(pattern: LinePattern, said: Said, message: Message, spoken: LogFormat) -> Statement | None:
    """What a pattern reads from a message: from its line, else from the line with those that continue it."""
    pieces = [(0, message.line)]
    if message.glued:
        length = len(said.text) - sum(len(line.text) for line in message.following)
        for line in message.following:
            pieces.append((length, line))
            length += len(line.text)
    if match := pattern.pattern.search(said.text):
        return Statement(pattern.name, match, said, tuple(pieces), said.text)
    if message.glued:
        return None
    text = said.text
    for line in message.following:
        if not line.text.strip():
            continue
        if spoken.said(line.text).prefixed or line.source != message.line.source:
            return None
        pieces.append((len(text) + 1, line))
        text = f"{text} {line.text.strip()}"
        if match := pattern.pattern.search(text):
            return Statement(pattern.name, match, said, tuple(pieces), text)
    return None
