"""How vLLM sizes its KV pool, by version and platform: a limit, what is used, and what remains.

GPU (vllm/v1/worker/gpu_worker.py ``determine_available_memory``): limit = total x utilisation.
To 0.26: remainder = limit - weights - non-torch - activation peak - graphs.
From 0.27: remainder = limit - consumed - transient peak - graphs.
An estimate of graphs is made from 0.18 on, and charged where VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS is on.
From 0.34 on the pool may be sized again by what is free after warm-up (``enable_extensible_kv_cache``).
CPU (vllm/v1/worker/cpu_worker.py): from the release that has ``requested_cpu_memory`` on, limit = node memory x
utilisation, remainder = limit - resident memory of the worker; with an explicit size, that size.
"""

from __future__ import annotations

from typing import Any

from engdiff.knowledge.versions import holds
from engdiff.schema.capture import Group, Pool, Term
from engdiff.schema.values import REPEAT_RELATIVE, Basis, Evidence, Known, Unknown, Value, number

Tree = dict[str, Any]

RESIDENT_PLAY = 0.10
"""How far a worker's resident memory lies off its middle from launch to launch, as a share. Measured on 0.20.2: 931 and
943 MiB with a warm compile cache, 1,113 MiB with a cold one; on 0.32.0: 714 to 725 MiB, warm and cold."""

CHARGED_IF = "VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS"

ESTIMATE_IN_PEAK_ONCE = ("0.18.0", "0.18.1")
"""Worker.peak_activation_memory holds the graphs that were charged: in these, not in 0.19 to 0.26, and again from 0.27
on, where the worker counts ``total_consumed`` (vllm/v1/worker/gpu_worker.py 0.17.1 to 0.34.0)."""

KINDS = {
    "FullAttentionSpec": "full",
    "SlidingWindowSpec": "sliding window",
    "ChunkedLocalAttentionSpec": "chunked",
    "MLAAttentionSpec": "mla",
    "SlidingWindowMLASpec": "mla",
    "MambaSpec": "state",
    "CrossAttentionSpec": "cross",
}
"""KV cache spec classes (vllm/v1/kv_cache_interface.py)."""


OF_ALL_LAYERS = frozenset({"UniformTypeKVCacheSpecs"})
"""Specs whose page is that of all their layers: one kind of attention, heads of several sizes
(vllm/v1/kv_cache_interface.py)."""


def known(value: object, where: str, basis: str = "measured") -> Value:
    """A number from the probe, or unknown when it is none."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return Known(value=value, basis=basis, evidence=Evidence(source="probe", where=where))  # type: ignore[arg-type]
    return Unknown(because=f"this version does not report {where}")


def ledger(core: Tree, worker: Tree) -> tuple[Term, ...]:
    """The worker's memory, as it counted it; an explicit KV size has its own, shorter account."""
    asked = _asked_bytes(core)
    if asked is not None:
        return _explicit(core, asked)
    if (worker.get("memory") or {}).get("requested_memory") is not None:
        return _gpu(core, worker)
    return _cpu(core, worker)


def _asked_bytes(core: Tree) -> int | None:
    """The size of the cache where it was set outright."""
    size = ((core.get("config") or {}).get("cache_config") or {}).get("kv_cache_memory_bytes")
    return size if isinstance(size, int) else None


def _budget(core: Tree) -> Value:
    return known((core.get("kv") or {}).get("available_bytes"), "EngineCore.available_gpu_memory_for_kv_cache")


def _explicit(core: Tree, explicit: int) -> tuple[Term, ...]:
    asked = Known(value=explicit, evidence=Evidence(source="probe", where="cache_config.kv_cache_memory_bytes"))
    return (
        Term(name="KV cache asked for", kind="limit", bytes=asked, meaning="set outright; nothing is profiled"),
        *_pool_and_rest(core, "KV cache asked for"),
    )


def _pool_and_rest(core: Tree, limit: str) -> tuple[Term, ...]:
    """The pool is whole blocks of its budget; the rest is smaller than one block."""
    budget, pool = (
        _budget(core),
        known((core.get("kv") or {}).get("tensor_bytes"), "kv_cache_config.kv_cache_tensors", "exact"),
    )
    terms = [
        Term(name="KV cache", kind="remainder", bytes=pool, draws_on=limit, meaning="what is left, in whole blocks")
    ]
    if isinstance(budget, Known) and isinstance(pool, Known):
        rest = int(budget.value) - int(pool.value)  # type: ignore[arg-type]
        if rest:
            value = Known(value=rest, basis="engine rule")
            name, meaning = _rest(core)
            terms.append(Term(name=name, kind="remainder", bytes=value, draws_on=limit, meaning=meaning))
    return tuple(terms)


def _rest(core: Tree) -> tuple[str, str]:
    """What lies between the budget and the pool, and what that means."""
    if ((core.get("config") or {}).get("cache_config") or {}).get("enable_extensible_kv_cache"):
        return "kept after warm-up", "graphs, and a margin: the pool is sized again by what is free after warm-up"
    return "less than one block", "rounding"


def _cpu(core: Tree, worker: Tree) -> tuple[Term, ...]:
    memory, node = worker.get("memory") or {}, worker.get("node_memory") or {}
    total = known(node.get("total_memory"), "get_memory_node_info().total_memory")
    limit = known(memory.get("requested_cpu_memory"), "CPUWorker.requested_cpu_memory", "engine rule")
    budget = _budget(core)
    if not isinstance(limit, Known) or not isinstance(budget, Known):
        return (
            Term(
                name="KV cache space",
                kind="limit",
                bytes=budget,
                meaning="VLLM_CPU_KVCACHE_SPACE or this version's default",
            ),
            *_pool_and_rest(core, "KV cache space"),
        )
    resident = int(limit.value) - int(budget.value)  # type: ignore[arg-type]
    play = RESIDENT_PLAY * resident
    consumed = Known(value=resident, low=resident - play, high=resident + play, basis="measured")
    return (
        Term(name="memory of the node", kind="capacity", bytes=total),
        Term(
            name="vLLM may use",
            kind="limit",
            bytes=limit,
            draws_on="memory of the node",
            meaning="memory x gpu_memory_utilization",
        ),
        Term(
            name="process of the worker",
            kind="use",
            bytes=consumed,
            draws_on="vLLM may use",
            meaning="resident memory: libraries, weights, buffers",
        ),
        *_pool_and_rest(core, "vLLM may use"),
    )


def _gpu(core: Tree, worker: Tree) -> tuple[Term, ...]:
    memory, snapshot = worker.get("memory") or {}, worker.get("snapshot") or {}
    limit = "vLLM may use"
    terms = [
        Term(
            name="device memory",
            kind="capacity",
            bytes=known(snapshot.get("total_memory"), "init_snapshot.total_memory"),
        ),
        Term(
            name=limit,
            kind="limit",
            bytes=known(memory.get("requested_memory"), "Worker.requested_memory", "engine rule"),
            draws_on="device memory",
            meaning="device memory x gpu_memory_utilization",
        ),
    ]
    terms += [
        Term(name=name, kind="use", bytes=known(value, where), draws_on=limit, meaning=meaning)
        for name, value, where, meaning in _gpu_uses(worker)
        if value is not None
    ]
    return balanced((*terms, *_estimated_graphs(core, memory, limit), *_pool_and_rest(core, limit)), limit)


def _gpu_uses(worker: Tree) -> tuple[tuple[str, object, str, str], ...]:
    """Name, bytes, attribute and meaning of what is taken out of the limit before graphs."""
    memory, runner = worker.get("memory") or {}, worker.get("runner") or {}
    peak, consumed = memory.get("peak_activation_memory"), memory.get("total_consumed")
    activation = ("activation peak", peak, "Worker.peak_activation_memory", "largest step, profiled")
    if consumed is not None:
        return (("consumed", consumed, "Worker.total_consumed", "GPU memory consumed after loading"), activation)
    weights, outside = runner.get("model_memory_usage"), memory.get("non_torch_memory")
    return (
        ("weights", weights, "GPUModelRunner.model_memory_usage", "parameters and buffers of the model"),
        activation,
        ("outside torch", outside, "Worker.non_torch_memory", "communication libraries, context"),
    )


def _estimated_graphs(core: Tree, memory: Tree, limit: str) -> tuple[Term, ...]:
    """The estimate of graph memory: within the activation peak, beside it, or printed only."""
    estimate = memory.get("cudagraph_memory_estimate")
    if estimate is None:
        return ()
    charged = (core.get("variables") or {}).get(CHARGED_IF)
    version = str((core.get("versions") or {}).get("vllm"))
    first, last = ESTIMATE_IN_PEAK_ONCE
    in_peak = memory.get("total_consumed") is not None or holds(version, since=first, until=last)
    draws_on, meaning = None, "estimate, not charged to the budget"
    if charged is True:
        draws_on = "activation peak" if in_peak else limit
        meaning = "estimate, charged to the budget" + (" within the activation peak" if in_peak else "")
    elif charged is not False:
        meaning = f"estimate; whether it is charged to the budget is not known without {CHARGED_IF}"
    value = known(estimate, "Worker.cudagraph_memory_estimate")
    return (Term(name="graphs", kind="use", bytes=value, draws_on=draws_on, meaning=meaning),)


def balanced(terms: tuple[Term, ...], limit: str) -> tuple[Term, ...]:
    """The ledger with what its lines do not explain, when every line is known."""
    parts = [t.bytes for t in terms if t.draws_on == limit]
    whole = next(t.bytes for t in terms if t.name == limit)
    sizes = [number(part) for part in parts]
    limit_bytes = number(whole)
    if limit_bytes is None or any(size is None for size in sizes):
        return terms
    rest = round(limit_bytes - sum(size for size in sizes if size is not None))
    if rest == 0:
        return terms
    value = Known(value=rest, basis="engine rule")
    return (
        *terms,
        Term(name="unexplained", kind="remainder", bytes=value, draws_on=limit, meaning="no line accounts for it"),
    )


def pool(core: Tree, terms: tuple[Term, ...]) -> tuple[Pool, ...]:
    """The KV pool from the scheduler's configuration; ``terms`` is the ledger that it is the remainder of."""
    kv = core.get("kv") or {}
    if "num_blocks" not in kv:
        return ()
    config = core.get("config") or {}
    longest = (config.get("model_config") or {}).get("max_model_len")
    basis = "measured" if _asked_bytes(core) is None else "exact"
    concurrency = known(kv.get("max_concurrency"), "get_max_concurrency_for_kv_cache_config", basis)
    groups = tuple(group_of(g) for g in kv.get("groups") or () if isinstance(g, dict) and "spec" in g)
    blocks = [size for g in groups if (size := number(g.block_tokens)) is not None]
    return (
        Pool(
            name="KV cache",
            bytes=_bounded(known(kv.get("tensor_bytes"), "sum of kv_cache_config.kv_cache_tensors", basis), terms),
            blocks=known(kv.get("num_blocks"), "kv_cache_config.num_blocks", basis),
            block_tokens=known(min(blocks, default=None), "kv_cache_groups[].kv_cache_spec.block_size", "exact"),
            tokens=_tokens(concurrency, longest),
            max_concurrency=concurrency,
            concurrency_at_tokens=known(longest, "model_config.max_model_len", "exact"),
            groups=groups,
        ),
    )


def _bounded(size: Value, terms: tuple[Term, ...]) -> Value:
    """The pool with the bounds that the measured lines of its ledger leave it: they differ from launch to launch."""
    bytes_ = number(size)
    if not isinstance(size, Known) or bytes_ is None or size.basis != "measured":
        return size
    limit = next((term.draws_on for term in terms if term.name == "KV cache"), None)
    play = sum(_play(term.bytes) for term in terms if term.kind == "use" and term.draws_on == limit)
    return size.model_copy(update={"low": bytes_ - play, "high": bytes_ + play})


def _play(size: Value) -> float:
    """How far a measured line may lie off in another launch, in bytes: its own bounds, else what is usual."""
    if not isinstance(size, Known):
        return 0.0
    if size.high is not None:
        return size.high - (number(size) or 0.0)
    return REPEAT_RELATIVE * (number(size) or 0.0)


def _tokens(concurrency: Value, longest: object) -> Value:
    """Tokens as concurrency x longest request: what vLLM prints from 0.20 on, computed the same for every version."""
    if isinstance(concurrency, Known) and isinstance(longest, int):
        evidence = Evidence(
            source="rule", where="int(max_concurrency x max_model_len), vllm/v1/core/kv_cache_utils.py from 0.20"
        )
        basis = "measured" if concurrency.basis == "measured" else "engine rule"
        return Known(value=int(float(concurrency.value) * longest), basis=basis, evidence=evidence)  # type: ignore[arg-type]
    return Unknown(because="maximum concurrency is not known")


def group_of(group: Tree, basis: Basis = "exact") -> Group:
    """Layers that share a block table, with the bytes of a block of all of them; ``basis`` is that of the bytes."""
    page, layers = group.get("page_size_bytes"), group.get("layers")
    per_block: Value = Unknown(because="page size or layers are not reported")
    if isinstance(page, int) and isinstance(layers, int):
        whole = group["spec"] in OF_ALL_LAYERS
        where = "page_size_bytes" if whole else "page_size_bytes x layers"
        size = page if whole else page * layers
        per_block = Known(value=size, basis=basis, evidence=Evidence(source="probe", where=where))
    return Group(
        kind=KINDS.get(str(group["spec"]), "other"),  # type: ignore[arg-type]
        layers=known(layers, "len(layer_names)", "exact"),
        block_tokens=known(group.get("block_size"), "kv_cache_spec.block_size", "exact"),
        bytes_per_block=per_block,
        detail={
            "spec": group["spec"],
            **{k: v for k, v in (group.get("fields") or {}).items() if isinstance(v, bool | int | float | str)},
        },
    )
