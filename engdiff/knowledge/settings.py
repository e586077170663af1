"""The registry of canonical settings: key, unit, type, area and meaning (``settings.toml``)."""

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


@dataclass(frozen=True)
class SettingInfo:
    """One canonical setting. ``unit`` is empty for plain values; ``why`` says what a move costs, in one sentence."""

    key: str
    type: Literal["int", "float", "bool", "text", "list"]
    area: Area
    meaning: str
    why: str
    unit: str = ""


@cache
def registry() -> Mapping[str, SettingInfo]:
    """All canonical settings by key, in the order of the file."""
    text = (files("engdiff.knowledge") / "settings.toml").read_text(encoding="utf-8")
    return {key: SettingInfo(key=key, **entry) for key, entry in tomllib.loads(text).items()}
