"""Options of a server's command line, taken out of it."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

_PYTHON = re.compile(r"^(?:python|pypy)(?:\d+(?:\.\d+)*)?$")


@dataclass(frozen=True)
class Grammar:
    """What must be known to tell a model from the value of an option.

    ``flags`` are beginnings of options that take no value; ``lists`` are options that take several.
    """

    flags: tuple[str, ...] = ()
    lists: tuple[str, ...] = ()


def base(word: str) -> str:
    """A program's name without its folder."""
    return word.rpartition("/")[2]


def module(words: Sequence[str]) -> tuple[str, tuple[str, ...]] | None:
    """``python -m MODULE …`` as the module and the words after it."""
    if len(words) >= 3 and _PYTHON.match(base(words[0])) and words[1] == "-m":
        return words[2], tuple(words[3:])
    return None


def take(
    words: Sequence[str], names: Collection[str], *, underscores: bool = False
) -> tuple[str | None, tuple[str, ...]]:
    """The value of an option (of its last occurrence, as servers do) and the words without it."""
    value: str | None = None
    rest: list[str] = []
    at = 0
    while at < len(words):
        name, equals, after = words[at].partition("=")
        plain = name.replace("_", "-") if underscores else name
        if plain not in names or (equals and not name.startswith("--")):
            rest.append(words[at])
        elif equals:
            value = after
        elif at + 1 < len(words):
            at += 1
            value = words[at]
        else:
            rest.append(words[at])
        at += 1
    return value, tuple(rest)


def take_positional(words: Sequence[str], grammar: Grammar) -> tuple[str | None, tuple[str, ...]]:
    """The one word that belongs to no option and the words without it; ``None`` where that is not certain."""
    if words and not words[0].startswith("-"):
        return words[0], tuple(words[1:])
    found: list[int] = []
    taker = ""
    for at, word in enumerate(words):
        if word.startswith("-"):
            taker = "" if "=" in word or word.startswith(grammar.flags or ("\0",)) else word
        elif taker in grammar.lists:
            continue
        elif taker:
            taker = ""
        elif word.lower() not in ("true", "false"):
            found.append(at)
    if len(found) != 1:
        return None, tuple(words)
    return words[found[0]], (*words[: found[0]], *words[found[0] + 1 :])
