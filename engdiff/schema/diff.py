"""Diff: what moved between two captures, ranked by what it can cost, and what pins it back."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, JsonValue

from engdiff.schema.capture import Origin
from engdiff.schema.values import Frozen, Value

DIFF_SCHEMA = 2

Area = Literal["startup", "memory", "scheduling", "kernels", "numerics", "cosmetic"]


def _is_none(value: object) -> bool:
    """Left out of the document: what only a comparison of different engines holds."""
    return value is None


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
    """What restores the old value on the new side: ``text`` as typed; ``None`` with a reason when nothing does.

    ``style`` file: the text is a line of a configuration file, and ``because`` says of which.
    """

    text: str | None
    style: Literal["flags", "env", "file", "dependency"] | None = None
    because: str | None = None


class Meanings(Frozen):
    """What two different engines mean by one key, in one line each.

    ``comparable``: whether the two values say the same thing. ``instead``: what can be compared, where it follows
    exactly from what both sides hold.
    """

    old: str
    new: str
    comparable: bool
    instead: str | None = None


class Finding(Frozen):
    """One thing that moved. ``headline`` is a whole sentence; ``why`` says what it costs or gives.

    ``asked``: the two command lines differ in it, so the user asked for it. ``explained``: engdiff has an account
    of what it costs; a leaf of the native configuration may have none. ``follows_from`` names the findings that
    decide this one. ``meanings``: only between different engines.
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
    meanings: Meanings | None = Field(default=None, exclude_if=_is_none)


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


class Beside(Frozen):
    """One thing of both sides, side by side. ``old_as`` and ``new_as``: what a side calls it, where it says it so."""

    name: str
    old: Value
    new: Value
    unit: str = ""
    old_as: str | None = None
    new_as: str | None = None
    meaning: str = ""


class OneSided(Frozen):
    """A setting that one engine has and the other has not, by canonical key or as it was typed.

    ``counterpart``: what the other engine calls it, where it has it under a name that is no canonical key.
    """

    what: str
    side: Literal["old", "new"]
    value: Value | None = None
    unit: str = ""
    by_user: bool = False
    why: str = ""
    counterpart: str | None = None


class OtherMeaning(Frozen):
    """A word that both engines use, and that no finding is about: each means something else by it."""

    name: str
    meanings: Meanings


class Across(Frozen):
    """What stands in place of moves when the two sides are different engines.

    ``old_title`` and ``new_title``: the engines as their users write them. ``compared``: canonical settings that both
    state; ``same`` of them say the same. ``capacity``: in units that both share. ``ledger``: the memory of one rank,
    line by line, which does not subtract. ``decisions``: rules and parts in words. ``one_sided``: what has no
    counterpart. ``other_meanings``: the same word for other things.
    """

    old_title: str
    new_title: str
    compared: int
    same: int
    capacity: tuple[Beside, ...] = ()
    ledger: tuple[Beside, ...] = ()
    ledger_of: str = ""
    decisions: tuple[Beside, ...] = ()
    one_sided: tuple[OneSided, ...] = ()
    other_meanings: tuple[OtherMeaning, ...] = ()


class Behaviour(Frozen):
    """A known change between the two releases that no value of either side shows.

    ``applies_to``: devices or models that it is limited to, which a capture does not tell.
    """

    key: str
    area: Area
    since: str
    says: str
    applies_to: str | None = None
    pin: Pin
    source: str


class Diff(Frozen):
    """The whole answer. ``findings`` are ranked: unasked first, explained first, costly areas first.

    ``behaviours``: known, and shown by no value; they are no findings. ``across``: only between different engines.
    """

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
    behaviours: tuple[Behaviour, ...] = ()
    across: Across | None = Field(default=None, exclude_if=_is_none)
