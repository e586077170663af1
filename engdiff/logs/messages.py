"""From blocks to messages: the lines worth looking at, each with the lines that may continue it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import IO

from engdiff.logs.blocks import blocks
from engdiff.logs.matcher import Finder, lines_with
from engdiff.logs.statements import Line
from engdiff.logs.unwrap import PARTIAL, clean, unwrap

FOLLOWING = 3
"""How many lines after one are kept in case they continue it."""

MOST_LOOKED_AT = 5000
"""How many lines are looked at for the last ones of one stream among many."""

MOST_PARTS = 64
"""A container runtime's parts of one line: a MiB."""

FIRST_RUN_LINES = 500
MOST_RUN_LINES = 16
"""Run-time lines that are read: the first ones of a log all, then so many of each block, a sample. A busy server writes
little else."""

LONGEST_TEXT = 1 << 18


@dataclass
class Message:
    """One line that holds an anchor, cleaned, and those after it; ``following`` are not cleaned of an engine's prefix.

    ``glued``: the following lines are rows of the same line (a terminal or a runtime cut it), to be joined as they
    are; otherwise they may continue it, word by word. They are cleaned only when somebody asks for them.
    """

    line: Line
    rows: Callable[[], tuple[Line, ...]]
    glued: bool = False

    @cached_property
    def following(self) -> tuple[Line, ...]:
        """The lines after it."""
        return self.rows()


class Scan:
    """One pass over one log. ``lines`` grows as it goes; ``run_lines_in_part``: of some only a sample was read."""

    def __init__(self, stream: IO[bytes], file: str | None, find: Finder, find_boot: Finder) -> None:
        self._stream, self._file, self._find, self._find_boot = stream, file, find, find_boot
        self._recent: deque[tuple[int, bytes]] = deque(maxlen=2)
        self.lines = 0
        self.run_lines_in_part = False
        self.notes: list[str] = []
        self.run_lines_left = 0
        self._first_left = FIRST_RUN_LINES

    def messages(self) -> Iterator[Message]:
        """Every message with an anchor, in order. A consumer that was told a run-time line calls :meth:`was_run`."""
        columns: int | None = None
        for block in blocks(self._stream, self.notes.append):
            self._recent.append((self.lines + 1, block))
            columns = wrapped_at(block) if self.lines == 0 else columns
            yield from self._glued(block, columns) if columns else self._in_block(block)
            self.lines += block.count(b"\n") + (not block.endswith(b"\n"))

    def was_run(self) -> None:
        """The last message was a run-time line: of those, only so many are read in each block."""
        self.run_lines_left -= 1
        self._first_left -= 1

    def _in_block(self, block: bytes) -> Iterator[Message]:
        self.run_lines_left = max(MOST_RUN_LINES, self._first_left)
        number, counted, resume = self.lines + 1, 0, len(block)
        for start, end in lines_with(block, self._find):
            number += block.count(b"\n", counted, start)
            counted = start
            yield from self._messages(block, start, end, number)
            if self.run_lines_left <= 0 and end < len(block) - 1:
                self.run_lines_in_part, resume = True, end + 1
                break
        for start, end in lines_with(block, self._find_boot, resume):
            number += block.count(b"\n", counted, start)
            counted = start
            yield from self._messages(block, start, end, number)

    def _messages(self, block: bytes, start: int, end: int, number: int) -> Iterator[Message]:
        """The message of a line; of one that a progress bar wrote over again and again, each state that tells."""
        if block.find(b"\r", start, end - 1) >= 0:
            states = [part for part in block[start:end].split(b"\r") if self._find(part, 0) >= 0]
            for state in states[:-1]:
                yield Message(self._line(state, number), tuple)
            if states:
                yield Message(self._line(states[-1], number), partial(self._following, block, end, number))
            return
        parts = self._parts(block, start, end, number)
        first = self._line(block[start:end], number, goes_on=bool(parts))
        rows = (lambda: parts) if parts else partial(self._following, block, end, number)
        yield Message(first, rows, glued=bool(parts))

    def _parts(self, block: bytes, start: int, end: int, number: int) -> tuple[Line, ...]:
        """The other parts of a line that a container runtime split, up to the one that is marked as the last."""
        rows: list[Line] = []
        while _is_part(block, start) and len(rows) < MOST_PARTS:
            start = end + 1
            end = block.find(b"\n", start)
            end = len(block) if end < 0 else end
            if start >= end:
                break
            rows.append(self._line(block[start:end], number + len(rows) + 1, goes_on=True))
        return tuple(rows)

    def _following(self, block: bytes, end: int, number: int) -> tuple[Line, ...]:
        rows = []
        for offset in range(1, FOLLOWING + 1):
            if end >= len(block) - 1:
                break
            stop = block.find(b"\n", end + 1)
            stop = len(block) if stop < 0 else stop
            rows.append(self._line(block[end + 1 : stop], number + offset))
            end = stop
        return tuple(rows)

    def _line(self, raw: bytes, number: int, *, goes_on: bool = False) -> Line:
        text, source = unwrap(raw[:LONGEST_TEXT].decode("utf-8", errors="replace"), goes_on=goes_on)
        return Line(number, text, source, self._file)

    def _glued(self, block: bytes, columns: int) -> Iterator[Message]:
        """Every line of a log whose long lines were cut into rows of so many columns."""
        self.run_lines_left = MOST_RUN_LINES
        rows: list[Line] = []
        full = False
        for offset, raw in enumerate(block.split(b"\n")):
            text = raw.decode("utf-8", errors="replace").rstrip("\r")
            if full and rows:
                rows.append(Line(self.lines + 1 + offset, clean(text), rows[0].source, self._file))
            else:
                if rows:
                    yield Message(rows[0], partial(tuple, rows[1:]), glued=True)
                rows = [self._line(raw, self.lines + 1 + offset)]
            full = len(text) == columns
        if rows:
            yield Message(rows[0], partial(tuple, rows[1:]), glued=True)

    def before(self, number: int, source: str, most: int) -> list[Line]:
        """The last lines of a stream before a line, most recent last; what is more than two blocks back is gone."""
        found: list[Line] = []
        looked_at = 0
        for first, block in reversed(self._recent):
            rows = block.split(b"\n")[: max(0, number - first)]
            for offset in range(len(rows) - 1, -1, -1):
                if len(found) == most or looked_at == MOST_LOOKED_AT:
                    return found[::-1]
                if rows[offset].strip():
                    looked_at += 1
                    line = self._line(rows[offset], first + offset)
                    if line.source == source:
                        found.append(line)
        return found[::-1]


def _is_part(block: bytes, start: int) -> bool:
    """Whether a container runtime marked the line as one that goes on."""
    head = block[start : start + 64]
    return b" P " in head and PARTIAL.match(head.decode("utf-8", errors="replace")) is not None


FEWEST_FULL_ROWS = 4
NARROWEST_COLUMNS = 60


def wrapped_at(block: bytes) -> int | None:
    """The columns at which a terminal cut long lines into rows, when the block shows it.

    The longest length comes again and again, and what follows such a row begins like no other line.
    """
    rows = [raw.decode("utf-8", errors="replace").rstrip("\r") for raw in block[: 1 << 18].split(b"\n")]
    columns = max((len(row) for row in rows), default=0)
    full = [index for index, row in enumerate(rows[:-1]) if len(row) == columns]
    if columns < NARROWEST_COLUMNS or len(full) < FEWEST_FULL_ROWS:
        return None
    beginnings = {row[:5] for index, row in enumerate(rows) if index and len(rows[index - 1]) < columns}
    continued = sum(rows[index + 1][:5] not in beginnings for index in full)
    distinct = len({rows[index] for index in full})
    return columns if distinct >= FEWEST_FULL_ROWS and continued >= 0.8 * len(full) else None
