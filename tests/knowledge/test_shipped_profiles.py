"""Knowledge held against what the engines decided: every claimed default change, in every shipped profile."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest
from packaging.version import Version

from engdiff import engines
from engdiff.diff.pinning import known_settings
from engdiff.diff.values_at import value_at
from engdiff.engines.contract import Engine
from engdiff.errors import EngineFailed
from engdiff.knowledge.tables import Change
from engdiff.schema.capture import Capture
from engdiff.schema.values import Known, plain
from engdiff.sources.profiles import shipped

ENGINES = ("vllm", "sglang", "llamacpp", "trtllm")


@dataclass(frozen=True)
class Claim:
    """A default change that names its values, and the neighbouring releases whose profiles can tell."""

    engine: str
    change: Change
    before: str | None
    after: str | None

    def __str__(self) -> str:
        return f"{self.engine} {self.change.key} {self.change.since}"


def claims() -> Iterator[Claim]:
    for name in ENGINES:
        engine = engines.get(name)
        held = shipped.versions(name)
        for change in engine.knowledge.changes:
            if change.kind != "default" or change.platform not in ("any", "cuda") or "applies_to" in change.extra:
                continue
            others = [Version(c.since) for c in engine.knowledge.changes_of(change.key) if c is not change]
            yield Claim(name, change, *neighbours(Version(change.since), held, others))


def neighbours(since: Version, held: tuple[str, ...], others: list[Version]) -> tuple[str | None, str | None]:
    """The last profile before and the first one from there on, if no other change of the key lies between."""
    before = [one for one in held if Version(one) < since and not any(Version(one) < o <= since for o in others)]
    after = [one for one in held if Version(one) >= since and not any(since <= o <= Version(one) for o in others)]
    return (before[-1] if before else None), (after[0] if after else None)


@cache
def captures(engine: str, version: str) -> list[Capture]:
    found = []
    for key in shipped.read(engine, version)["scenarios"]:
        try:
            made = shipped.capture(engine, version, key)
        except EngineFailed:
            continue
        assert made is not None
        found.append(made)
    return found


def values(engine: Engine, version: str | None, change: Change, *, new: bool) -> list[Any]:
    """What this key was on every scenario of a release, as declared and as resolved; new: where the change can act."""
    found = []
    for one in captures(engine.name, version) if version else ():
        held = list(held_at(engine, one, change, new=new))
        if held and (not new or change.meets(held[0], known_settings(one, engine))):
            found += held
    return found


def held_at(engine: Engine, capture: Capture, change: Change, *, new: bool) -> Iterator[Any]:
    """The value that it resolved to, and the default that its flag declares."""
    for name in names(engine, change, new=new):
        if isinstance(value := value_at(capture, name), Known):
            yield value.value
            break
    flags = capture.native.get("flags")
    spelt = engine.knowledge.names(str(plain(capture.identity.version))).get(change.key)
    flag = flags.get((spelt and (spelt.arg or spelt.native)) or change.key) if isinstance(flags, dict) else None
    if isinstance(flag, dict) and "default" in flag:
        yield flag["default"]


def names(engine: Engine, change: Change, *, new: bool) -> list[str]:
    """Where a capture may hold it: under the native name that the change gives, else under its key or variable."""
    if native := (change.new_native if new else change.old_native):
        return [f"{engine.native_root}{native}"]
    variable = change.extra.get("env")
    own = [change.key, f"{engine.native_root}{change.key}"]
    return own + ([f"variables.{variable}"] if variable else [])


def as_claimed(value: Any) -> str:
    return "none" if value is None else str(value).lower()


@pytest.mark.parametrize("claim", list(claims()), ids=str)
def test_no_engine_contradicts_a_claimed_default(claim: Claim) -> None:
    engine = engines.get(claim.engine)
    for side, version in (("new", claim.after), ("old", claim.before)):
        if side not in claim.change.extra:
            continue
        seen = {as_claimed(v) for v in values(engine, version, claim.change, new=side == "new")}
        wanted = as_claimed(claim.change.extra[side])
        assert not seen or wanted in seen, f"{side}: claimed {wanted}, and {version} has {sorted(seen)}"


def test_most_claims_can_be_held_against_a_profile() -> None:
    """A profile holds the key of at least half of them; the rest is of options that no shipped scenario uses."""
    told = [claim for claim in claims() if "new" in claim.change.extra]
    held = [c for c in told if values(engines.get(c.engine), c.after, c.change, new=True)]
    assert len(held) >= len(told) / 2
