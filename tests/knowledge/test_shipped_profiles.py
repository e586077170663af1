"""Knowledge held against what the engines decided: every claimed default change, in every shipped profile."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest

from engdiff import engines
from engdiff.diff.pinning import known_settings
from engdiff.diff.values_at import value_at
from engdiff.engines.contract import Engine
from engdiff.errors import EngineFailed
from engdiff.knowledge.tables import Change
from engdiff.knowledge.versions import release
from engdiff.schema.capture import Capture
from engdiff.schema.values import Known
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
            others = [release(c.since) for c in engine.knowledge.changes_of(change.key) if c is not change]
            yield Claim(name, change, *neighbours(release(change.since), held, others))


def neighbours(since: Any, held: tuple[str, ...], others: list[Any]) -> tuple[str | None, str | None]:
    """The last profile before and the first one from there on, if no other change of the key lies between."""
    before = [one for one in held if release(one) < since and not any(release(one) < o <= since for o in others)]
    after = [one for one in held if release(one) >= since and not any(since <= o <= release(one) for o in others)]
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


def values(engine: Engine, version: str | None, change: Change, *, conditions: bool) -> list[Any]:
    """What this key was on every scenario of a release; on the new side where the change can act."""
    found = []
    for one in captures(engine.name, version) if version else ():
        value = next((v for name in names(engine, change) if isinstance(v := value_at(one, name), Known)), None)
        if value is not None and (not conditions or change.meets(value.value, known_settings(one, engine))):
            found.append(value.value)
    return found


def names(engine: Engine, change: Change) -> list[str]:
    """Where a capture may hold it."""
    own = [change.key, f"{engine.native_root}{change.key}"]
    variable = change.extra.get("env")
    return own + ([f"variables.{variable}"] if variable else [])


def as_claimed(value: Any) -> str:
    return "none" if value is None else str(value).lower()


@pytest.mark.parametrize("claim", list(claims()), ids=str)
def test_no_engine_contradicts_a_claimed_default(claim: Claim) -> None:
    engine = engines.get(claim.engine)
    sides = (("new", claim.after, True), ("old", claim.before, False))
    for side, version, conditions in sides:
        if side not in claim.change.extra:
            continue
        seen = {as_claimed(v) for v in values(engine, version, claim.change, conditions=conditions)}
        wanted = as_claimed(claim.change.extra[side])
        assert not seen or wanted in seen, f"{side}: claimed {wanted}, and {version} has {sorted(seen)}"


def test_most_claims_can_be_held_against_a_profile() -> None:
    """A profile holds the key of at least half of them; the rest is of options that no shipped scenario uses."""
    told = [claim for claim in claims() if "new" in claim.change.extra]
    held = [c for c in told if values(engines.get(c.engine), c.after, c.change, conditions=False)]
    assert len(held) >= len(told) / 2
