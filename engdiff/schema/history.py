"""History: one setting or decision over all releases of an engine, on one pretended device and model."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from engdiff.schema.capture import Origin
from engdiff.schema.diff import Pin
from engdiff.schema.values import Frozen, Value

HISTORY_SCHEMA = 1


class Span(Frozen):
    """Neighbouring releases with one value, both ends included. ``because``: the engine's own rule, if it names one."""

    first: str
    last: str
    releases: int
    value: Value
    origin: Origin | None = None
    because: str | None = None


class Account(Frozen):
    """A change that engdiff's knowledge knows of: what happened, what it costs, and where that was read."""

    since: str
    kind: str
    summary: str
    matters: str
    source: str


class Moved(Frozen):
    """One step between two neighbouring releases at which the value moved."""

    before: str
    since: str
    headline: str
    accounts: tuple[Account, ...] = ()
    pin: Pin


class Left(Frozen):
    """Releases that have no value here, and why."""

    version: str
    because: str


class History(Frozen):
    """Every value that a key had, and every release at which it moved.

    ``accounts``: changes under this key that no value shows. ``without``: releases that have none, with the reason.
    ``notes``: what the newest capture says of itself.
    """

    schema_version: int = HISTORY_SCHEMA
    document: Literal["history"] = "history"
    engine: str
    key: str
    unit: str = ""
    device: str
    model: str
    arguments: tuple[str, ...] = ()
    spans: tuple[Span, ...]
    moves: tuple[Moved, ...]
    accounts: tuple[Account, ...] = Field(default=())
    without: tuple[Left, ...] = ()
    notes: tuple[str, ...] = ()
