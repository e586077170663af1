"""What engines decide and no setting holds (``decisions.toml``)."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files


@dataclass(frozen=True)
class DecisionInfo:
    """One decision, the same for every engine; ``facts`` are the keys of facts about it."""

    key: str
    short: str
    area: str
    meaning: str
    why: str
    facts: tuple[str, ...]


@cache
def decisions() -> Mapping[str, DecisionInfo]:
    """All decisions by key, in the order of the file."""
    text = (files("engdiff.knowledge") / "decisions.toml").read_text(encoding="utf-8")
    return {
        key: DecisionInfo(key=key, **{**entry, "facts": tuple(entry["facts"])})
        for key, entry in tomllib.loads(text).items()
    }


def short_names() -> Mapping[str, str]:
    """From what a user may call it to its key."""
    return {one.short: one.key for one in decisions().values()}
