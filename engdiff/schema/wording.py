"""Values in words: units, ratios, and lists that do not fill the screen."""

from __future__ import annotations

from pydantic import JsonValue

from engdiff.schema.values import Known, Unknown, number
from engdiff.units import format_bytes, format_count, format_ratio

LONGEST_LIST = 6
LONGEST_TEXT = 60


def show(value: Known | Unknown | None, unit: str = "") -> str:
    """A value as a person reads it; ``unknown`` when it is."""
    if value is None:
        return "not there"
    if isinstance(value, Unknown):
        return "unknown"
    return show_plain(value.value, unit)


def show_plain(value: JsonValue, unit: str = "") -> str:
    """A bare value with its unit."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, int | float):
        return _number(value, unit)
    if isinstance(value, list):
        return show_list(value, unit)
    if isinstance(value, dict):
        inner = ", ".join(f"{k}: {show_plain(v)}" for k, v in list(value.items())[:LONGEST_LIST])
        return "{" + inner + (", …" if len(value) > LONGEST_LIST else "") + "}"
    text = str(value)
    if not text:
        return "empty"
    return text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 1] + "…"


def _number(value: float, unit: str) -> str:
    if unit == "bytes":
        return format_bytes(value)
    grouped = isinstance(value, int) or 1000 <= abs(value) < 1e15
    text = format_count(round(value)) if grouped else f"{value:g}"
    return f"{text} {_one(unit) if value == 1 else unit}" if unit and unit != "fraction" else text


def _one(unit: str) -> str:
    """``token`` for ``tokens``, ``process`` for ``processes``."""
    return unit[:-2] if unit.endswith("sses") else unit.removesuffix("s")


def show_list(items: list[JsonValue], unit: str = "") -> str:
    """A list: whole when short, else its size and ends."""
    if not items:
        return "no entries"
    if len(items) <= LONGEST_LIST:
        return ", ".join(show_plain(i) for i in items)
    return f"{len(items)} from {show_plain(items[0])} to {show_plain(items[-1], unit)}"


def ratio(old: Known | Unknown | None, new: Known | Unknown | None) -> str:
    """How two numbers relate; empty for anything else."""
    left, right = number(old), number(new)
    return format_ratio(left, right) if left and right and left > 0 and right > 0 else ""
