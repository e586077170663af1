"""The text of one value as JSON, by the kind of its flag. A flag whose value is a file's text is read here."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from engdiff.engines.llamacpp.flags.table import (
    FALSE_WORDS,
    INT32,
    INTEGER,
    TRUE_WORDS,
    Flag,
    FlagError,
    JsonValue,
)


def choice(flag: Flag, *, positive: bool) -> JsonValue:
    """What a flag with two spellings sets for yes and for no."""
    if flag.values is not None:
        return flag.values["yes" if positive else "no"]
    return positive is not flag.inverted


def parse_value(flag: Flag, text: str, spelled: str) -> JsonValue:
    """The value of one word. Raises :class:`FlagError`."""
    try:
        return PARSERS[flag.type](flag, text)
    except OSError as error:
        raise FlagError(spelled, f"{text} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise FlagError(spelled, str(error)) from None


def _truth(flag: Flag, text: str) -> JsonValue:
    if text in TRUE_WORDS + FALSE_WORDS:
        return choice(flag, positive=text in TRUE_WORDS)
    raise ValueError(f"`{text}` is neither of {', '.join(TRUE_WORDS)} nor of {', '.join(FALSE_WORDS)}")


def _integer(flag: Flag, text: str) -> JsonValue:
    if flag.values and text in flag.values:
        return flag.values[text]
    if not INTEGER.fullmatch(text):
        also = f", nor one of {', '.join(flag.values)}" if flag.values else ""
        raise ValueError(f"`{text}` is not an integer{also}")
    value = int(text)
    low, high = (-1, 2**32 - 1) if flag.unsigned else INT32
    if not low <= value <= high:
        raise ValueError(f"{value} is out of range ({low} to {high})")
    _bounded(flag, value)
    return value % 2**32 if flag.unsigned else value * flag.factor


def _bounded(flag: Flag, value: float) -> None:
    if flag.minimum is not None and value < flag.minimum:
        raise ValueError(f"{value:g} is below {flag.minimum:g}, the least that is taken here")
    if flag.maximum is not None and value > flag.maximum:
        raise ValueError(f"{value:g} is above {flag.maximum:g}, the most that is taken")
    if value in flag.refuse:
        raise ValueError(f"{value:g} is not taken")


def _real(flag: Flag, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise ValueError(f"`{text}` is not a number") from None
    if not math.isfinite(value):
        raise ValueError(f"`{text}` is not a finite number")
    _bounded(flag, value)
    return value if flag.floor is None else max(flag.floor, value)


def _reciprocal(flag: Flag, text: str) -> JsonValue:
    value = _real(flag, text)
    if not value or not math.isfinite(1 / value):
        raise ValueError(f"{text} has no reciprocal")
    return 1 / value


def _text(flag: Flag, text: str) -> JsonValue:
    return f"{text.rstrip('/')}/" if flag.directory and text else text


def _member(flag: Flag, text: str) -> JsonValue:
    words = flag.values or {}
    if text not in words:
        raise ValueError(f"`{text}` is not one of {', '.join(word or '(empty)' for word in words)}")
    return words[text]


def _members(flag: Flag, text: str) -> JsonValue:
    return [*flag.prefix, *(_member(flag, word) for word in text.split(flag.separator))]


def _split(flag: Flag, text: str) -> JsonValue:
    if not flag.separator:
        return [text]
    found: list[JsonValue] = [word for part in text.split(flag.separator) if (word := part.strip())]
    if not found:
        raise ValueError("at least one value is needed")
    return found


def _numbers(flag: Flag, text: str) -> JsonValue:
    given = [_real(flag, word) for word in re.split(r"[,/]+", text)]
    if flag.whole and any(value != int(value) for value in given):
        raise ValueError(f"`{text}` holds a number that is not whole")
    if flag.most is not None and len(given) > flag.most:
        raise ValueError(f"{len(given)} numbers are more than the {flag.most} that are taken")
    rest = given[0] if flag.broadcast and len(given) == 1 else flag.fill
    padded = given + [rest] * ((flag.length or 0) - len(given))
    return [int(value) * flag.factor for value in padded] if flag.whole else [float(value) for value in padded]


def _file_text(_flag: Flag, text: str) -> JsonValue:
    return Path(text).read_text(encoding="utf-8")


def _file_lines(_flag: Flag, text: str) -> JsonValue:
    lines = Path(text).read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def _mapping(_flag: Flag, text: str) -> JsonValue:
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error}") from None
    if not isinstance(data, dict):
        raise ValueError("a JSON object is needed")  # noqa: TRY004 - what the user wrote is wrong, not a type of ours
    return {key: json.dumps(value) for key, value in data.items()}


def _adapters(flag: Flag, text: str) -> JsonValue:
    """Adapters as ``{path, scale}``; with a scale where the flag takes one (``path:scale``)."""
    return [_adapter(part, scaled=flag.scaled) for part in text.split(flag.separator)]


def _adapter(part: str, *, scaled: bool) -> dict[str, JsonValue]:
    path, _, scale = part.rpartition(":") if scaled else (part, "", "1")
    if not path:
        raise ValueError(f"`{part}` is not PATH:SCALE" if scaled else "a path is needed")
    try:
        return {"path": path, "scale": float(scale)}
    except ValueError:
        raise ValueError(f"`{scale}` is not a number") from None


PARSERS: Final[Mapping[str, Callable[[Flag, str], JsonValue]]] = {
    "bool": _truth,
    "onoff": _truth,
    "int": _integer,
    "float": _real,
    "reciprocal": _reciprocal,
    "str": _text,
    "joined": _text,
    "enum": _member,
    "enums": _members,
    "list": _split,
    "numbers": _numbers,
    "file": lambda flag, text: _file_lines(flag, text) if flag.append else _file_text(flag, text),
    "map": _mapping,
    "lora": _adapters,
}
