"""Diff: what moved between two captures, ranked by what it can cost, and what pins it back."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, JsonValue

from engdiff.schema.capture import Origin
from engdiff.schema.values import Frozen, Value

DIFF_SCHEMA = 2

Area = Literal["startup", "memory", "scheduling", "kernels", "numerics", "cosmetic"]


class Side(Frozen):
    """One of the two captures: what it is, and how to make it again.

    ``words_unknown_because``: why arguments and variables are not known; they are empty then. ``read_from``: where
    the capture comes from, in words, when it is no launch: ``a log``.
    """

    label: str
    engine: str
    version: str | None
    distribution: str | None
    source: str
    captured_at: str
    model: str | None
    started: bool
    arguments: tuple[str, ...] = ()
    variables: dict[str, str] = Field(default_factory=dict)
    words_unknown_because: str | None = None
    read_from: str | None = None


class Pin(Frozen):
    """What restores the old value on the new side: ``text`` as typed; ``None`` with a reason when nothing does."""

    text: str | None
    style: Literal["flags", "env", "dependency"] | None = None
    because: str | None = None


class Finding(Frozen):
    """One thing that moved. ``headline`` is a whole sentence; ``why`` says what it costs or gives.

    ``asked``: the two command lines differ in it, so the user asked for it. ``explained``: engdiff has an account
    of what it costs; a leaf of the native configuration may have none. ``follows_from`` names the findings that
    decide this one.
    """

    kind: str
    key: str
    area: Area
    headline: str
    old: Value
    new: Value
    unit: str = ""
    old_origin: Origin | None = None
    new_origin: Origin | None = None
    why: str
    since: str | None = None
    evidence: tuple[str, ...] = ()
    pin: Pin
    asked: bool = False
    explained: bool = True
    follows_from: tuple[str, ...] = ()


class Step(Frozen):
    """One step of a waterfall, in bytes: what this line added to the pool or took from it."""

    name: str
    old: str
    new: str
    bytes: int


class Waterfall(Frozen):
    """Where the bytes of a pool went, from old to new. The steps sum to the difference."""

    pool: str
    old_bytes: int
    new_bytes: int
    how: Literal["product", "remainder"]
    steps: tuple[Step, ...]


class NativeLeaf(Frozen):
    """A leaf of the native config that only one side has."""

    path: str
    side: Literal["old", "new"]
    value: JsonValue
    area: Area


class Move(Frozen):
    """A difference of the ground the two engines stood on: a package, a CPU feature, a host."""

    name: str
    old: str | None
    new: str | None


class NotCompared(Frozen):
    """What could not be compared, and why."""

    what: str
    because: str


class Accepted(Frozen):
    """A finding that the user accepted in a file, with the reason given there."""

    finding: Finding
    reason: str


class Diff(Frozen):
    """The whole answer. ``findings`` are ranked: unasked first, explained first, costly areas first."""

    document: Literal["diff"] = "diff"
    schema_version: int = DIFF_SCHEMA
    old: Side
    new: Side
    findings: tuple[Finding, ...]
    accepted: tuple[Accepted, ...] = ()
    waterfalls: tuple[Waterfall, ...] = ()
    native_only: tuple[NativeLeaf, ...] = ()
    native_compared: int = 0
    machine: tuple[Move, ...] = ()
    packages: tuple[Move, ...] = ()
    not_compared: tuple[NotCompared, ...] = ()
    warnings_new: tuple[str, ...] = ()
    warnings_gone: tuple[str, ...] = ()
    pinned_command: str | None = None
    prove_command: str | None = None
