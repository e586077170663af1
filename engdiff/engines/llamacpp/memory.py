"""How llama.cpp sizes its memory: the KV cache is asked for, not left over, so its size is a product.

Buffers are printed in MiB with two decimals; the bounds of each value say so.
"""

from __future__ import annotations

from engdiff.engines.llamacpp.log import Context, Fact, LogFacts
from engdiff.schema.capture import Factor, Group, Pool, Term
from engdiff.schema.values import Evidence, Known, Unknown, Value
from engdiff.units import MIB

HALF_CENT_MIB = 0.005
"""Half of the last decimal that the log prints."""

HOST = "host"
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
    "KV": "keys and values of all slots",
    "RS": "recurrent state of all slots",
    "compute": "scratch for the largest step",
}


def side(device: str) -> str:
    """The device whose memory a buffer takes: every CPU buffer type and every pinned one is host memory."""
    return HOST if device.startswith("CPU") or device.endswith("_Host") else device


def devices(log: LogFacts) -> tuple[str, ...]:
    """Every device that holds a buffer, the host last; just the host when the log shows none."""
    served = log.served
    named = [d for d, _ in log.model_buffers] + [d for d, _, _ in (served.buffers if served else [])]
    found = dict.fromkeys(side(d) for d in named)
    accelerators = [d for d in found if d != HOST]
    return (*accelerators, HOST) if HOST in found or not accelerators else tuple(accelerators)


def mib(fact: Fact) -> Known:
    """A printed size in bytes, with the bounds of its rounding."""
    size = fact.amount
    return Known(
        value=round(size * MIB),
        low=(size - HALF_CENT_MIB) * MIB,
        high=(size + HALF_CENT_MIB) * MIB,
        basis="measured",
        evidence=Evidence(source="log", where=fact.line.text, line=fact.line.number),
    )


def ledger(device: str, log: LogFacts) -> tuple[Term, ...]:
    """The buffers on one device, out of its memory where the log states that."""
    total = log.facts.get("host_total_mib")
    capacity: Value = Unknown(because="the log states no total for this device")
    if device == HOST and total:
        capacity = Known(
            value=int(total.amount) * MIB,
            basis="measured",
            evidence=Evidence(source="log", where=total.line.text, line=total.line.number),
        )
    terms = [Term(name="memory", kind="capacity", bytes=capacity, meaning="all memory of the device")]
    terms += [Term(name=n, kind="use", bytes=mib(f), draws_on="memory", meaning=m) for n, f, m in _uses(device, log)]
    return tuple(terms)


def _uses(device: str, log: LogFacts) -> list[tuple[str, Fact, str]]:
    served = log.served
    uses = [(f"weights ({d})", f, MEANING["model"]) for d, f in log.model_buffers if side(d) == device]
    for name, what, fact in served.buffers if served else ():
        if side(name) == device:
            label = {"KV": "KV cache", "RS": "recurrent state"}.get(what, f"{what} buffer")
            uses.append((label, fact, MEANING[what]))
    return uses


def pools(device: str, log: LogFacts) -> tuple[Pool, ...]:
    """The KV cache on this device, with the product that makes its size."""
    served = log.served
    if served is None or not served.kv:
        return ()
    home = {side(d) for d, what, _ in served.buffers if what == "KV"}
    if device not in home:
        return ()
    if len(home) > 1:
        return (_split_pool(device, served),)
    return tuple(_pool(index, served) for index in range(len(served.kv)))


def _split_pool(device: str, served: Context) -> Pool:
    """A cache spread over devices: this device's share of the bytes; the log gives no cells by device."""
    shares = [f for d, what, f in served.buffers if what == "KV" and side(d) == device]
    because = Unknown(because="the log states cells for all devices together")
    size = sum(f.amount for f in shares)
    return Pool(
        name="KV cache",
        bytes=Known(value=round(size * MIB), basis="measured"),
        blocks=because,
        block_tokens=because,
        tokens=because,
        max_concurrency=because,
        concurrency_at_tokens=because,
    )


def _pool(index: int, served: Context) -> Pool:
    match, line = served.kv[index]
    evidence = Evidence(source="log", where=line.text, line=line.number)

    def known(value: float, basis: str = "exact") -> Known:
        return Known(value=value, basis=basis, evidence=evidence)  # type: ignore[arg-type]

    cells, streams, layers = int(match["cells"]), int(match["streams"] or 1), int(match["layers"])
    tokens = cells * streams
    size = float(match["mib"]) * MIB
    per_token = round(size / tokens) if tokens else 0
    one_block = Unknown(because="llama.cpp allocates its cache in single cells, not in blocks")
    name = "KV cache" if len(served.kv) == 1 else f"KV cache {index + 1} of {len(served.kv)}"
    slots = int(match["seqs"])
    return Pool(
        name=name,
        bytes=Known(
            value=round(size),
            low=size - HALF_CENT_MIB * MIB,
            high=size + HALF_CENT_MIB * MIB,
            basis="measured",
            evidence=evidence,
        ),
        blocks=one_block,
        block_tokens=known(1),
        tokens=known(tokens),
        max_concurrency=known(slots),
        concurrency_at_tokens=known(cells),
        factors=(
            Factor(
                name="buffers" if streams > 1 else "shared buffer",
                value=known(streams),
                setting="scheduler.max_num_seqs",
            ),
            Factor(name="tokens in each", value=known(cells), setting="model.context_total"),
            Factor(name="bytes per token", value=known(per_token, "engine rule"), setting="kv.dtype"),
        ),
        groups=(
            Group(
                kind="full" if len(served.kv) == 1 else "other",
                layers=known(layers),
                block_tokens=known(1),
                bytes_per_block=known(per_token, "engine rule"),
                detail={"k": match["k"], "v": match["v"]},
            ),
        ),
    )
