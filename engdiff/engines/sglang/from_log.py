"""From one start in a log of SGLang to the parts of a Capture."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pydantic import JsonValue

from engdiff.engines.sglang import admission, arguments, memory, normalize
from engdiff.engines.sglang.arguments import Arguments
from engdiff.engines.sglang.memory import RankSaid, SaidOfGraphs
from engdiff.logs.starts import Start
from engdiff.logs.statements import Statement
from engdiff.logs.values import amount, evidence, word
from engdiff.schema.capture import Capture, Device, Instance, Phase, Rank, Runner, Setting
from engdiff.schema.values import Evidence, Known, Unknown, Value, number, plain

KNOWLEDGE = normalize.KNOWLEDGE


def capture(start: Start, base: Capture) -> Capture:
    """``base`` with everything that the log states."""
    args = arguments.read(start)
    ranks = _ranks(start)
    effective = _effective(start, ranks)
    settings = normalize.settings(args.whole if args else {}, args.cite if args else _nowhere, effective)
    kind = _kind(start, args)
    return base.model_copy(
        update={
            "identity": base.identity.model_copy(update={"devices": _devices(kind, ranks)}),
            "launch": _launch(base, args),
            "native": _native(start, args, ranks),
            "settings": settings,
            "instances": _instances(start, ranks, settings, kind),
            "runner": _runner(settings),
            "admission": admission.rule(),
            "boot": _boot(start),
            "notes": (*base.notes, *_notes(start, args)),
        }
    )


def _nowhere(path: str) -> Evidence:
    return Evidence(source="log", where=path)


# --- how far it came --------------------------------------------------------------------------------------------

_STAGES = {
    "configuration": ("server args", "server args fragment", "distributed begin", "distributed end"),
    "load weights": ("weights begin", "checkpoint shards"),
    "profile memory": ("weights end",),
    "size the KV cache": ("kv dtype", "mamba pool", "kv pool", "sliding window tokens", "memory pool end"),
    "capture graphs": ("graphs begin", "graph sizes", "prefill graph sizes", "graph progress", "graphs end"),
    "warm up": ("capacity", "startup timings", "listening"),
    "serve": ("ready",),
}


def stage(start: Start) -> str:
    """The furthest phase that the start says it reached."""
    said = {statement.name for statement in start.statements}
    reached = [phase for phase, names in _STAGES.items() if not said.isdisjoint(names)]
    return reached[-1] if reached else "configuration"


# --- ranks ------------------------------------------------------------------------------------------------------


def _ranks(start: Start) -> dict[str, RankSaid]:
    """What each rank said of its memory, by how the prefix names it, in the order of their ranks."""
    by_speaker: dict[str, list[Statement]] = {}
    for statement in start.all(*memory.NAMES):
        by_speaker.setdefault(statement.speaker, []).append(statement)
    ordered = sorted(by_speaker.items(), key=lambda item: _order(item[1][0]))
    return {speaker: memory.sort(statements) for speaker, statements in ordered}


def _order(statement: Statement) -> tuple[int, ...]:
    return tuple(statement.said.ranks.get(name, 0) for name in ("dp", "pp", "tp", "ep"))


def _numbers(start: Start) -> dict[str, dict[str, int]]:
    return {s.speaker: dict(s.said.ranks) for s in start.all(*memory.NAMES)}


def _instances(
    start: Start, ranks: dict[str, RankSaid], settings: dict[str, Setting], kind: str | None
) -> tuple[Instance, ...]:
    if not ranks:
        return ()
    context, page = _final(settings, "model.max_model_len"), _final(settings, "kv.block_size")
    fraction, said = _final(settings, "kv.gpu_memory_utilization"), _said_of_graphs(start, settings)
    indices, first = _numbers(start), next(iter(ranks))
    built = tuple(
        Rank(
            **{name: index for name, index in indices[speaker].items() if name in ("tp", "pp", "dp", "ep")},
            device=speaker or kind or "the device",
            ledger=memory.ledger(rank, fraction, of_cpu=kind == "cpu"),
            pools=memory.pools(rank, context, page),
            graphs=memory.graphs(rank, said, speaks=speaker == first),
        )
        for speaker, rank in ranks.items()
    )
    return (Instance(role=_role(start), processes=(), ranks=built),)


def _role(start: Start) -> Any:
    args = arguments.read(start)
    mode = args.tree.get("disaggregation_mode") if args else None
    return mode if mode in ("prefill", "decode") else "serve"


def _final(settings: dict[str, Setting], key: str) -> Known | None:
    final = settings[key].final if key in settings else None
    return final if isinstance(final, Known) and final.value is not None else None


def _kind(start: Start, args: Arguments | None) -> str | None:
    """``gpu`` or ``cpu``, where the log tells."""
    device = args.tree.get("device") if args else None
    if isinstance(device, str):
        return "cpu" if device == "cpu" else "gpu"
    capacity = start.last_of("capacity")
    if capacity and capacity.get("device"):
        return capacity["device"]
    whole = " ".join(s.text for s in start.all("graphs begin", "graphs end", "graph sizes")).lower()
    return "gpu" if "cuda graph" in whole or start.last_of("nccl") else None


def _devices(kind: str | None, ranks: dict[str, RankSaid]) -> tuple[Device, ...]:
    if kind not in ("gpu", "cpu"):
        return ()
    unknown = Unknown(because="SGLang does not log the size of its devices")
    names = [speaker or kind for speaker in ranks] or [kind]
    return tuple(Device(kind=kind, name=name, memory_bytes=unknown) for name in names)  # type: ignore[arg-type]


# --- graphs -----------------------------------------------------------------------------------------------------


def _said_of_graphs(start: Start, settings: dict[str, Setting]) -> SaidOfGraphs:
    configured = _final(settings, "graphs.capture_sizes")
    mode = _final(settings, "graphs.mode")
    return SaidOfGraphs(
        sizes=_sizes(start, "decode") or configured or Unknown(because="the log lists no sizes"),
        prefill_sizes=_sizes(start, "prefill") or Unknown(because="the log lists no sizes of prompts"),
        progress=start.last_of("graph progress"),
        mode=_graph_mode(start) or mode or Unknown(because="the log does not name it"),
    )


def _sizes(start: Start, kind: str) -> Known | None:
    """The listed sizes of one kind of graphs; the last list holds."""
    name = "graph sizes" if kind == "decode" else "prefill graph sizes"
    for statement in reversed(start.statements):
        listed = statement.get("sizes")
        if not listed or statement.name not in (name, "graphs begin", "graphs end"):
            continue
        if statement.name.startswith("graphs") and memory.graph_kind(statement.get("what") or "") != kind:
            continue
        where, line = statement.cited("sizes")
        sizes = [size.strip() for size in listed.split(",") if size.strip()]
        if all(size.isdecimal() for size in sizes):  # a row may end inside a number
            return Known(value=[int(size) for size in sizes], evidence=evidence(where, line))
    return None


def _graph_mode(start: Start) -> Known | None:
    """The back end of the decode graphs, or that there are none."""
    for statement in start.all("graphs begin"):
        if memory.graph_kind(statement.get("what") or "") == "decode" and (said := word(statement, "backend")):
            return said
    off = next((s for s in start.all("graphs off") if s.get("prefill") is None), None)
    return None if off is None else _from_words(off, "said", "none")


def _from_words(statement: Statement, group: str, value: JsonValue) -> Known:
    """What a sentence means."""
    where, line = statement.cited(group)
    return Known(value=value, basis="engine rule", evidence=evidence(where, line))


# --- settings ---------------------------------------------------------------------------------------------------


def _effective(start: Start, ranks: dict[str, RankSaid]) -> dict[str, Known]:
    """What deeper lines state: the model runner, the pools, the scheduler."""
    found: dict[str, Known | None] = {
        **_from_capacity(start.last_of("capacity")),
        **_from_weights(start.first_of("weights end")),
        **_graph_settings(start),
        "kv.dtype": _element_type(start.first_of("kv dtype", "kv pool", "kv pool after capture")),
        "kv.pool_bytes": _pool_bytes(ranks.values()),
        "kv.offload_bytes": _host_cache(start),
        "kv.gpu_memory_utilization": _number(start.last_of("memory fraction adjusted"), "fraction"),
        "kernels.attention_backend": _attention(start),
        "kernels.moe_backend": _word(start.last_of("moe backend"), "backend"),
        "scheduler.async_scheduling": _overlap(start),
        "kv.prefix_caching": _prefix_caching(start),
    }
    return {key: value for key, value in found.items() if value is not None}


def _from_capacity(capacity: Statement | None) -> dict[str, Known | None]:
    if capacity is None:
        return {}
    chunk = _number(capacity, "chunk")
    size = number(chunk)
    chunks = None if capacity.get("chunk") is None else _from_words(capacity, "chunk", size is not None and size > 0)
    return {
        "model.max_model_len": _number(capacity, "context_tokens"),
        "scheduler.max_num_seqs": _number(capacity, "requests"),
        "scheduler.max_num_batched_tokens": chunk if size is not None and size > 0 else None,
        "scheduler.chunked_prefill": chunks,
    }


def _from_weights(weights: Statement | None) -> dict[str, Known | None]:
    if weights is None:
        return {}
    return {"model.dtype": _element_type(weights), "model.quantization": _word(weights, "quantization")}


def _element_type(statement: Statement | None) -> Known | None:
    found = _word(statement, "dtype")
    if found is None:
        return None
    return found.model_copy(update={"value": str(found.value).removeprefix("torch.")})


def _word(statement: Statement | None, group: str) -> Known | None:
    return None if statement is None else word(statement, group)


def _number(statement: Statement | None, group: str) -> Known | None:
    """A printed number, exact as a setting is."""
    return None if statement is None else amount(statement, group, basis="exact")


def _pool_bytes(ranks: Iterable[RankSaid]) -> Known | None:
    """The smallest of the ranks: it decides (``all_reduce`` with MIN over what is free)."""
    sizes = [size for rank in ranks if isinstance(size := memory.kv_bytes(rank), Known)]
    return min(sizes, key=lambda size: number(size) or 0, default=None)


def _host_cache(start: Start) -> Known | None:
    """Host memory of one rank for KV; states and indexers are allocated apart."""
    allocated = (s for s in start.all("host cache") if s["what"].endswith("hierarchical KV cache"))
    first = next(allocated, None)
    return None if first is None else amount(first, "host_gb")


def _attention(start: Start) -> Known | None:
    """The back ends in use; two where prompts and decoding have their own."""
    both = start.last_of("attention backends")
    if both:
        where, line = both.cited("decode")
        decode, prefill = both["decode"], both["prefill"]
        value = decode if decode == prefill else f"decode {decode}, prefill {prefill}"
        return Known(value=value, evidence=evidence(where, line))
    return _word(start.last_of("attention backend", "attention fallback"), "backend")


def _overlap(start: Start) -> Known | None:
    said = start.last_of("overlap off", "overlap on")
    return None if said is None else _from_words(said, "said", said.name == "overlap on")


def _prefix_caching(start: Start) -> Known | None:
    off = start.last_of("radix cache off")
    if off:
        return _from_words(off, "said", value=False)
    tree = start.last_of("tree cache")
    return _from_words(tree, "class", value=False) if tree and tree["class"].endswith("ChunkCache") else None


def _graph_settings(start: Start) -> dict[str, Known | None]:
    sizes, mode = _sizes(start, "decode"), _graph_mode(start)
    listed = plain(sizes)
    largest = None
    if sizes and isinstance(listed, list) and listed:
        numbers = [n for n in listed if isinstance(n, int)]
        largest = Known(value=max(numbers), basis="exact", evidence=sizes.evidence)
    return {"graphs.capture_sizes": sizes, "graphs.max_capture_size": largest, "graphs.mode": mode}


# --- the rest ---------------------------------------------------------------------------------------------------

_PLACED = {
    "server args",
    "server args fragment",
    "ready",
    "died",
    "stopped",
    "listening",
    "distributed begin",
    "startup timings",
    "own error",
    "traceback frame",
    "usage",
}
"""Statements whose content is kept elsewhere, or that have none."""


def _native(start: Start, args: Arguments | None, ranks: dict[str, RankSaid]) -> dict[str, JsonValue]:
    """The arguments under SGLang's own names, and all that the log states, as printed."""
    said: dict[str, JsonValue] = {}
    for statement in start.statements:
        if statement.name not in _PLACED:
            groups = {k: v.strip() for k, v in statement.match.groupdict().items() if v and v.strip()}
            said[statement.name] = {**groups} if groups else statement.text.strip()
    available: dict[str, JsonValue] = {
        speaker or "the only rank": {**rank.available} for speaker, rank in ranks.items() if rank.available
    }
    if available:
        said["available_gib"] = available
    native: dict[str, JsonValue] = {"log": said} if said else {}
    return {"server_args": {**args.tree}, **native} if args else native


def _launch(base: Capture, args: Arguments | None) -> Any:
    model = args.tree.get("model_path") if args else None
    if not isinstance(model, str):
        return base.launch
    return base.launch.model_copy(update={"model": model, "model_given": model})


def _runner(settings: dict[str, Setting]) -> Runner:
    attention: Value = _final(settings, "kernels.attention_backend") or Unknown(because="the log does not name it")
    one = Unknown(because="SGLang has one model runner")
    return Runner(
        name=one,
        because=one,
        attention_backend=attention,
        candidates=Unknown(because="SGLang does not log which back ends it considered"),
    )


def _boot(start: Start) -> tuple[Phase, ...]:
    """Phases that SGLang times itself; of several ranks the slowest counts."""
    phases = [
        _phase("start communication", start.all("distributed end"), "elapsed_seconds"),
        _phase("load weights", _main_weights(start), "elapsed_seconds"),
    ]
    for kind, name in memory.GRAPH_TERMS:
        ends = (s for s in start.all("graphs end") if memory.graph_kind(s.get("what") or "") == kind)
        phases.append(_phase(f"capture {name}", ends, "elapsed_seconds"))
    timings = list(start.all("startup timings"))
    phases += [
        _phase("size and allocate the KV cache", timings, "kv_seconds"),
        _phase("start of the scheduler", timings, "scheduler_seconds"),
        _phase("start of the tokenizer", timings, "tokenizer_seconds"),
    ]
    return tuple(phase for phase in phases if phase)


def _main_weights(start: Start) -> list[Statement]:
    """The first line of each rank; the second is the draft model's."""
    first: dict[str, Statement] = {}
    for statement in start.all("weights end"):
        first.setdefault(statement.speaker, statement)
    return list(first.values())


def _phase(name: str, statements: Iterable[Statement], group: str) -> Phase | None:
    times = [found for s in statements if (found := amount(s, group))]
    if not times:
        return None
    slowest = max(times, key=lambda value: number(value) or 0)
    return Phase(name=name, seconds=slowest, meaning="as SGLang times it")


def _notes(start: Start, args: Arguments | None) -> list[str]:
    notes = [normalize.PRINTED_IS_RESOLVED, *(f"server_args: {what}" for what in args.missing)] if args else []
    capped = start.last_of("max_total_tokens capped")
    if capped:
        notes.append(
            f"--max-total-tokens {capped['asked_tokens']} is beyond what fits; {capped['profiled_tokens']} hold"
        )
    return notes
