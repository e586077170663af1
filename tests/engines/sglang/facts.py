"""Short ways to the facts of a Capture, in the units in which SGLang prints them."""

from __future__ import annotations

from typing import Any

from engdiff.schema.capture import Capture, Rank
from engdiff.schema.values import plain
from engdiff.units import GIB


def gib(value: Any) -> float | None:
    """A size in GiB with two decimals, as printed."""
    size = plain(value)
    return None if size is None else round(size / GIB, 2)  # type: ignore[operator]


def rank(capture: Capture, speaker: str | None = None) -> Rank:
    """The rank that a prefix names; the first without one."""
    ranks = [r for instance in capture.instances for r in instance.ranks]
    return ranks[0] if speaker is None else next(r for r in ranks if r.device == speaker)


def term(capture: Capture, name: str, speaker: str | None = None) -> float | None:
    """One line of a ledger, in GiB."""
    return next((gib(t.bytes) for t in rank(capture, speaker).ledger if t.name == name), None)


def pool(capture: Capture, name: str = "KV cache", speaker: str | None = None) -> Any:
    """One pool of a rank."""
    return next(p for p in rank(capture, speaker).pools if p.name == name)


def tokens(capture: Capture, name: str = "KV cache", speaker: str | None = None) -> Any:
    """Tokens of a pool."""
    return plain(pool(capture, name, speaker).tokens)


def said(capture: Capture, name: str, group: str) -> Any:
    """What a line states, as printed."""
    log = capture.native["log"]
    assert isinstance(log, dict)
    statement = log[name]
    assert isinstance(statement, dict)
    return statement[group]


def free(capture: Capture, speaker: str, when: str) -> float:
    """What was free on a rank, in GiB, as printed."""
    return float(said(capture, "available_gib", speaker)[when])


def final(capture: Capture, key: str) -> Any:
    """A setting's deepest value."""
    return plain(capture.settings[key].final)


def argument(capture: Capture, name: str) -> Any:
    """A field of ServerArgs."""
    arguments = capture.native["server_args"]
    assert isinstance(arguments, dict)
    return arguments[name]
