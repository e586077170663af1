"""Explanation: one setting or decision, what it means and costs, and how each engine spells and decides it."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from engdiff.schema.history import Span
from engdiff.schema.values import Frozen, Value

EXPLANATION_SCHEMA = 1


class Spelling(Frozen):
    """How an engine's users set it and where the engine keeps it, over neighbouring releases, both ends included."""

    first: str
    last: str
    flag: str | None = None
    variable: str | None = None
    native: str | None = None


class Told(Frozen):
    """A fact about it that no default shows, with the place where it was read."""

    says: str
    source: str


class OfEngine(Frozen):
    """One engine's side of it. ``defaults``: its values over the releases, on ``device`` with ``model``."""

    engine: str
    title: str
    spellings: tuple[Spelling, ...] = ()
    means: str | None = None
    facts: tuple[Told, ...] = ()
    device: str | None = None
    model: str | None = None
    defaults: tuple[Span, ...] = ()


class InCapture(Frozen):
    """What one capture holds of it. ``because``: the engine's own reasons, in its order."""

    engine: str
    version: str | None
    value: Value
    origin: str | None = None
    configured: Value | None = None
    because: tuple[str, ...] = ()
    unknown_because: str | None = None


class Explanation(Frozen):
    """Everything that engdiff knows about one key."""

    schema_version: int = EXPLANATION_SCHEMA
    document: Literal["explanation"] = "explanation"
    key: str
    area: str
    unit: str = ""
    meaning: str
    why: str
    effects: dict[str, str] = Field(default_factory=dict)
    depends_on: tuple[str, ...] = ()
    here: InCapture | None = None
    engines: tuple[OfEngine, ...] = ()
