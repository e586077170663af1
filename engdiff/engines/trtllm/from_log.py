"""From one start in a log of TensorRT-LLM to the parts of a Capture."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from pydantic import JsonValue

from engdiff.engines.trtllm import admission, arguments, memory, normalize
from engdiff.engines.trtllm.arguments import Configurations, Printed
from engdiff.engines.trtllm.memory import Said
from engdiff.engines.trtllm.normalize import Deeper, Source
from engdiff.logs.starts import Start
from engdiff.logs.statements import Statement
from engdiff.logs.values import amount, word
from engdiff.schema.capture import Capture, Device, Graphs, Instance, Launch, Phase, Rank, Runner, Setting
from engdiff.schema.values import Evidence, Known, Unknown, Value, number, plain

KNOWLEDGE = normalize.KNOWLEDGE


def capture(start: Start, base: Capture) -> Capture:
    """``base`` with everything that the log states."""
    printed = arguments.read(start)
    ranks = memory.by_rank(start)
    version = start.first_of("version")
    stated = word(version, "version") if version else None
    settings = normalize.settings(
        _source(printed.args),
        _source(printed.pytorch),
        Deeper(_effective(start, printed, ranks), admission.given(start), _because(start, printed)),
        _version(stated or base.identity.version),
    )
    identity = {"devices": _devices(start, ranks)}
    return base.model_copy(
        update={
            "identity": base.identity.model_copy(update={**identity, **({"version": stated} if stated else {})}),
            "launch": _launch(base, start, printed),
            "native": _native(start, printed),
            "settings": settings,
            "instances": _instances(start, printed, ranks, settings),
            "runner": _runner(start, settings),
            "admission": admission.rule(settings.get("scheduler.capacity_policy")),
            "boot": _boot(start),
            "notes": (*base.notes, *_notes(start, printed, ranks)),
        }
    )


def _source(printed: Printed | None) -> Source | None:
    return Source(printed.tree, printed.cite) if printed else None


# --- how far it came --------------------------------------------------------------------------------------------

_STAGES: Mapping[str, tuple[str, ...]] = {
    "configuration": ("version", "backend", "pytorch_config", "attention_features", "max_num_sequences", "mpi"),
    "load weights": ("weight_files", "engine_size"),
    "profile memory": ("model_init", "sampler", "limits", "weights_torch", "activations", "outside_torch", "profile"),
    "size the KV cache": ("memory_at_kv", "estimated_kv", "primary_blocks", "kv_bytes", "kv_tokens", "kv_allocated"),
    "capture graphs": ("graphs_begin", "graph"),
    "warm up": ("torch_limit",),
    "serve": ("ready",),
}

_TWICE = {"kv_allocated", "graphs_begin", "graph"}
"""What the profiling pass of the PyTorch backend writes as well."""

_PYTORCH = ("estimation_pass", "pytorch_config", "attention_features", "sampler", "model_init", "limits")


def stage(start: Start) -> str:
    """The furthest phase that the start says it reached."""
    profiled = start.first_of(*memory.PROFILED) is not None
    waits = start.first_of(*_PYTORCH) is not None and not profiled
    reached = "configuration"
    for phase, names in _STAGES.items():
        said = {s.name for s in start.all(*names)}
        if waits and said & _TWICE:
            reached = "profile memory"
            said -= _TWICE
        elif profiled and said and said <= _TWICE and not _after_profiling(start, said):
            continue
        if said:
            reached = phase
    return reached


def _after_profiling(start: Start, names: Iterable[str]) -> bool:
    wanted, seen = set(names), False
    for statement in start.statements:
        seen = seen or statement.name in memory.PROFILED
        if seen and statement.name in wanted:
            return True
    return False


# --- identity and launch ----------------------------------------------------------------------------------------


def _devices(start: Start, ranks: Mapping[str, Said]) -> tuple[Device, ...]:
    unknown = Unknown(because="the log does not state the size of its devices")
    model = start.last_of("gpu_name")
    gpus = {s["gpu"]: s for s in start.all("rank_gpu")}
    sizes = {speaker: memory.device_bytes(said) or unknown for speaker, said in ranks.items()}
    if gpus:
        size = next(iter(sizes.values()), unknown) if len(sizes) <= 1 else unknown
        models = {s["gpu"]: s["name"].strip() for s in start.all("gpu_name")}
        return tuple(
            Device(kind="gpu", name=models.get(gpu, f"GPU {gpu}"), memory_bytes=size) for gpu in sorted(gpus, key=int)
        )
    name = model["name"].strip() if model else "GPU"
    named = [speaker for speaker in sizes if speaker]
    if named:
        return tuple(Device(kind="gpu", name=f"{name} of {s}", memory_bytes=sizes[s]) for s in named)
    size = sizes.get("", unknown)
    if model is None and not isinstance(size, Known):
        return ()
    return (Device(kind="gpu", name=name, memory_bytes=size),)


def _launch(base: Capture, start: Start, printed: Configurations) -> Launch:
    """The model as printed; the command is in no line."""
    bench = start.last_of("bench_model")
    model = printed.args.tree.get("model") if printed.args else None
    given = model if isinstance(model, str) else bench["model"] if bench else None
    return base.launch if given is None else base.launch.model_copy(update={"model": given, "model_given": given})


def _native(start: Start, printed: Configurations) -> dict[str, JsonValue]:
    parts = {
        "config": printed.args.tree if printed.args else None,
        "PyTorchConfig": printed.pytorch.tree if printed.pytorch else None,
        "AttentionRuntimeFeatures": printed.features.tree if printed.features else None,
        "components": _components(start),
        "log": _log(start),
    }
    return {name: {**part} for name, part in parts.items() if part}


def _components(start: Start) -> dict[str, JsonValue]:
    """The table of a failed start: free memory before and after each component, in GiB as printed."""
    return {c.name: {"free_before_gib": c.before, "free_after_gib": c.after} for c in memory.components(start)}


def _log(start: Start) -> dict[str, JsonValue]:
    """What each kind of line states, as printed, of its last occurrence; the profiling pass comes before it."""
    found: dict[str, JsonValue] = {}
    for statement in start.statements:
        groups = {
            name: text.strip()
            for name, text in statement.match.groupdict().items()
            if text is not None and name != "args"
        }
        if groups:
            found[statement.name] = {**groups}
    return found


# --- settings ---------------------------------------------------------------------------------------------------


def _effective(start: Start, printed: Configurations, ranks: Mapping[str, Said]) -> dict[str, Known]:
    """What deeper lines state: the worker, the pool, the scheduler."""
    limits, features = start.last_of("limits", "v2_scheduler"), printed.features
    found: dict[str, Known | None] = {
        "model.max_model_len": _longest_request(start),
        "scheduler.max_num_batched_tokens": _number(limits, "max_num_tokens")
        or _number(start.last_of("max_num_tokens"), "value"),
        "scheduler.max_num_seqs": _number(limits, "max_batch_size")
        or _number(limits, "max_num_requests")
        or _number(start.last_of("max_batch_size"), "value"),
        "kv.gpu_memory_utilization": _fraction(start),
        "kv.pool_bytes": _pool_bytes(ranks.values()),
        "kv.block_size": _block_size(ranks.values()) or _number(start.last_of("flash_mla"), "tokens_per_block"),
        "kv.dtype": _kv_dtype(start),
        "kv.offload_bytes": _number(start.last_of("kv_host_quota"), "size_gib"),
        "kv.prefix_caching": _prefix_caching(start, features),
        "scheduler.chunked_prefill": _chunked_prefill(start, features),
        "scheduler.async_scheduling": _overlap(start),
        "scheduler.capacity_policy": admission.policy(start, printed.args),
        "scheduler.class": admission.scheduler(start),
        **_graph_settings(start, ranks),
    }
    return {key: value for key, value in found.items() if value is not None}


def _number(statement: Statement | None, group: str) -> Known | None:
    """A printed number, exact as a setting is."""
    return None if statement is None else amount(statement, group, basis="exact")


def _kv_dtype(start: Start) -> Known | None:
    """``auto`` leaves it to the checkpoint, of which no line states it."""
    stated = start.last_of("kv_quantization")
    if stated is not None and stated["dtype"] != "auto":
        return word(stated, "dtype")
    bench = start.last_of("bench_kv_dtype")
    if bench is None or bench["dtype"] in ("None", "auto"):
        return None
    return memory.sentence(bench, "dtype", value=bench["dtype"].lower())


FLOAT_DIGITS = 7
"""What a 32-bit float holds: 0.9 is printed as 0.8999999761581421."""


def _fraction(start: Start) -> Known | None:
    for name in ("profile", "kv_fraction_and_tokens", "draft_kv", "kv_fraction_default"):
        found = _number(start.last_of(name), "fraction")
        printed = number(found)
        if found is None or printed is None:
            continue
        meant = float(f"{printed:.{FLOAT_DIGITS}g}")
        exact = found.model_copy(update={"low": None, "high": None})
        if meant == printed:
            return exact
        line = found.evidence.line if found.evidence else None
        where = Evidence(source="rule", where=f"{printed} as a 32-bit float, line {line}", line=line)
        return exact.model_copy(update={"value": meant, "basis": "engine rule", "evidence": where})
    bench = start.last_of("bench_kv_fraction")
    percent = number(_number(bench, "fraction_percent"))
    return memory.sentence(bench, "fraction_percent", value=percent / 100) if bench and percent is not None else None


def _pool_bytes(ranks: Iterable[Said]) -> Known | None:
    """The smallest of the ranks: it decides."""
    sizes = [size for said in ranks if isinstance(size := memory.pool_bytes(said), Known)]
    return min(sizes, key=lambda size: number(size) or 0, default=None)


def _block_size(ranks: Collection[Said]) -> Known | None:
    for said in ranks:
        for pool in memory.pools(said, None, None):
            if isinstance(pool.block_tokens, Known):
                return pool.block_tokens
    return next((found for said in ranks if (found := memory.block_tokens(said))), None)


def _feature(features: Printed | None, name: str) -> Known | None:
    value = features.tree.get(name) if features else None
    if features is None or not isinstance(value, bool):
        return None
    return Known(value=value, evidence=features.cite(name))


def _prefix_caching(start: Start, features: Printed | None) -> Known | None:
    if off := start.last_of("block_reuse_off"):
        return memory.sentence(off, "said", value=False)
    if stated := start.last_of("block_reuse"):
        return memory.sentence(stated, "state", value=stated["state"] == "enabled")
    return _feature(features, "cache_reuse")


def _chunked_prefill(start: Start, features: Printed | None) -> Known | None:
    if off := start.last_of("chunking_off"):
        return memory.sentence(off, "said", value=False)
    length, policy = start.last_of("max_input_len"), start.last_of("chunking_policy")
    if length:
        return memory.sentence(length, "rule", value="chunked context is enabled" in length["rule"])
    if policy and policy["policy"] != "None":  # none named is no statement: the runtime then takes a default
        return memory.sentence(policy, "policy", value=True)
    return _feature(features, "chunked_prefill")


def _overlap(start: Start) -> Known | None:
    if off := start.last_of("overlap_off"):
        return memory.sentence(off, "said", value=False)
    stated = start.last_of("trt_overlap") or start.last_of("trt_overlap_default")
    return None if stated is None else memory.sentence(stated, "value", value=stated["value"] in ("1", "true"))


def _captures(first: Statement) -> Known:
    line = first.line
    where = Evidence(source="rule", where=f"a graph is captured: line {line.number}", line=line.number, file=line.file)
    return Known(value=normalize.DECODE, basis="engine rule", evidence=where)


def _longest_request(start: Start) -> Known | None:
    """What the worker ended with: cut down to what the pool holds, or grown by what it needs itself."""
    stated = start.last_of("limits", "length_reduced") or start.last_of("inferred_max_seq_len", "max_sequence_len")
    groups = ("max_seq_len", "value", "reduced")
    return next((found for group in groups if stated and (found := _number(stated, group))), None)


def _because(start: Start, printed: Configurations) -> dict[str, str]:
    """Why the worker does something else than the arguments say, or what is known of what it does."""
    found: dict[str, str | None] = {
        "scheduler.capacity_policy": admission.because(admission.policy(start, printed.args), start),
        "kv.prefix_caching": _reason(start.last_of("block_reuse_off"), "block reuse is off"),
        "scheduler.chunked_prefill": _reason(start.last_of("chunking_off"), "prompts are not split"),
        "scheduler.async_scheduling": _reason(start.last_of("overlap_off"), "the overlap scheduler is off"),
        "kv.block_size": _reason(start.last_of("flash_mla"), "the block size is changed"),
        "model.max_model_len": _reason(start.last_of("length_reduced"), "the KV cache holds no longer request"),
    }
    return {key: words for key, words in found.items() if words}


LONGEST_REASON = 200
"""Of the engine's own lines the longest of these has 150 characters; longer is what somebody joined."""


def _reason(statement: Statement | None, words: str) -> str | None:
    """The engine's own message; the piece that says it where several were joined."""
    if statement is None:
        return None
    said = statement.text.strip()
    return f"{words}: “{said if len(said) <= LONGEST_REASON else statement.match[0].strip()}”"


def _version(value: Known | Unknown) -> str | None:
    stated = plain(value)
    return stated if isinstance(stated, str) else None


def _graph_settings(start: Start, ranks: Mapping[str, Said]) -> dict[str, Known | None]:
    for said in ranks.values():
        lines = memory.graph_lines(start, said)
        if largest := memory.largest_graph(lines):
            return {
                "graphs.capture_sizes": memory.graph_sizes(start, lines),
                "graphs.max_capture_size": largest,
                "graphs.mode": _captures(lines[0]),
            }
    return {}


# --- instances --------------------------------------------------------------------------------------------------


def _instances(
    start: Start, printed: Configurations, ranks: Mapping[str, Said], settings: Mapping[str, Setting]
) -> tuple[Instance, ...]:
    if not ranks:
        return ()
    context, block = _final(settings, "model.max_model_len"), _final(settings, "kv.block_size")
    table = memory.components(start)
    built = tuple(
        Rank(
            **_place(speaker, printed),
            device=_device_of(start, speaker),
            ledger=memory.ledger(said, table),
            pools=memory.pools(said, context, block),
            graphs=_graphs(start, said, settings),
        )
        for speaker, said in ranks.items()
    )
    return (Instance(processes=(), ranks=built),)


def _final(settings: Mapping[str, Setting], key: str) -> Known | None:
    final = settings[key].final if key in settings else None
    return final if isinstance(final, Known) and final.value is not None else None


def _place(speaker: str, printed: Configurations) -> dict[str, int]:
    """Which part of the model a rank has: ranks of one pipeline stage follow one another (mapping.py 0.5 to newest)."""
    index = memory.rank_index(speaker)
    tp = printed.args.tree.get("tensor_parallel_size") if printed.args else None
    if isinstance(tp, int) and not isinstance(tp, bool) and tp > 0:
        return {"tp": index % tp, "pp": index // tp}
    return {"tp": index}


def _device_of(start: Start, speaker: str) -> str:
    index = memory.rank_index(speaker)
    bound = [s for s in start.all("rank_gpu") if int(s["rank"]) == index]
    return f"GPU {bound[-1]['gpu']}" if bound else speaker or "GPU"


def _graphs(start: Start, said: Said, settings: Mapping[str, Setting]) -> Graphs:
    lines = memory.graph_lines(start, said)
    unsaid = Unknown(because="TensorRT-LLM does not log it")
    count = start.last_of("graphs_begin")
    prefill = sorted({int(s["tokens"]) for s in start.all("prefill_graph")})
    where = Evidence(source="rule", where="one graph for each line that warms one up")
    return Graphs(
        mode=_final(settings, "graphs.mode") or Unknown(because="no line is about graphs"),
        sizes=memory.graph_sizes(start, lines) or Unknown(because="the log does not name every captured size"),
        prefill_sizes=Known(value=[*prefill], basis="engine rule", evidence=where)
        if prefill
        else Unknown(because="no line names a captured prompt size"),
        captured=(_number(count, "count") if count else None) or Unknown(because="the log does not count its graphs"),
        bytes=unsaid,
        seconds=unsaid,
    )


# --- runner, boot, notes ----------------------------------------------------------------------------------------


def _runner(start: Start, settings: Mapping[str, Setting]) -> Runner:
    attention: Value = _final(settings, "kernels.attention_backend") or Unknown(
        because="the log does not name the attention back end"
    )
    return Runner(
        name=_runner_name(start) or Unknown(because="the log does not name the back end"),
        because=Unknown(because="TensorRT-LLM gives no reason"),
        attention_backend=attention,
        candidates=Unknown(because="TensorRT-LLM lists none"),
    )


def _runner_name(start: Start) -> Known | None:
    if stated := start.last_of("backend"):
        return word(stated, "backend")
    for names, runner in (
        (("pytorch_config", "attention_features", "profile", "sampler"), "PyTorch"),
        (("max_num_sequences", "execution_context", "runtime_buffers", "kv_bytes", "kv_tokens"), "TensorRT"),
    ):
        if line := start.first_of(*names):
            where = f"line {line.line.number} ({line.name}) is written by this back end only"
            return Known(value=runner, basis="engine rule", evidence=Evidence(source="rule", where=where))
    return None


def _boot(start: Start) -> tuple[Phase, ...]:
    seconds = _seconds(start.last_of("model_init"), "total_seconds") or _engine_load(start.last_of("engine_load"))
    if seconds is None:
        return ()
    return (Phase(name="load weights", seconds=seconds, meaning="the model is built and its weights are loaded"),)


def _engine_load(statement: Statement | None) -> Known | None:
    """Milliseconds as seconds: the slowest rank is not told from the others, the last one counts."""
    took = _number(statement, "took_ms")
    if took is None:
        return None
    line = took.evidence.line if took.evidence else None
    where = Evidence(source="rule", where=f"milliseconds / 1000, line {line}", line=line)
    return took.model_copy(update={"value": (number(took) or 0) / 1000, "basis": "engine rule", "evidence": where})


def _seconds(statement: Statement | None, group: str) -> Known | None:
    return None if statement is None else amount(statement, group)


def _notes(start: Start, printed: Configurations, ranks: Mapping[str, Said]) -> tuple[str, ...]:
    notes = [f"of the printed configuration is missing: {words}" for words in printed.missing()]
    world = max((int(s["size"]) for s in start.all("mpi")), default=1)
    if world > 1 and not any(ranks):
        notes.append(
            f"{world} ranks wrote this log, and their lines do not name them: what they repeat is shown once, "
            "never summed"
        )
    for speaker, said in ranks.items():
        others = memory.allocation(said).others
        if others and not any(note.startswith("allocations of the KV cache") for note in notes):
            numbers = ", ".join(dict.fromkeys(_size_text(s) for s in others))
            whose = f"{speaker}: " if speaker else ""
            notes.append(
                f"allocations of the KV cache that differ were stated as well ({whose}{numbers}): other ranks, "
                "or the cache of a draft"
            )
    if start.last_of("engine_version") and not start.first_of("version"):
        built = start.last_of("engine_version")
        assert built is not None
        notes.append(
            f"the engine file was built by version {built['version']}; the log does not state which one runs it"
        )
    if _may_be_the_dry_run(start):
        notes.append(
            "the PyTorch back end allocates a small cache for its profiling pass first, and the log does not show the "
            "end of that pass: the cache, its tokens and the longest request may be those of the pass"
        )
    reduced = start.last_of("length_reduced")
    if reduced and memory.allocation(next(iter(ranks.values()), Said())).size is not None:
        length = reduced.get("value") or reduced.get("reduced")
        notes.append(f"the longest request was cut down to {length} tokens, which is what the KV cache holds")
    return tuple(notes)


def _may_be_the_dry_run(start: Start) -> bool:
    """Whether the stated cache may be the small one of the profiling pass, of which the log holds neither end."""
    return (
        not start.ready
        and start.first_of("limits", "pytorch_config") is not None
        and start.first_of("kv_allocated") is not None
        and start.first_of(*memory.PROFILED, *memory.ESTIMATING) is None
    )


def _size_text(statement: Statement) -> str:
    size = statement.get("size_gib")
    return f"{size} GiB" if size else f"{statement.get('size_bytes')} bytes"
