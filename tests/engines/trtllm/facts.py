"""Short ways to the facts of a Capture, in the units in which TensorRT-LLM prints them."""

from __future__ import annotations

from typing import Any

from engdiff.schema.capture import Capture, Pool, Rank
from engdiff.schema.values import plain
from engdiff.units import GIB


def gib(value: Any) -> float | None:
    """A size in GiB with two decimals, as printed."""
    size = plain(value)
    return None if size is None else round(size / GIB, 2)  # type: ignore[operator]


def rank(capture: Capture, index: int = 0) -> Rank:
    return [r for instance in capture.instances for r in instance.ranks][index]


def pool(capture: Capture, index: int = 0) -> Pool:
    return rank(capture, index).pools[0]


def term(capture: Capture, name: str, index: int = 0) -> float | None:
    """One line of a ledger, in GiB."""
    return next((gib(t.bytes) for t in rank(capture, index).ledger if t.name == name), None)


def said(capture: Capture, name: str, group: str) -> Any:
    """What a line states, as printed."""
    log: Any = capture.native["log"]
    return log[name][group]


def component(capture: Capture, name: str) -> tuple[Any, Any]:
    """Free memory before and after a component, as printed."""
    components: Any = capture.native["components"]
    return components[name]["free_before_gib"], components[name]["free_after_gib"]


def final(capture: Capture, key: str) -> Any:
    """A setting's deepest value."""
    return plain(capture.settings[key].final)
