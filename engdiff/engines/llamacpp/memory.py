"""How llama.cpp sizes its memory: the KV cache is asked for, not left over, so its size is a product.

Buffers are printed in MiB with two decimals; the bounds of each value say so. A cache over several devices is split
by layers: each device holds every cell of its layers.
"""

from __future__ import annotations

import re
from typing import Literal

from pydantic import JsonValue

from engdiff.engines.llamacpp import stated
from engdiff.engines.llamacpp.facts import Cache, Context, Fact, LogFacts, cited, fact
from engdiff.logs.statements import Statement
from engdiff.schema.capture import Factor, Group, Pool, Term
from engdiff.schema.values import Evidence, Known, Unknown, Value
from engdiff.units import MIB

HOST = "host"
NOWHERE = "device not stated"
GGML_BITS = {
    "f32": 32,
    "f16": 16,
    "bf16": 16,
    "q8_0": 8.5,
    "q5_1": 6,
    "q5_0": 5.5,
    "q4_1": 5,
    "q4_0": 4.5,
    "iq4_nl": 4.5,
}
"""Bits per element of the types a KV cache may have: block bytes x 8 / block elements (ggml-common.h block structs)."""

MEANING = {
    "model": "weights",
    "output": "logits of one step",
    "input": "tokens, positions and masks of one step",
    "KV": "keys and values of all slots",
    "RS": "recurrent state of all slots",
    "compute": "scratch for the largest step",
    "LoRA": "weights of adapters",
    "projector": "scratch of the encoder of images or sound",
}

_HOST_BUFFERS = ("CPU", "AMX", "BLAS")
_BUFFER_KIND = re.compile(r"_(?:Mapped|Private|Shared)$")
ONE_CELL = Unknown(because="llama.cpp allocates its cache in single cells, not in blocks")


def side(device: str) -> str:
    """The device whose memory a buffer takes: every CPU buffer type and every pinned one is host memory."""
    if device.startswith(_HOST_BUFFERS) or device.endswith("_Host"):
        return HOST
    return _BUFFER_KIND.sub("", device)


def devices(log: LogFacts) -> tuple[str, ...]:
    """Every device that holds a buffer, the host last; just the host when the log shows none."""
    served = log.served
    named = [d for d, _ in (*log.model_buffers, *log.projector)] + [d for d, _, _ in (served.buffers if served else [])]
    found = dict.fromkeys(side(d) for d in named)
    accelerators = [d for d in found if d != HOST]
    return (*accelerators, HOST) if HOST in found or not accelerators else tuple(accelerators)


def mib(printed: Fact) -> Known:
    """A printed size in bytes, with the bounds of its rounding."""
    assert printed.size is not None, "a buffer's size is a number with a unit"
    return printed.size


# --- the ledger -------------------------------------------------------------------------------------------------


def ledger(device: str, log: LogFacts) -> tuple[Term, ...]:
    """The buffers on one device, out of its memory where the log states that."""
    total = log.totals.get(device)
    if device == HOST:
        total = log.facts.get("host_total_mib") or log.totals.get("CPU")
    capacity: Value = Unknown(because="the log states no total for this device")
    if total is not None and total.size is not None:
        capacity = Known(value=total.size.value, basis="measured", evidence=total.line.evidence)
    terms = [Term(name="memory", kind="capacity", bytes=capacity, meaning="all memory of the device")]
    terms += [Term(name=n, kind="use", bytes=mib(f), draws_on="memory", meaning=m) for n, f, m in _uses(device, log)]
    return tuple(terms)


def _uses(device: str, log: LogFacts) -> list[tuple[str, Fact, str]]:
    served = log.served
    uses = [(f"weights ({d})", f, MEANING["model"]) for d, f in log.model_buffers if side(d) == device]
    for name, what, size in served.buffers if served else ():
        if side(name) == device:
            label = {"KV": "KV cache", "RS": "recurrent state"}.get(what, f"{what} buffer")
            uses.append((label, size, MEANING.get(what, f"state of the {what} layers")))
    if device == NOWHERE:
        uses += [("KV cache", fact(c.size, "size_mib"), MEANING["KV"]) for c in homeless(log) if c.size]
    uses += [("projector's compute buffer", f, MEANING["projector"]) for d, f in log.projector if side(d) == device]
    return uses


# --- the pools --------------------------------------------------------------------------------------------------


def pools(device: str, log: LogFacts) -> tuple[Pool, ...]:
    """The caches on this device, with the product that makes their size."""
    served = log.served
    if served is None:
        return ()
    found = []
    for index, cache in enumerate(served.caches, start=1):
        home = _home(cache, served)
        if device in home and (cache.size or cache.buffers):
            name = "KV cache" if len(served.caches) == 1 else f"KV cache {index} of {len(served.caches)}"
            split = len(home) > 1
            found.append(_pool(name, cache, log, device if split else None))
    return (*found, *_states(device, served))


def _home(cache: Cache, served: Context) -> set[str]:
    """Every device that holds a part of a cache."""
    return {side(d) for d, _ in cache.buffers} or _sole_home(served) or {NOWHERE}


def homeless(log: LogFacts) -> list[Cache]:
    """Caches whose size the log states and not where they are."""
    served = log.served
    return [c for c in served.caches if c.size and _home(c, served) == {NOWHERE}] if served else []


def _sole_home(served: Context) -> set[str]:
    """Where a cache is whose own buffer lines are not in the log: where the others are, if that is one device."""
    homes = {side(d) for d, what, _ in served.buffers if what == "KV"}
    return homes if len(homes) == 1 else set()


def _pool(name: str, cache: Cache, log: LogFacts, share_of: str | None) -> Pool:
    """One cache, or one device's share of it."""
    size, cells = cache.size, _cells(cache, log)
    tokens = _tokens(cache, cells)
    pool = Pool(
        name=name,
        bytes=_bytes(cache, share_of),
        blocks=ONE_CELL,
        block_tokens=_one(cells),
        tokens=tokens,
        max_concurrency=_sequences(cache, log),
        concurrency_at_tokens=cells,
        groups=(_group(cache, log, share_of),),
    )
    if size is None or size.name != "kv_cache" or share_of is not None:
        return pool
    return pool.model_copy(update={"factors": _factors(size)})


def _one(cells: Value) -> Value:
    """The smallest piece that the cache hands out, where it is known to have any."""
    if not isinstance(cells, Known):
        return ONE_CELL
    return Known(value=1, evidence=Evidence(source="rule", where="a cell holds one token"))


def _bytes(cache: Cache, share_of: str | None) -> Value:
    """The cache's size line; a share, and a cache without that line, is the sum of its buffers."""
    if cache.size is not None and share_of is None:
        return mib(fact(cache.size, "size_mib"))
    shares = [f for d, f in cache.buffers if share_of is None or side(d) == share_of]
    if len(shares) == 1:
        return mib(shares[0])
    lines = ", ".join(str(f.line.number) for f in shares)
    return Known(
        value=sum(int(str(mib(f).value)) for f in shares),
        low=sum(mib(f).low or 0 for f in shares),
        high=sum(mib(f).high or 0 for f in shares),
        basis="engine rule",
        evidence=Evidence(source="rule", where=f"sum of its buffers, lines {lines}"),
    )


def _exact(statement: Statement, group: str) -> Known:
    return Known(value=int(statement[group]), evidence=cited(statement, group).evidence)


def _cells(cache: Cache, log: LogFacts) -> Value:
    """The tokens that one request can have in this cache."""
    if cache.size and cache.size.get("cells"):
        return _exact(cache.size, "cells")
    if cache.plan:
        return _exact(cache.plan, "cells")
    if cache.init:
        return _exact(cache.init, "kv_size")
    return stated.context_total(log) or Unknown(because="the log does not state the cells of the cache")


def _tokens(cache: Cache, cells: Value) -> Value:
    """All tokens of the cache: its cells, in as many buffers as it has."""
    if not isinstance(cells, Known):
        return cells
    if cache.size is None and cache.plan is not None:
        return Unknown(because="the line that states how many buffers the cache has is not in the log")
    streams = int((cache.size.get("streams") if cache.size else None) or 1)
    value = int(str(cells.value)) * streams
    if cache.size is None or streams == 1:
        return cells
    where = f"cells x streams, line {cited(cache.size, 'cells').number}"
    return Known(value=value, evidence=Evidence(source="rule", where=where))


def _sequences(cache: Cache, log: LogFacts) -> Value:
    if cache.size and cache.size.get("seqs"):
        return _exact(cache.size, "seqs")
    return stated.slots(log) or Unknown(because="the log does not state how many sequences may run")


def _factors(size: Statement) -> tuple[Factor, ...]:
    streams = int(size.get("streams") or 1)
    line = cited(size, "cells")

    def known(value: float, basis: Literal["exact", "engine rule"] = "exact") -> Known:
        return Known(value=value, basis=basis, evidence=line.evidence)

    return (
        Factor(
            name="buffers" if streams > 1 else "shared buffer",
            value=known(streams) if size.get("streams") else _rule(1, f"one buffer before b5900, line {line.number}"),
            setting="scheduler.max_num_seqs",
        ),
        Factor(name="tokens in each", value=known(int(size["cells"])), setting="model.context_total"),
        Factor(name="bytes per token", value=_per_token(size), setting="kv.dtype"),
    )


def _rule(value: int, where: str) -> Known:
    return Known(value=value, basis="engine rule", evidence=Evidence(source="rule", where=where))


def _per_token(size: Statement) -> Known:
    line = cited(size, "size_mib")
    tokens = int(size["cells"]) * int(size.get("streams") or 1)
    value = round(float(size["size_mib"]) * MIB / tokens) if tokens else 0
    evidence = Evidence(source="rule", where=f"size / (cells x streams), line {line.number}")
    return Known(value=value, basis="engine rule", evidence=evidence)


KINDS: dict[str, Literal["full", "sliding window", "other"]] = {"non-SWA": "full", "SWA": "sliding window"}
"""What llama_kv_cache_iswa calls its two caches."""


def _group(cache: Cache, log: LogFacts, share_of: str | None) -> Group:
    size = cache.size
    unknown = Unknown(because="the log does not state it")
    whole = size is not None and size.name == "kv_cache" and share_of is None
    return Group(
        kind=_kind(cache, log),
        layers=_layers(cache) if share_of is None else Unknown(because="the log counts the layers of all devices"),
        block_tokens=_one(_exact(size, "cells")) if size is not None and size.get("cells") else ONE_CELL,
        bytes_per_block=_per_token(size) if size is not None and whole else unknown,
        detail=_detail(cache, share_of),
    )


def _kind(cache: Cache, log: LogFacts) -> Literal["full", "sliding window", "mla", "other"]:
    if cache.layers:
        return "mla"
    if cache.plan is None:
        return "full" if log.served is not None and len(log.served.caches) == 1 else "other"
    return KINDS.get(cache.kind, "other")


def _layers(cache: Cache) -> Value:
    for statement in (cache.size, cache.init):
        if statement is not None and statement.get("layers"):
            return _exact(statement, "layers")
    if cache.layers:
        last = cache.layers[-1]
        return Known(
            value=int(last["layer"]) + 1,
            basis="engine rule",
            evidence=Evidence(source="rule", where=f"layers are counted from 0, line {last.line.number}"),
        )
    return Unknown(because="the log does not state how many layers the cache has")


def _detail(cache: Cache, share_of: str | None) -> dict[str, JsonValue]:
    detail: dict[str, JsonValue] = {}
    if share_of is not None and isinstance(layers := _layers(cache), Known):
        detail["layers_of_all_devices"] = layers.value
    statement = cache.size or cache.init
    for group in ("k", "v"):
        if statement is not None and (text := statement.get(group)):
            detail[group] = text
    if cache.size is None or cache.size.name != "kv_cache":
        for group in ("k_mib", "v_mib"):
            if cache.size is not None and (text := cache.size.get(group)):
                detail[group] = float(text)
    if cache.layers:
        detail["kv_lora_rank"] = int(cache.layers[-1]["kv_lora_rank"])
    return detail


def _states(device: str, served: Context) -> list[Pool]:
    """Recurrent states: so many bytes for each sequence, however long it is."""
    homes = {side(d) for d, what, _ in served.buffers if what == "RS"}
    if len(homes) != 1 or device not in homes:
        return []
    no_tokens = Unknown(because="a state does not grow with its tokens")
    return [
        Pool(
            name="recurrent state",
            bytes=mib(fact(state, "size_mib")),
            blocks=no_tokens,
            block_tokens=no_tokens,
            tokens=no_tokens,
            max_concurrency=_exact(state, "seqs"),
            concurrency_at_tokens=no_tokens,
            groups=(
                Group(
                    kind="state",
                    layers=_exact(state, "layers"),
                    block_tokens=no_tokens,
                    bytes_per_block=no_tokens,
                    detail={"r": state["r"], "s": state["s"]},
                ),
            ),
        )
        for state in served.states
    ]
