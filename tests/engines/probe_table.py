"""The table of what a probe reads (``knowledge/probe.toml``), and what is wrong with it at one release."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from itertools import groupby
from typing import Any, Literal

from packaging.version import Version

from engdiff.knowledge.versions import holds
from tests.engines.attributes import Sources, missing

Device = Literal["any", "cpu", "gpu"]

ENGINES = ("vllm", "sglang")
"""Engines whose probe reads the engine's own objects, and so has a table."""

UNCHECKED = {
    "trtllm": "its package on the index holds no code: ATTRIBUTES in probe.py was read in public sources, never run"
}
"""Engines whose releases' sources cannot be had, and why."""


@dataclass(frozen=True)
class Place:
    """A class, or the module itself, that holds what is read of an object in some releases."""

    file: str
    cls: str = ""
    since: str | None = None
    until: str | None = None


@dataclass(frozen=True)
class Field:
    """One attribute of an object, with the releases that have it."""

    object: str
    name: str
    since: str | None
    until: str | None
    device: Device
    seen: str | None
    only: tuple[str, ...]
    """Files or classes of the object's places that have it; none named: all of them."""
    by: str | None
    """The file that reads it where the probe itself hands it on as a whole."""


@dataclass(frozen=True)
class Table:
    """Everything that one probe reads, and what its variables stand for."""

    package: str
    distributions: tuple[str, ...]

    places: Mapping[str, tuple[Place, ...]]
    fields: tuple[Field, ...]
    variables: Mapping[str, str]
    gives: Mapping[str, str]
    tables: Mapping[str, str]
    ignored: frozenset[str]
    readers: frozenset[str]
    """Functions of the probe that take an object and paths of attributes."""
    whole: frozenset[str]
    """Objects that are read by their own list of fields."""

    def wrong(self, sources: Sources, version: str) -> Iterator[str]:
        """What the table says of this release and its source does not, and the other way round, in words."""
        rows = groupby(sorted(self.fields, key=_what), key=_what)
        for (owner, name, only), group in rows:
            ranges = [(one.since, one.until) for one in group]
            said = any(within(version, *bounds) for bounds in ranges)
            why = self._missing(sources, owner, name, only, version)
            if said and why:
                yield f"{owner}.{name}: {why}"
            if not said and not why:
                stated = ", ".join(f"{since or 'first'} to {until or 'newest'}" for since, until in ranges)
                yield f"{owner}.{name} is defined, and the table says: {stated}"

    def _missing(self, sources: Sources, owner: str, name: str, only: tuple[str, ...], version: str) -> str | None:
        """Why a release does not have it: each place that the release has must define it."""
        places = [
            p
            for p in self.places[owner]
            if within(version, p.since, p.until) and (not only or {p.file, p.cls} & set(only))
        ]
        if not places:
            return f"the table knows no place of {owner} in this release"
        reasons = (missing(sources, place.file, place.cls, name) for place in places)
        return next((reason for reason in reasons if reason), None)


def _what(one: Field) -> tuple[str, str, tuple[str, ...]]:
    """What a row is about; several rows of one thing are several ranges."""
    return one.object, one.name, one.only


def within(version: str, since: str | None, until: str | None) -> bool:
    """Whether a release lies in a range. A bound that is a post-release tells them apart; any other counts them in."""
    exact = [bound for bound in (since, until) if bound and Version(bound).is_postrelease]
    low, high = (bound if bound in exact else None for bound in (since, until))
    at = Version(version)
    fits = (low is None or Version(low) <= at) and (high is None or at <= Version(high))
    return fits and holds(version, None if low else since, None if high else until)


def table(engine: str) -> Table:
    """The table of an engine's probe."""
    text = files(f"engdiff.engines.{engine}").joinpath("knowledge/probe.toml").read_text(encoding="utf-8")
    return parsed(tomllib.loads(text))


def parsed(data: Mapping[str, Any]) -> Table:
    """A table from its TOML."""
    objects = data["object"]
    return Table(
        package=data["package"],
        distributions=tuple(data["distributions"]),
        places={o["name"]: tuple(_place(p) for p in o["places"]) for o in objects},
        fields=tuple(_field(o, f) for o in objects for f in o["fields"]),
        variables=data["variables"],
        gives=data.get("gives", {}),
        tables=data.get("tables", {}),
        ignored=frozenset(data.get("ignored", ())),
        readers=frozenset(data.get("readers", ())),
        whole=frozenset(data.get("whole", ())),
    )


def _place(row: Mapping[str, str]) -> Place:
    return Place(row["file"], row.get("class", ""), row.get("since"), row.get("until"))


def _field(owner: Mapping[str, Any], row: Mapping[str, Any]) -> Field:
    return Field(
        object=owner["name"],
        name=row["name"],
        since=row.get("since"),
        until=row.get("until"),
        device=row.get("device", owner.get("device", "any")),
        seen=row.get("seen", owner.get("seen")) or None,
        only=tuple(row.get("only", ())),
        by=row.get("by"),
    )
