"""Static defaults of LlmArgs by version: who set a field, never what it was resolved to (``knowledge/defaults.toml``).

They are read off sources, not off a running engine: BuildConfig, a model's own defaults and the worker come after them.
A value of a capture therefore never is a static default; one only tells its origin, and says so in its evidence.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from pydantic import JsonValue

from engdiff.knowledge.versions import holds, is_version

LABEL = "static-defaults"
"""How evidence names what rests on these tables."""


@dataclass(frozen=True)
class Default:
    """The default of one field. ``starter``: no code of the engine writes the field after the start."""

    value: JsonValue
    starter: bool
    source: str


def at(version: str | None) -> Mapping[str, Default]:
    """Native path to default at a version; empty for versions that nobody read, and for what is no version."""
    return _at(version) if version is not None and is_version(version) else {}


@cache
def _at(version: str) -> Mapping[str, Default]:
    table = tomllib.loads((files(__package__) / "knowledge" / "defaults.toml").read_text(encoding="utf-8"))
    if not holds(version, table["read_since"], table["read_until"]):
        return {}
    return {
        row["path"]: Default(row.get("value"), row.get("starter", False), row["source"])
        for row in table["default"]
        if holds(version, row.get("since"), row.get("until"))
    }
