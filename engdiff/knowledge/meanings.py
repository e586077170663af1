"""What an engine means by a word that others use as well: ``meanings.toml`` in its package.

``[[meaning]]``  ``key`` (canonical, or one of :data:`SPOKEN`), ``sense``, ``says``, ``source``; where it holds:
                 ``since``, ``until``, ``device``, ``when`` (canonical settings and their values); ``unit`` of the
                 values, where it is not the registry's. ``no_pin``: why the value of an engine that means something
                 else cannot be typed here. The first row that holds counts.
``[words.KEY]``  the engine's word for a value -> the word that all engines share; ``=KEY unless OTHER`` is the value of
                 that setting, where the other one is off
``[[term]]``     ``name`` of lines of a ledger (* is a wildcard), and what they are among :data:`TERMS`
``[[flag]]``     ``flags`` without a canonical key, and what they say in words that all engines share
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from engdiff.knowledge.versions import holds, is_version

SPOKEN = {
    "pool.tokens": "tokens that the KV cache holds",
    "pool.max_concurrency": "requests that fit at once",
    "memory.weights": "memory for weights",
    "log.gb": "GB in its log",
}
"""Words that no setting has and that engines use in different ways, with how a person calls them."""

TERMS = (
    "device memory",
    "limit",
    "weights",
    "KV cache",
    "state cache",
    "draft model",
    "graphs",
    "activations and workspace",
    "libraries and communication",
    "other",
    "left free",
    "not accounted for",
)
"""Lines of the ledger that all engines share, in the order in which they are shown."""


@dataclass(frozen=True)
class Meaning:
    """One meaning. Two engines with the same ``sense`` of a key say the same thing by the same value."""

    key: str
    sense: str
    says: str
    source: str
    since: str | None = None
    until: str | None = None
    device: str | None = None
    when: Mapping[str, Any] = field(default_factory=dict)
    no_pin: str | None = None
    unit: str | None = None
    """Unit of the values, where it is not that of the registry."""

    def may_hold(self, version: str, device: str | None, settings: Mapping[str, object]) -> bool:
        """Whether nothing that is known rules it out."""
        if is_version(version) and not holds(version, self.since, self.until):
            return False
        if self.device is not None and device is not None and device != self.device:
            return False
        return all(settings[key] == wanted for key, wanted in self.when.items() if key in settings)

    def must_hold(self, version: str, device: str | None, settings: Mapping[str, object]) -> bool:
        """Whether all that it needs is known to be so."""
        bounded = self.since is not None or self.until is not None
        known = (is_version(version) or not bounded) and (self.device is None or device is not None)
        return known and self.when.keys() <= settings.keys()


@dataclass(frozen=True)
class Tongue:
    """All that one engine means by its words."""

    meanings: Mapping[str, Sequence[Meaning]]
    words: Mapping[str, Mapping[str, str]]
    terms: Sequence[tuple[str, tuple[str, ...]]]
    flags: Mapping[str, str]

    def meaning(
        self, key: str, version: str, device: str | None, settings: Mapping[str, object]
    ) -> tuple[Meaning, ...]:
        """The meaning of a key; several where what is known does not tell which; none where it is the registry's.

        ``settings``: canonical settings whose values are known.
        """
        found: list[Meaning] = []
        for one in self.meanings.get(key, ()):
            if one.may_hold(version, device, settings):
                found.append(one)
                if one.must_hold(version, device, settings):
                    break
        return tuple(found)

    def term(self, name: str) -> tuple[str, ...]:
        """What a line of the ledger is in shared words; several where one line holds them all; none: not known."""
        return next((shared for pattern, shared in self.terms if fnmatchcase(name, pattern)), ())


def tongue(tables: Mapping[str, Any]) -> Tongue:
    """What ``meanings.toml`` says."""
    meanings: dict[str, list[Meaning]] = {}
    for row in tables.get("meaning", ()):
        meanings.setdefault(row["key"], []).append(Meaning(**row))
    return Tongue(
        meanings=meanings,
        words=tables.get("words", {}),
        terms=tuple((row["name"], tuple(row["is"])) for row in tables.get("term", ())),
        flags={flag: row["is"] for row in tables.get("flag", ()) for flag in row["flags"]},
    )
