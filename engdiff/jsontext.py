"""JSON from somebody else: what could not be held, walked through or written again is refused, with the reason."""

from __future__ import annotations

import json
import math
import re

from pydantic import JsonValue

MAX_DEPTH = 100
"""No engine nests its state deeper; what is nested deeper breaks the recursion of whoever walks through it."""

MAX_DIGITS = 40
"""Of a whole number. Counters and seeds have 64 bits; a number of thousands of digits takes quadratic time."""

_ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?P<half>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)


class NotJson(ValueError):
    """The text is no JSON, or none that is safe to hold; ``str(error)`` says why."""


def read_json(text: str) -> JsonValue:
    """The text as JSON; half a character (a lone surrogate), which nothing can write, becomes U+FFFD.

    Raises NotJson, and nothing else, for what is no JSON, NaN and infinity, and what is nested or long without end.
    """
    if "\\ud" in text or "\\uD" in text:
        text = _ESCAPE.sub(lambda m: r"\ufffd" if m["half"] else m[0], text)
    try:
        found: JsonValue = json.loads(text, parse_int=_whole, parse_float=_real, parse_constant=_real)
    except json.JSONDecodeError as error:
        raise NotJson(f"not JSON (line {error.lineno}, column {error.colno})") from None
    except RecursionError:
        raise NotJson("nested too deeply") from None
    _check_depth(found)
    return found


def parse_json(text: str) -> JsonValue:
    """As :func:`read_json`, with ``None`` for what it refuses: for readers who take what is there. Never raises."""
    try:
        return read_json(text)
    except NotJson:
        return None


def _whole(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise NotJson(f"a number of {len(digits):,} digits")
    return int(digits)


def _real(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise NotJson(f"a number that is none: {digits[:20]}")
    return value


def _check_depth(value: JsonValue) -> None:
    """Level by level, since recursion is what breaks. Raises NotJson."""
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [inner for outer in level if isinstance(outer, dict | list) for inner in _inside(outer)]
        if not level:
            return
    raise NotJson("nested too deeply")


def _inside(outer: dict[str, JsonValue] | list[JsonValue]) -> list[JsonValue]:
    return outer if isinstance(outer, list) else list(outer.values())
