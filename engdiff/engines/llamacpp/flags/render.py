"""A field's value back as words of a command line, or as a variable."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Final

from engdiff.engines.llamacpp.flags.table import FALSE_WORDS, TRUE_WORDS, Flag, JsonValue
from engdiff.engines.llamacpp.flags.values import PARSERS, choice


def render(flag: Flag, value: JsonValue) -> list[str]:
    """Command-line words that make llama-server set the field to ``value``; none if no word can."""
    if flag.type == "switch":
        return [flag.names[0]] if value == flag.on else []
    if flag.type == "bool":
        return _bool_words(flag, value)
    text = _render_text(flag, value)
    return [] if text is None else [flag.names[0], text]


def render_env(flag: Flag, value: JsonValue) -> tuple[str, str] | None:
    """The variable and its text that make llama-server set the field to ``value``; ``None`` if none can."""
    if not isinstance(flag.env, str):
        return None
    if flag.type == "switch":
        return (flag.env, "1") if value == flag.on else None
    text = _render_text(flag, value)
    return None if text is None else (flag.env, text)


def _bool_words(flag: Flag, value: JsonValue) -> list[str]:
    """The long spelling for yes or no; none if the flag has no such spelling."""
    for positive, spelled in ((True, flag.names), (False, flag.negative)):
        if spelled and _same(choice(flag, positive=positive), value):
            return [next((n for n in spelled if n.startswith("--")), spelled[0])]
    return []


def _same(one: JsonValue, other: JsonValue) -> bool:
    """Equal, and of one type: ``1`` is not ``True``."""
    return one == other and type(one) is type(other)


def _render_text(flag: Flag, value: JsonValue) -> str | None:
    """The word that is read back as ``value``: tried, so that what cannot be written is never offered."""
    try:
        text = _RENDERERS.get(flag.type, _plain)(flag, value)
        return text if text is not None and PARSERS[flag.type](flag, text) == value else None
    except (TypeError, ValueError, OSError, IndexError):
        return None


def _plain(flag: Flag, value: JsonValue) -> str | None:
    word = _word(flag, value)
    if word is not None:
        return word
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return None
    return str(value // flag.factor if isinstance(value, int) else value)


def _word(flag: Flag, value: JsonValue) -> str | None:
    """The first word of the flag's list that stands for ``value``."""
    return next((word for word, means in (flag.values or {}).items() if _same(means, value)), None)


def _on_off(flag: Flag, value: JsonValue) -> str | None:
    """``on`` or ``off``, whichever sets the field to ``value``."""
    words = ((True, TRUE_WORDS[0]), (False, FALSE_WORDS[0]))
    return next((word for yes, word in words if _same(choice(flag, positive=yes), value)), None)


def _unreciprocal(_flag: Flag, value: JsonValue) -> str | None:
    return repr(1 / value) if isinstance(value, (int, float)) and not isinstance(value, bool) and value else None


def _join(flag: Flag, value: JsonValue) -> str | None:
    if not isinstance(value, list):
        return None
    if flag.type == "enums":
        return flag.separator.join(str(_word(flag, v)) for v in value[len(flag.prefix) :])
    return (flag.separator or "\0").join(str(v) for v in value)


def _join_numbers(flag: Flag, value: JsonValue) -> str | None:
    if not isinstance(value, list):
        return None
    numbers = [v for v in value if isinstance(v, (int, float))]
    if flag.broadcast and len(set(numbers)) == 1:
        numbers = numbers[:1]
    while len(numbers) > 1 and flag.length and numbers[-1] == flag.fill * flag.factor:
        numbers.pop()
    return ",".join(str(v // flag.factor if flag.whole else float(v)) for v in numbers)


def _join_map(_flag: Flag, value: JsonValue) -> str | None:
    return json.dumps({k: json.loads(str(v)) for k, v in value.items()}) if isinstance(value, dict) else None


def _join_adapters(flag: Flag, value: JsonValue) -> str | None:
    if not isinstance(value, list):
        return None
    parts = [f"{a['path']}:{a['scale']}" if flag.scaled else str(a["path"]) for a in value if isinstance(a, dict)]
    return flag.separator.join(parts)


_RENDERERS: Final[Mapping[str, Callable[[Flag, JsonValue], str | None]]] = {
    "bool": _on_off,
    "onoff": _on_off,
    "enum": _word,
    "enums": _join,
    "list": _join,
    "numbers": _join_numbers,
    "reciprocal": _unreciprocal,
    "file": lambda _flag, _value: None,
    "map": _join_map,
    "lora": _join_adapters,
}
