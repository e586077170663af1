"""The devices that a log of llama.cpp names, with as much of their memory as it states."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from pydantic import JsonValue

from engdiff.engines.llamacpp.facts import Fact, LogFacts, cited, device_name, fact, number
from engdiff.logs.statements import Statement
from engdiff.schema.capture import Device
from engdiff.schema.values import Known, Unknown, Value

_PAIR = re.compile(r'(\w+)=(?:"([^"]*)"|(\S*))')
"""One ``name=value`` of ollama's logger."""

DEVICE_LINES = ("device_info", "using_device", "cuda_device", "vulkan_device", "ollama_device")


@dataclass
class _Seen:
    """One device as the lines about it add up."""

    key: str
    name: str = ""
    total: Fact | None = None
    detail: dict[str, JsonValue] = field(default_factory=dict)


def devices(statements: Sequence[Statement], log: LogFacts) -> tuple[Device, ...]:
    """Every GPU that the log names, in the order in which it does; ``detail["as"]`` is what its buffers call it."""
    seen: list[_Seen] = []
    kind = "CUDA"
    for statement in statements:
        if statement.name == "backend_init":
            kind = statement["kind"]
        elif statement.name in DEVICE_LINES:
            _take(statement, kind, seen)
        elif statement.name == "metal_device":
            _found(seen, "Metal", statement["device"])
    for one in seen:
        one.total = one.total or log.totals.get(one.key)
    return tuple(
        Device(kind="gpu", name=one.name or one.key, memory_bytes=_memory(one), detail={"as": one.key, **one.detail})
        for one in seen
        if not one.key.upper().startswith("CPU")
    )


def _found(seen: list[_Seen], key: str, name: str) -> _Seen:
    """The device of this key; else one of this name that has only an id so far; else a new one."""
    one = next((one for one in seen if one.key == key), None)
    one = one or next((one for one in seen if one.name == name and one.key.startswith("GPU-")), None)
    if one is None:
        one = _Seen(key)
        seen.append(one)
    one.key = key
    one.name = one.name or name
    return one


def _take(statement: Statement, kind: str, seen: list[_Seen]) -> None:
    pairs = _pairs(statement)
    if pairs.get("library", "").lower() == "cpu":
        return
    described = pairs.get("description")
    key = (pairs.get("name") if described else pairs.get("id")) or device_name(statement, kind)
    name = statement.get("device") or described or pairs.get("name") or ""
    if not key:
        return
    one = _found(seen, key, name.strip())
    group = next((g for g in ("total_mib", "total_gib") if statement.get(g) is not None), None)
    one.total = fact(statement, group) if group else one.total
    stated = {
        "free_mib": number(statement.get("free_mib") or ""),
        "bus": statement.get("bus") or pairs.get("pci_id"),
        "compute_capability": statement.get("capability") or pairs.get("compute"),
    }
    one.detail |= {name: value for name, value in stated.items() if value}


def _pairs(statement: Statement) -> dict[str, str]:
    text = statement.get("pairs")
    return {name: quoted or bare for name, quoted, bare in _PAIR.findall(text)} if text else {}


def _memory(found: _Seen) -> Value:
    total = found.total
    if total is not None and total.size is not None:
        return Known(
            value=total.size.value,
            low=total.size.low,
            high=total.size.high,
            basis="measured",
            evidence=total.line.evidence,
        )
    if "free_mib" in found.detail:
        return Unknown(because=f"the log states only what was free: {found.detail['free_mib']} MiB")
    return Unknown(because="the log does not state its memory")


def driver(statements: Sequence[Statement]) -> Value:
    """The driver, which only ollama prints."""
    for statement in statements:
        if statement.name == "ollama_device" and (version := _pairs(statement).get("driver")):
            return Known(value=version, evidence=cited(statement, "pairs").evidence)
    return Unknown(because="the log does not state it")
