"""llama-server's flags as data: the table of ``knowledge/flags.toml``, looked up by word, field and version."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any, Final, Literal, TypeAlias

from engdiff.knowledge.versions import at_version, holds

JsonValue: TypeAlias = "dict[str, JsonValue] | list[JsonValue] | str | int | float | bool | None"

Kind = Literal[
    "switch", "bool", "onoff", "int", "float", "reciprocal", "str", "enum", "enums",
    "list", "joined", "numbers", "file", "map", "lora",
]  # fmt: skip

TRUE_WORDS: Final = ("on", "enabled", "true", "1")
FALSE_WORDS: Final = ("off", "disabled", "false", "0")
SAMPLING_MARKS: Final = "sampling.user_sampling_config"
WITHOUT_WORD: Final = ("switch", "bool")
TUPLES: Final = ("names", "negative", "prefix", "refuse")
INTEGER: Final = re.compile(r"\s*[+-]?\d+")
INT32: Final = (-(2**31), 2**31 - 1)


class FlagError(ValueError):
    """A word that cannot be translated: ``argument`` as the user wrote it, ``reason``, and the closest known flag."""

    def __init__(self, argument: str, reason: str, suggestion: str | None = None) -> None:
        super().__init__(f"{argument}: {reason}" + (f" (did you mean {suggestion}?)" if suggestion else ""))
        self.argument = argument
        self.reason = reason
        self.suggestion = suggestion


@dataclass(frozen=True)
class Also:
    """Another field that a flag sets: to ``value`` (``None``: to the flag's own), only ``when`` that is the flag's."""

    path: str
    key: str | None = None
    value: JsonValue = None
    when: JsonValue = None
    since: str | None = None
    until: str | None = None

    def applies(self, value: JsonValue, version: str) -> bool:
        """Whether it is set too, for this value of the flag at this version."""
        return (self.when is None or self.when == value) and holds(version, self.since, self.until)


@dataclass(frozen=True)
class Flag:
    """One flag of llama-server over a range of versions; ``at`` narrows it to what one version has."""

    names: tuple[str, ...]
    type: Kind
    negative: tuple[str, ...] = ()
    env: Any = None
    field: Any = None
    values: Mapping[str, JsonValue] | None = None
    also: tuple[Also, ...] = ()
    at_least: Mapping[str, int] | None = None
    on: JsonValue = True
    inverted: bool = False
    key: str | None = None
    omit: str | None = None
    minimum: float | None = None
    maximum: float | None = None
    floor: float | None = None
    refuse: tuple[int, ...] = ()
    unsigned: bool = False
    whole: bool = True
    factor: int = 1
    length: int | None = None
    most: int | None = None
    fill: float = 0
    broadcast: bool = False
    separator: str = ","
    prefix: tuple[str, ...] = ()
    append: bool = False
    scaled: bool = False
    directory: bool = False
    mark: int | None = None
    inverse: bool = True
    unsupported: str | None = None
    renamed: Mapping[str, Mapping[str, str]] | None = None
    since: str | None = None
    until: str | None = None

    def at(self, version: str) -> Flag | None:
        """This flag as ``version`` has it: one field, one variable, its spellings; ``None`` if it has none."""
        if not holds(version, self.since, self.until):
            return None
        names = self._spellings(self.names, version)
        if not names:
            return None
        return replace(
            self,
            names=names,
            negative=self._spellings(self.negative, version),
            env=at_version(self.env, version, "name"),
            field=at_version(self.field, version, "path"),
            also=tuple(a for a in self.also if holds(version, a.since, a.until)),
        )

    def _spellings(self, spelled: tuple[str, ...], version: str) -> tuple[str, ...]:
        ranges = {name: (own.get("since"), own.get("until")) for name, own in (self.renamed or {}).items()}
        return tuple(n for n in spelled if holds(version, *ranges.get(n, (None, None))))

    @property
    def takes_word(self) -> bool:
        """Whether a value follows the flag. Unsupported ones never get as far as reading one."""
        return self.type not in WITHOUT_WORD


@cache
def _table(name: str) -> dict[str, Any]:
    resource = files("engdiff.engines.llamacpp") / "knowledge" / name
    return tomllib.loads(resource.read_text(encoding="utf-8"))


@cache
def load_flags() -> tuple[Flag, ...]:
    """All flags of all versions, in the order of the file."""
    return tuple(_flag(row) for row in _table("flags.toml")["flag"])


def _flag(row: Mapping[str, Any]) -> Flag:
    """A row of the table as a flag: TOML arrays become tuples."""
    fixed: dict[str, Any] = {k: tuple(v) if k in TUPLES else v for k, v in row.items()}
    fixed["also"] = tuple(Also(**a) for a in row.get("also", ()))
    fixed.setdefault("type", "str")
    return Flag(**fixed)


@cache
def flags_at(version: str) -> tuple[Flag, ...]:
    """The flags that one version has."""
    return tuple(narrowed for flag in load_flags() if (narrowed := flag.at(version)))


@cache
def by_word(version: str) -> dict[str, tuple[Flag, bool]]:
    """Each spelling of one version to its flag, and whether it is the positive one."""
    words = {name: (flag, True) for flag in flags_at(version) for name in flag.names}
    return words | {name: (flag, False) for flag in flags_at(version) for name in flag.negative}


def server_defaults(version: str) -> dict[str, JsonValue]:
    """Fields where llama-server starts from another value than ``CommonParams`` does, at one version."""
    rows = _table("server_defaults.toml")["default"]
    return {row["field"]: row["value"] for row in rows if holds(version, row.get("since"), row.get("until"))}


def flag_for(field: str, version: str) -> Flag | None:
    """The flag of this version that sets a field, narrowed to the version; ``None`` if there is none."""
    wanted = (
        f for f in flags_at(version) if f.field == field and f.inverse and f.key is None and f.unsupported is None
    )
    return next(wanted, None)
