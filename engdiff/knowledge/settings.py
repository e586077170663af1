"""The registry of canonical settings: key, unit, type, area, meaning and effects (``settings.toml``)."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal

Area = Literal["startup", "memory", "scheduling", "kernels", "numerics", "cosmetic"]

AREAS: tuple[Area, ...] = ("startup", "memory", "scheduling", "kernels", "numerics", "cosmetic")
"""What a change can cost, worst first: the order in which findings are ranked."""

Effect = Literal["memory", "throughput", "latency", "startup"]

EFFECTS: tuple[Effect, ...] = ("memory", "throughput", "latency", "startup")
"""What a setting can act on, in the order in which effects are shown."""


@dataclass(frozen=True)
class SettingInfo:
    """One canonical setting, the same for every engine.

    The four effects are one sentence each: what happens there when the value goes up, when a switch is turned on, or,
    for settings that are words, when another one is chosen. ``None``: no effect of its own.
    """

    key: str
    """``scheduler.max_num_seqs``: the name that predicates, accept-lists and policies use."""

    type: Literal["int", "float", "bool", "text", "list"]
    """What its value is."""

    area: Area
    """The worst that a change of it can cost."""

    meaning: str
    """What it is, in one sentence."""

    why: str
    """What it costs or gives when it moves, in one sentence."""

    unit: str = ""
    """Unit of the value; empty for plain values."""

    memory: str | None = None
    """Effect on device memory, or on host memory where it says so."""

    throughput: str | None = None
    """Effect on tokens and requests per second."""

    latency: str | None = None
    """Effect on time to first token, or on time per token where it says so."""

    startup: str | None = None
    """Effect on the time that a start takes, or on whether it succeeds."""

    depends_on: tuple[str, ...] = ()
    """Canonical keys that the value follows from or is bounded by, on at least one engine."""

    @property
    def effects(self) -> Mapping[Effect, str]:
        """The effects that it has, in the order of :data:`EFFECTS`."""
        found: dict[Effect, str | None] = {name: getattr(self, name) for name in EFFECTS}
        return {name: sentence for name, sentence in found.items() if sentence is not None}


@cache
def registry() -> Mapping[str, SettingInfo]:
    """All canonical settings by key, in the order of the file."""
    text = (files("engdiff.knowledge") / "settings.toml").read_text(encoding="utf-8")
    return {
        key: SettingInfo(key=key, depends_on=tuple(entry.pop("depends_on", ())), **entry)
        for key, entry in tomllib.loads(text).items()
    }
