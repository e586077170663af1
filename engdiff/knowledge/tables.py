"""An engine's knowledge, read from the TOML files in its package: names, meanings, changes, facts, noise, failures."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase, translate
from functools import cached_property
from importlib.resources import files
from typing import Any, Literal

from packaging.version import Version

from engdiff.knowledge.meanings import Tongue, tongue
from engdiff.knowledge.settings import Area
from engdiff.knowledge.versions import at_version, came_between, holds

_PLACEHOLDER = re.compile(r"[=\s](?:N|GIB|BYTES|LIST|NAME|DIR)$")

ChangeKind = Literal["default", "behaviour", "renamed", "removed", "added"]


@dataclass(frozen=True)
class Change:
    """One known change of a default or a behaviour; ``since`` is the first release that has it.

    ``pin`` may hold ``{old}``, the old side's value, or a word in capitals that the user must fill in.
    ``area`` is given where it differs from that of the key: a change without effect is cosmetic. ``when`` names
    settings, canonical or native, that must have these values for the change to act: a value, ``"*"`` for any that is
    set, ``"none"`` for one that is not, ``">N"`` for a greater number, or ``"=new"`` for the very value that this one
    has now.
    """

    key: str
    since: str
    kind: ChangeKind
    summary: str
    matters: str
    source: str
    pin: str | None = None
    no_pin: str | None = None
    platform: str = "any"
    area: Area | None = None
    when: Mapping[str, Any] = field(default_factory=dict)
    old_native: str | None = None
    new_native: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    def explains(self, value: object, settings: Mapping[str, object]) -> bool:
        """Whether this change led to ``value`` under these other settings; what it does not name it leaves open."""
        stated = self.extra.get("new")
        fits = stated is None or str(stated).lower() == str(value).lower()
        return fits and self.meets(value, settings)

    def meets(self, value: object, settings: Mapping[str, object]) -> bool:
        """Whether everything that the change needs in order to act holds; ``value`` is that of its own key."""
        return all(_meets(settings.get(key), wanted, value) for key, wanted in self.when.items())

    @property
    def precision(self) -> int:
        """How much it says of when it acts: of two that explain a value, the one that says more is the reason."""
        return len(self.when) + ("new" in self.extra)

    @property
    def pin_is_complete(self) -> bool:
        """Whether the pin can be typed as it is."""
        return self.pin is not None and not _PLACEHOLDER.search(self.pin)


@dataclass(frozen=True)
class Names:
    """How a user sets one canonical setting, and where the engine keeps it, at one version."""

    key: str
    native: str | None
    flag: str | None
    arg: str | None
    variable: str | None
    pin: str | Mapping[str, str] | None
    """Syntax where it is not "flag value": a text with ``{value}``, or what to write for ``true`` and ``false``."""
    variable_unit: str | None = None
    """Unit of the variable where it is not the setting's own: ``GiB``."""
    derived_from: tuple[str, ...] = ()
    """Canonical keys that the engine computes this one from, when the user says nothing."""


@dataclass(frozen=True)
class Fact:
    """What an engine does, and no setting or default shows; true of the releases from ``since`` to ``until``.

    ``key`` is canonical where the fact is about a setting, else a name of the engine's own. ``says`` is one or more
    sentences; ``platform`` is ``any``, ``cuda`` or ``cpu``, as in a :class:`Change`.
    """

    key: str
    says: str
    source: str
    since: str | None = None
    until: str | None = None
    platform: str = "any"

    def holds_at(self, version: str) -> bool:
        """Whether it is true of this release; what is no version lies in no bounded range."""
        return holds(version, self.since, self.until)


DEFAULT_PRIORITY = 50


@dataclass(frozen=True)
class FailurePattern:
    """One kind of last words: groups of ``pattern`` fill ``cause`` and ``advice``.

    It is searched in each line, or in the whole end of the log when ``multiline``; ``unless`` on the same line
    rules it out. Of several that match, the highest ``priority`` wins. ``stage`` is the phase of the boot in which
    it happens; ``fits`` is a sentence on what would have fitted, said when all its groups took part.
    """

    pattern: re.Pattern[str]
    cause: str
    advice: str
    priority: int = DEFAULT_PRIORITY
    multiline: bool = False
    unless: re.Pattern[str] | None = None
    stage: str | None = None
    fits: str | None = None


@dataclass(frozen=True)
class Condition:
    """When a setting acts at all: when one of ``needs`` holds. ``says`` is the sentence when none does.

    What can be needed is said in :mod:`engdiff.diff.effect`.
    """

    pattern: str
    needs: tuple[str, ...]
    says: str


@dataclass(frozen=True)
class Knowledge:
    """The tables of one engine; ``package`` is the folder that holds them."""

    package: str

    def _read(self, name: str) -> dict[str, Any]:
        resource = files(self.package) / "knowledge" / name
        return tomllib.loads(resource.read_text(encoding="utf-8")) if resource.is_file() else {}

    @cached_property
    def _native(self) -> dict[str, Any]:
        return self._read("native.toml")

    @cached_property
    def _noise(self) -> dict[str, Any]:
        return self._read("noise.toml")

    @cached_property
    def tongue(self) -> Tongue:
        """What the engine means by words that others use as well."""
        return tongue(self._read("meanings.toml"))

    @cached_property
    def changes(self) -> tuple[Change, ...]:
        """All known changes, in the order of the file."""
        named = {f for f in Change.__dataclass_fields__ if f != "extra"}
        rows = self._read("changes.toml").get("change", [])
        return tuple(
            Change(
                **{k: v for k, v in row.items() if k in named},
                extra={k: v for k, v in row.items() if k not in named},
            )
            for row in rows
        )

    @cached_property
    def changes_read(self) -> tuple[str, str] | None:
        """First and last release that the changes were read from; ``None`` where the table does not say."""
        table = self._read("changes.toml")
        return (table["read_since"], table["read_until"]) if "read_until" in table else None

    @cached_property
    def facts(self) -> tuple[Fact, ...]:
        """All facts, in the order of the file; none where the engine has no such file."""
        return tuple(Fact(**row) for row in self._read("facts.toml").get("fact", ()))

    @cached_property
    def failures(self) -> tuple[FailurePattern, ...]:
        """Patterns of last words, most telling first."""
        rows = self._read("failures.toml").get("failure", [])
        return tuple(sorted((_failure(row) for row in rows), key=lambda f: -f.priority))

    def names(self, version: str) -> dict[str, Names]:
        """Canonical key to native names, at one version."""
        if version not in self._names_at:
            self._names_at[version] = {key: self._names(key, entry, version) for key, entry in self._native.items()}
        return self._names_at[version]

    @cached_property
    def _names_at(self) -> dict[str, dict[str, Names]]:
        """What was asked for already: each finding asks."""
        return {}

    def _names(self, key: str, entry: Mapping[str, Any], version: str) -> Names:
        return Names(
            key=key,
            native=at_version(entry.get("native"), version, "path"),
            flag=at_version(entry.get("flag"), version, "name"),
            arg=at_version(entry.get("arg"), version, "name"),
            variable=at_version(entry.get("env"), version, "name"),
            variable_unit=at_version(entry.get("env"), version, "unit"),
            pin=_pin_at(entry.get("pin"), version),
            derived_from=tuple(entry.get("derived_from", ())),
        )

    def change(
        self, key: str, versions: tuple[str, str], platform: str, new_value: object, settings: Mapping[str, object]
    ) -> Change | None:
        """The known change of ``key`` between two versions that explains its new value: the most precise, then newest.

        ``platform`` and ``settings`` (by canonical key, and by native path for :attr:`conditions`) are those of the
        new side.
        """
        older, newer = sorted(versions, key=Version)
        between = [
            change
            for change in self._changes_by_key.get(key, ())
            if change.platform in ("any", platform)
            and came_between(older, change.since, newer)
            and change.explains(new_value, settings)
        ]
        return max(between, key=lambda change: (change.precision, Version(change.since)), default=None)

    def came_between(self, older: str, newer: str) -> tuple[Change, ...]:
        """Every known change that a release after ``older`` has and ``newer`` too."""
        return tuple(change for change in self.changes if came_between(older, change.since, newer))

    def changes_of(self, key: str) -> tuple[Change, ...]:
        """Every known change under a canonical key, a native path or ``variables.NAME``, oldest first."""
        return tuple(sorted(self._changes_by_key.get(key, ()), key=lambda change: Version(change.since)))

    @cached_property
    def conditions(self) -> frozenset[str]:
        """Every setting that a change names as its condition, canonical or native."""
        return frozenset(key for change in self.changes for key in change.when)

    @cached_property
    def looked_at(self) -> frozenset[str]:
        """Native leaves that decide whether a change acts, or whether a setting does: noise or not, they are needed."""
        needs = (need.partition(":") for one in self._conditions for need in one.needs)
        native = (path.lstrip("!").partition("=")[0] for kind, _, path in needs if kind == "native")
        return self.conditions | frozenset(native)

    @cached_property
    def _changes_by_key(self) -> dict[str, list[Change]]:
        """Changes by canonical key, by native path on either side, and by ``variables.NAME``."""
        index: dict[str, list[Change]] = {}
        for change in self.changes:
            variable = change.extra.get("env")
            keys = {change.key, change.old_native, change.new_native, f"variables.{variable}" if variable else None}
            for key in filter(None, keys):
                index.setdefault(key, []).append(change)
        return index

    def acts_if(self, key: str) -> tuple[Condition, ...]:
        """The conditions that must all hold for a change of this key or native leaf to have any effect."""
        return tuple(c for c in self._conditions if fnmatchcase(key, c.pattern))

    @cached_property
    def _conditions(self) -> tuple[Condition, ...]:
        return tuple(_condition(row) for row in self._read("acts.toml").get("acts", ()))

    def renamed(self, old_version: str, new_version: str) -> dict[str, str]:
        """Old native path to new one, for leaves that only moved between the two versions (older first)."""
        return {
            change.old_native: change.new_native
            for change in self.changes
            if change.kind == "renamed"
            and change.old_native
            and change.new_native
            and came_between(old_version, change.since, new_version)
        }

    def is_noise(self, path: str) -> bool:
        """Whether a native leaf differs run by run, or only says where things lie."""
        return self._noise_pattern.match(path) is not None

    @cached_property
    def _noise_pattern(self) -> re.Pattern[str]:
        """All noise patterns as one: captures have tens of thousands of leaves."""
        return re.compile("|".join(translate(row["pattern"]) for row in self._noise.get("paths", ())) or r"(?!)")

    def is_inert(self, path: str, value: object) -> bool:
        """Whether this value of a leaf that only one version has means "off" or "as before"."""
        return str(value).lower() in self._inert.get(path, ())

    @cached_property
    def _inert(self) -> dict[str, set[str]]:
        """Every such value by path: an option may have been introduced with one and have another now."""
        found: dict[str, set[str]] = {}
        for row in self._noise.get("inert", ()):
            found.setdefault(row["path"], set()).add(str(row["value"]).lower())
        return found

    def area(self, path: str) -> Area:
        """What a change of this native leaf can cost: the longest prefix in ``[areas]`` decides; else cosmetic."""
        areas: Mapping[str, Area] = self._noise.get("areas", {})
        best = max((p for p in areas if path == p or path.startswith(p + ".")), key=len, default=None)
        return areas[best] if best else "cosmetic"


def _meets(value: object, wanted: object, new_value: object) -> bool:
    """Whether another setting has the value that a change needs."""
    if wanted in ("*", "none"):
        return (value in (None, False, "", "none")) is (wanted == "none")
    if isinstance(wanted, str) and wanted.startswith(">"):
        return isinstance(value, int | float) and value > float(wanted[1:])
    return value == (new_value if wanted == "=new" else wanted)


def _condition(row: Mapping[str, Any]) -> Condition:
    needs = row["if"]
    return Condition(row["pattern"], (needs,) if isinstance(needs, str) else tuple(needs), row["says"])


def _failure(row: Mapping[str, Any]) -> FailurePattern:
    unless = row.get("unless")
    return FailurePattern(
        pattern=re.compile(row["pattern"]),
        cause=row["cause"],
        advice=row["advice"],
        priority=row.get("priority", DEFAULT_PRIORITY),
        multiline=row.get("multiline", False),
        unless=re.compile(unless) if unless else None,
        stage=row.get("stage"),
        fits=row.get("fits"),
    )


def _pin_at(entry: Any, version: str) -> str | Mapping[str, str] | None:
    """The pin syntax that holds at ``version``: as it is, or the row of a list by version."""
    if not isinstance(entry, list):
        pin: str | Mapping[str, str] | None = entry
        return pin
    for row in entry:
        if holds(version, row.get("since"), row.get("until")):
            return row.get("text") or {k: v for k, v in row.items() if k in ("true", "false")}
    return None
