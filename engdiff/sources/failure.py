"""The numbers of an engine's last words, and what would have fitted."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from engdiff.engines.contract import Cause
from engdiff.logs.statements import Line
from engdiff.schema.values import Evidence, Known, Value, number
from engdiff.units import GIB, MIB, format_bytes


def lacking(numbers: Mapping[str, Value]) -> str | None:
    """How much more would have done, where the message says what was needed and what was there."""
    needed, available = number(numbers.get("needed_bytes")), number(numbers.get("available_bytes"))
    if needed is None or available is None or needed <= available:
        return None
    return f"with {format_bytes(needed - available)} more it would have fitted"


_UNITS = {"gib": GIB, "mib": MIB, "gb": 10**9, "mb": 10**6}


def numbers_of(cause: Cause, lines: Sequence[Line]) -> dict[str, Value]:
    """The numbers of the message in bytes or as they are, each citing its line."""
    found: dict[str, Value] = {}
    for name, printed in cause.numbers.items():
        stem, _, unit = name.rpartition("_")
        try:
            value = float(printed.replace(",", ""))
        except ValueError:
            continue
        line = _line_of(printed, cause, lines)
        evidence = Evidence(source="log", where=line.text if line else cause.line, line=line.number if line else None)
        size = _UNITS.get(unit)
        plain: float | int = round(value * size) if size else (int(value) if value.is_integer() else value)
        found[f"{stem}_bytes" if size else name] = Known(value=plain, basis="measured", evidence=evidence)
    return found


def _line_of(printed: str, cause: Cause, lines: Sequence[Line]) -> Line | None:
    """The line of the message, which may have several, in which a number stands."""
    mine = (one for one in reversed(lines) if one.text and (one.text in cause.line or cause.line in one.text))
    whole = re.compile(rf"(?<![\d.,]){re.escape(printed)}(?![.,]?\d)")
    return next((one for one in mine if whole.search(one.text)), None) if cause.line else None
