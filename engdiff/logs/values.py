"""From the text of a statement to a value: its number, the bounds of its rounding, and the line that it stands in."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation

from pydantic import JsonValue

from engdiff.logs.statements import Line, Statement
from engdiff.schema.values import Basis, Evidence, Known
from engdiff.units import GIB, MIB

UNITS = {"gib": GIB, "mib": MIB, "gb": 10**9, "mb": 10**6, "kib": 1024, "bytes": 1}
"""By the ending of a group's name. Where an engine writes GB and means GiB, its pattern says ``_gib``."""


def evidence(text: str, line: Line, *, source: str = "log") -> Evidence:
    """The citation of a line of a log."""
    return Evidence(source=source, where=text, line=line.number, file=line.file)  # type: ignore[arg-type]


def amount(statement: Statement, group: str, *, basis: Basis = "measured") -> Known | None:
    """A printed size in bytes, or a printed number, with the bounds of its rounding; ``None``: not said or no number.

    The unit is the ending of the group's name (:data:`UNITS`); a group without one is a plain number. A whole number
    without a unit is exact and has no bounds.
    """
    printed = statement.get(group)
    found = decimal(printed) if printed is not None else None
    if found is None:
        return None
    unit = UNITS.get(group.rsplit("_", 1)[-1], 1)
    exponent = found.as_tuple().exponent
    assert isinstance(exponent, int), "decimal() gives finite numbers only"
    half = Decimal(1).scaleb(exponent) / 2 * unit
    where, line = statement.cited(group)
    value: JsonValue = int((found * unit).to_integral_value()) if unit > 1 or exponent >= 0 else float(found)
    rounded = unit > 1 or exponent < 0
    return Known(
        value=value,
        low=float(found * unit - half) if rounded else None,
        high=float(found * unit + half) if rounded else None,
        basis=basis,
        evidence=evidence(where, line),
    )


def word(statement: Statement, group: str, *, basis: Basis = "exact") -> Known | None:
    """A printed word as it stands."""
    printed = statement.get(group)
    if printed is None:
        return None
    where, line = statement.cited(group)
    return Known(value=printed.strip(), basis=basis, evidence=evidence(where, line))


def decimal(text: str) -> Decimal | None:
    """A printed number: thousands separators are taken out; ``None`` when it is none or has no end."""
    try:
        found = Decimal(text.replace(",", "").replace("_", "").strip())
    except InvalidOperation:
        return None
    return found if found.is_finite() and abs(found.adjusted()) < 40 else None
