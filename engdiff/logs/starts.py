"""One start of an engine in a log: everything that was stated between one first line and the next."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from engdiff.logs.patterns import LinePattern
from engdiff.logs.runtime import RunTotals
from engdiff.logs.statements import Line, Said, Statement
from engdiff.schema.capture import EngineWarning

Prefix = Callable[[str], Said]
"""An engine's reading of its own prefix."""


@dataclass(frozen=True)
class LogFormat:
    """How one engine writes its log: its line patterns, its prefix, and the texts that mark a warning or an error."""

    lines: tuple[LinePattern, ...]
    said: Prefix
    level_marks: tuple[str, ...] = ()


@dataclass
class Start:
    """What one start stated. Statements are in the order of the log; of a repetition by one speaker all are kept."""

    first: int
    last: int
    file: str | None = None
    source: str = ""
    statements: list[Statement] = field(default_factory=list)
    run: RunTotals = field(default_factory=RunTotals)
    warnings: list[EngineWarning] = field(default_factory=list)
    tail: list[Line] = field(default_factory=list)
    ready: bool = False
    stopped: bool = False
    died: bool = False

    def all(self, *names: str) -> Iterator[Statement]:
        """Statements of these names, in order."""
        return (s for s in self.statements if s.name in names)

    def last_of(self, *names: str) -> Statement | None:
        """The last statement of these names."""
        return next((s for s in reversed(self.statements) if s.name in names), None)

    def first_of(self, *names: str) -> Statement | None:
        """The first statement of these names."""
        return next(self.all(*names), None)

    def by_speaker(self, *names: str) -> dict[str, Statement]:
        """The last statement of these names by each speaker; a prefix that names nobody is one speaker."""
        return {s.speaker: s for s in self.all(*names)}
