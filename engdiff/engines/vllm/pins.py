"""Which flag or variable restores an old value, checked against the flags that the new version really has."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any

from engdiff.engines.contract import Pin, PinStyle
from engdiff.engines.layers import MISSING, lookup
from engdiff.engines.vllm.normalize import KNOWLEDGE
from engdiff.knowledge.tables import Names
from engdiff.schema.capture import Capture
from engdiff.schema.values import plain

GENERIC = ("config.",)


def pin(key: str, old: Capture, new: Capture, style: PinStyle) -> Pin | None:
    """What restores ``old``'s value of a canonical key, or of a native leaf, on ``new``'s version."""
    version = str(plain(new.identity.version))
    names = KNOWLEDGE.names(version).get(key)
    if names is None:
        return _leaf_pin(key, old, new) if style == "flags" else None
    setting = old.settings.get(key)
    value = plain(setting.final) if setting else None
    if value is None:
        return None
    if style == "env" or (names.flag is None and not _is_words(names.pin)):
        return _variable_pin(names, value)
    return _flag_pin(names, value, new)


def _is_words(syntax: str | Mapping[str, str] | None) -> bool:
    text = syntax if isinstance(syntax, str) else (syntax or {}).get("true", "")
    return text.startswith("-")


def _variable_pin(names: Names, value: Any) -> Pin | None:
    if names.variable is None:
        return None
    return Pin(style="env", variable=(names.variable, _text(value)))


def _flag_pin(names: Names, value: Any, new: Capture) -> Pin | None:
    """By the table's syntax where it has one, else by what the new version's own parser says of the flag."""
    if isinstance(names.pin, Mapping):
        written = names.pin.get("true" if value is True else "false")
        return _written(written, value) if written and isinstance(value, bool) else None
    if names.pin is not None:
        return _written(names.pin, value)
    return _by_parser(names.arg, value, new) if names.arg else None


def _written(syntax: str, value: Any) -> Pin | None:
    """The syntax with the value in it; it is split first, so that a space or a quote in the value stays in its word."""
    if not syntax.startswith("-"):
        name, equals, text = syntax.partition("=")
        return Pin(style="env", variable=(name, text.format(value=_text(value)))) if equals else None
    words: list[str] = []
    for word in shlex.split(syntax):
        several = word == "{value}" and isinstance(value, list)
        words += map(_text, value) if several else [word.format(value=_nested(value))]
    return Pin(style="flags", words=tuple(words))


def _by_parser(dest: str, value: Any, new: Capture) -> Pin | None:
    """Words for a flag of the new version's own parser; ``None`` when it has no such flag or takes no such value."""
    flag = lookup(new.native.get("flags"), dest)
    if not isinstance(flag, dict):
        return None
    names = [n for n in flag["names"] if n.startswith("--")]
    if not names:
        return None
    if isinstance(value, bool):
        return _switch(names, value, flag["takes"])
    if isinstance(value, list):
        return Pin(style="flags", words=(names[0], *map(_text, value))) if flag["takes"] == "list" and value else None
    if isinstance(value, dict):
        return Pin(style="flags", words=(names[0], json.dumps(value)))
    choices = flag.get("choices")
    if isinstance(choices, list) and choices and _text(value) not in choices:
        return None
    return Pin(style="flags", words=(names[0], _text(value)))


def _switch(names: list[str], value: bool, takes: str) -> Pin | None:
    positive = next((n for n in names if not n.startswith("--no-")), None)
    negative = next((n for n in names if n.startswith("--no-")), None)
    if takes == "flag" and not value:
        return None
    word = positive if value else negative
    return Pin(style="flags", words=(word,)) if word else None


def _leaf_pin(path: str, old: Capture, new: Capture) -> Pin | None:
    """A leaf without a canonical key: a flag whose destination is the leaf's name, or a variable."""
    if path.startswith("variables."):
        name = path.removeprefix("variables.")
        value = lookup(old.native.get("variables"), name)
        return None if value in (MISSING, None) else Pin(style="env", variable=(name, _text(value)))
    if not path.startswith(GENERIC):
        return None
    value = lookup(old.native, path)
    if value in (MISSING, None) or isinstance(value, dict):
        return None
    return _by_parser(path.rsplit(".", 1)[-1], value, new)


def _nested(value: Any) -> str:
    """A value inside a dotted or JSON flag: booleans as true and false."""
    return json.dumps(value) if isinstance(value, list | dict | bool) else _text(value)


def _text(value: Any) -> str:
    """As typed on a command line or in a variable: booleans as 1 and 0."""
    if isinstance(value, bool):
        return "1" if value else "0"
    return str(value)
