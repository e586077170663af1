"""An engine's last words, their numbers, and what would have fitted."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from engdiff.engines.contract import Cause
from engdiff.logs.statements import Line
from engdiff.logs.values import UNITS, decimal, evidence
from engdiff.process.tail import last_lines
from engdiff.redact import redact_text
from engdiff.schema.values import Known, Value, number
from engdiff.units import format_bytes

LAST_WORDS = 15


def last_words(log: Path) -> tuple[str, ...]:
    """The last lines of a log, without secrets."""
    return tuple(redact_text(line) for line in last_lines(log, LAST_WORDS))


def lacking(numbers: Mapping[str, Value]) -> str | None:
    """How much more would have done, where the message says what was needed and what was there."""
    needed, available = number(numbers.get("needed_bytes")), number(numbers.get("available_bytes"))
    if needed is None or available is None or needed <= available:
        return None
    return f"with {format_bytes(needed - available)} more it would have fitted"


def numbers_of(cause: Cause, lines: Sequence[Line]) -> dict[str, Value]:
    """The numbers of the message in bytes or as they are, each citing its line; one that stands in none is left out."""
    found: dict[str, Value] = {}
    for name, printed in cause.numbers.items():
        amount, place = decimal(printed), _place(printed, cause, lines)
        if amount is None or place is None:
            continue
        stem, _, unit = name.rpartition("_")
        size, value = UNITS.get(unit), float(amount)
        plain: float | int = round(value * size) if size else (int(value) if value.is_integer() else value)
        found[f"{stem}_bytes" if size else name] = Known(value=plain, basis="measured", evidence=evidence(*place))
    return found


def _place(printed: str, cause: Cause, lines: Sequence[Line]) -> tuple[str, Line] | None:
    """The text to cite and its line: the one, of a message that may have several, in which the number stands whole.

    Of a message that was cut into rows inside the number, the whole text and its first row.
    """
    if not cause.line:
        return None
    whole = re.compile(rf"(?<![\d.,]){re.escape(printed)}(?![.,]?\d)")
    said = [one for one in reversed(lines) if one.text]
    mine = (one for one in said if one.text in cause.line or cause.line in one.text)
    if line := next((one for one in mine if whole.search(one.text)), None):
        return line.text, line
    first_row = next((one for one in said if cause.line.startswith(one.text)), None)
    return (cause.line, first_row) if first_row else None
