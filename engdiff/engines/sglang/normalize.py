"""From SGLang's ServerArgs, wherever they were read, to canonical settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import JsonValue

from engdiff.engines.layers import MISSING, lookup, settle
from engdiff.knowledge.tables import Knowledge
from engdiff.schema.capture import Setting
from engdiff.schema.values import Evidence, Known, Unknown

KNOWLEDGE = Knowledge("engdiff.engines.sglang")

NEWEST = "0.5.23"
NAMINGS = (NEWEST, "0.5.12", "0.5.6", "0.2.15")
"""Versions with other names for a field, newest first: a log does not say which version wrote it."""

Cite = Callable[[str], Evidence]
"""From a dotted field of ServerArgs to where it was read."""

NOT_THERE = Unknown(because="ServerArgs does not hold it, as far as it was read")

PRINTED_IS_RESOLVED = "SGLang logs its arguments after it has filled them in, so what the user wrote is not known"


def settings(
    tree: Mapping[str, JsonValue], cite: Cite, effective: Mapping[str, Known], version: str | None = None
) -> dict[str, Setting]:
    """Settings for every key that the arguments or a deeper line state."""
    found: dict[str, Setting] = {}
    for key in KNOWLEDGE.names(version or NEWEST):
        native = _native(key, tree, version)
        value = lookup(tree, native) if native else MISSING
        if value is MISSING and key not in effective:
            continue
        resolved: Known | Unknown = NOT_THERE if value is MISSING else DECIDED_LATER
        if native and value is not MISSING and not _left_open(key, value, tree, effective):
            ours = translated(key, native, value, tree)
            resolved = Known(value=ours, evidence=_cited(ours, value, cite(native)))
        found[key] = _settled(resolved, effective.get(key), native)
    for key in effective.keys() - found.keys():
        found[key] = _settled(NOT_THERE, effective[key], None)
    return found


DECIDED_LATER = Unknown(because="the arguments leave it to the scheduler, and what that decided is not stated")

SCHEDULERS_OWN = {
    "model.dtype",
    "model.max_model_len",
    "kv.dtype",
    "scheduler.max_num_seqs",
    "scheduler.max_num_batched_tokens",
    "scheduler.chunked_prefill",
}
"""Settings that the scheduler decides when the arguments say nothing, or ``auto``."""


def _left_open(key: str, value: object, tree: Mapping[str, JsonValue], effective: Mapping[str, Known]) -> bool:
    """Whether the arguments do not hold what was decided; those of a CPU plan graphs of a GPU."""
    if key in effective:
        return False
    if key == "graphs.mode" and tree.get("device") == "cpu":
        return value not in (True, "disabled")
    return key in SCHEDULERS_OWN and value in (None, "auto")


def _settled(resolved: Known | Unknown, effective: Known | None, native: str | None) -> Setting:
    return settle(
        configured=None,
        declared=MISSING,
        resolved=resolved,
        effective=effective,
        native=native,
    )


def _cited(translated: JsonValue, printed: Any, evidence: Evidence) -> Evidence:
    """A word that is ours, not the log's, follows from the line and does not stand in it."""
    if evidence.source != "log" or not isinstance(translated, str) or translated.lower() in evidence.where.lower():
        return evidence
    return evidence.model_copy(update={"source": "rule", "where": f"{printed!r} in: {evidence.where}"})


def _native(key: str, tree: Mapping[str, JsonValue], version: str | None) -> str | None:
    """Where these arguments keep a setting; with no version known, under any of its names."""
    if version is not None:
        return KNOWLEDGE.names(version)[key].native
    paths = [KNOWLEDGE.names(naming)[key].native for naming in NAMINGS]
    return next((p for p in paths if p and lookup(tree, p) is not MISSING), None)


def translated(key: str, native: str, value: Any, tree: Mapping[str, JsonValue]) -> JsonValue:
    """The value in the registry's words."""
    if value is None:
        return None
    if key in _OPPOSITE and native.startswith(("disable_", "skip_")):
        return not value if isinstance(value, bool) else str(value)
    reading = _READINGS.get(key)
    ours: JsonValue = reading(value, tree) if reading else value
    return ours.removeprefix("torch.") if isinstance(ours, str) else ours


_OPPOSITE = {"kv.prefix_caching", "scheduler.async_scheduling", "load.warmup", "kernels.flashinfer_autotune"}

HICACHE_UNIT = 10**9
"""``--hicache-size`` is in units of 1e9 bytes (mem_cache/memory_pool_host.py 0.4.10.post2-0.5.23)."""


def _mode(value: Any, tree: Mapping[str, JsonValue]) -> JsonValue:  # noqa: ARG001
    if isinstance(value, bool):
        return "none" if value else "full"
    return "none" if value == "disabled" else str(value).lower()


def _size(value: Any, tree: Mapping[str, JsonValue]) -> JsonValue:  # noqa: ARG001
    return round(value * HICACHE_UNIT) if _is_number(value) else str(value)


def _positive(value: Any, tree: Mapping[str, JsonValue]) -> JsonValue:  # noqa: ARG001
    return bool(value > 0) if _is_number(value) else str(value)


def _several(value: Any, tree: Mapping[str, JsonValue]) -> JsonValue:  # noqa: ARG001
    return bool(value > 1) if _is_number(value) else str(value)


def _connector(value: Any, tree: Mapping[str, JsonValue]) -> JsonValue:
    """The transfer back end, where one is used at all."""
    return str(value) if tree.get("disaggregation_mode") not in (None, "null") else None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_READINGS: Mapping[str, Callable[[Any, Mapping[str, JsonValue]], JsonValue]] = {
    "graphs.mode": _mode,
    "kv.offload_bytes": _size,
    "kv.connector": _connector,
    "scheduler.chunked_prefill": _positive,
    "parallel.ep": _several,
}
