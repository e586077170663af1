"""A value is known, with its evidence, or unknown, with the reason. There is no third case."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

Basis = Literal["exact", "engine rule", "measured", "fitted"]
"""exact: read from the engine as data. engine rule: computed as the engine computes it.
measured: observed while it ran. fitted: from other measurements."""

Source = Literal["probe", "simulation", "endpoint", "log", "command", "metadata", "machine", "rule"]


REPEAT_RELATIVE = 0.02
"""How much a measured number may differ between two launches of the same thing and still say the same, unless its
own bounds say otherwise."""


class Frozen(BaseModel):
    """Base of every part of a document: immutable, and strict about unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Evidence(Frozen):
    """Where a value was read: ``where`` is a dotted native path, an endpoint or a log line's text."""

    source: Source
    where: str
    line: int | None = None
    file: str | None = None


class Known(Frozen):
    """A value that was read or computed. ``low`` and ``high`` bound it when the engine rounds what it prints."""

    value: JsonValue
    low: float | None = None
    high: float | None = None
    basis: Basis = "exact"
    evidence: Evidence | None = None


class Unknown(Frozen):
    """A value that could not be had, and why."""

    because: str


Value = Annotated[Known | Unknown, Field(union_mode="left_to_right")]


def plain(value: Known | Unknown | None) -> JsonValue:
    """The bare value; ``None`` when unknown or absent."""
    return value.value if isinstance(value, Known) else None


def number(value: Known | Unknown | None) -> float | None:
    """The bare value when it is a number (booleans are not); ``None`` otherwise."""
    bare = plain(value)
    return bare if isinstance(bare, int | float) and not isinstance(bare, bool) else None
