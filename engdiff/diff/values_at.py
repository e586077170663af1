"""The value that one capture has for the key of a finding: a series shows it on every side, moved or not."""

from __future__ import annotations

import re

from engdiff.diff.parts import process_map
from engdiff.diff.pools import matched
from engdiff.diff.sides import resolved
from engdiff.diff.starts import said
from engdiff.engines.layers import MISSING, lookup
from engdiff.schema.capture import Capture, Pool, Rank
from engdiff.schema.values import Known, Unknown

NOT_THERE = Unknown(because="this side does not have it")
NOT_RESOLVED = Unknown(because="this side did not start, so it was never resolved")

_PLACE = re.compile(r"(?P<what>[^\[]+)(?:\[(?:rank (?P<rank>\d+))?(?:, )?(?:pool (?P<pool>\d+)|(?P<name>[^\]]*))\])?")


def value_at(capture: Capture, key: str) -> Known | Unknown:
    """The value of a canonical key, of a ledger line or pool, or of a leaf of the native configuration."""
    if key == "start":
        return said(capture)
    if key.startswith("start."):
        numbers = capture.failure.numbers if capture.failure else {}
        return numbers.get(key.removeprefix("start."), NOT_THERE)
    if not resolved(capture):
        return NOT_RESOLVED
    if key in capture.settings:
        return capture.settings[key].final
    return _named(capture, key) or _memory(capture, key) or _leaf(capture, key)


def _named(capture: Capture, key: str) -> Known | Unknown | None:
    match key:
        case "runner.name":
            return capture.runner.name
        case "kernels.attention_backend":
            return capture.runner.attention_backend
        case "admission.rule":
            return capture.admission.rule
        case "admission.preemption":
            return capture.admission.preemption
        case "processes":
            names = process_map(capture)
            return Known(value=[*names]) if names else NOT_THERE
    return None


def _memory(capture: Capture, key: str) -> Known | Unknown | None:
    """``kv.pool_bytes[rank 1, pool 1]``, ``kv.max_concurrency`` or ``memory.weights[rank 1]``."""
    place = _PLACE.fullmatch(key)
    what = place["what"] if place else ""
    if place is None or not (what in ("kv.pool_bytes", "kv.max_concurrency") or what.startswith("memory.")):
        return None
    ranks = capture.instances[0].ranks if capture.instances else ()
    number = int(place["rank"] or 0)
    if number >= len(ranks):
        return NOT_THERE
    if what.startswith("memory."):
        return _term(ranks[number], what.removeprefix("memory."))
    pool = _pool(ranks[number].pools, int(place["pool"] or 0), place["name"] or "")
    if pool is None:
        return NOT_THERE
    return pool.bytes if what == "kv.pool_bytes" else pool.max_concurrency


def _term(rank: Rank, name: str) -> Known | Unknown:
    return next((t.bytes for t in rank.ledger if t.name.replace(" ", "_") == name), NOT_THERE)


def _pool(pools: tuple[Pool, ...], number: int, name: str) -> Pool | None:
    if name:
        pairs = matched([name], [pool.name for pool in pools])
        return pools[pairs[0][1]] if pairs else None
    return pools[number] if number < len(pools) else None


def _leaf(capture: Capture, key: str) -> Known | Unknown:
    value = lookup(capture.native, key)
    return NOT_THERE if value is MISSING else Known(value=value)  # type: ignore[arg-type]
