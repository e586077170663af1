"""What a scheduler of SGLang holds, as its probe wrote it: values of settings, pools, graphs, back ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import JsonValue

from engdiff.engines.probed import known
from engdiff.engines.sglang import normalize
from engdiff.schema.capture import Factor, Graphs, Group, Pool, Rank, Term
from engdiff.schema.values import Evidence, Known, Unknown, Value, number

Tree = Mapping[str, Any]

ELEMENT_BYTES = {"float32": 4, "float16": 2, "bfloat16": 2, "float8_e4m3fn": 1, "float8_e5m2": 1, "uint8": 1}


def schedulers(probe: Mapping[str, JsonValue]) -> list[Tree]:
    """What each scheduler wrote, in the order of their ranks; those that could not be read are left out."""
    found = [v for k, v in sorted(probe.items()) if k.startswith("scheduler-") and isinstance(v, dict)]
    return [tree for tree in found if "unreadable" not in tree]


# --- settings ---------------------------------------------------------------------------------------------------

_FROM_SCHEDULER = {
    "scheduler.max_num_seqs": "max_running_requests",
    "scheduler.async_scheduling": "overlap",
    "scheduler.new_token_ratio": "new_token_ratio_init",
    "kv.block_size": "page_size",
}
_FROM_RUNNER = {
    "model.max_model_len": "context_len",
    "kv.gpu_memory_utilization": "mem_fraction_static",
}


def effective(tree: Tree, version: str) -> dict[str, Known]:
    """Canonical settings as the scheduler and its model runner hold them."""
    scheduler, runner = _part(tree, "scheduler"), _part(tree, "runner")
    found: dict[str, Known | None] = dict(_arguments(tree, version))
    found |= {key: known(scheduler.get(name), f"Scheduler.{name}") for key, name in _FROM_SCHEDULER.items()}
    for key, name in _FROM_RUNNER.items():
        found[key] = known(runner.get(name), f"ModelRunner.{name}") or found.get(key)
    found |= {
        "model.dtype": _element(runner.get("dtype"), "ModelRunner.dtype"),
        "kv.dtype": _element(runner.get("kv_cache_dtype"), "ModelRunner.kv_cache_dtype"),
        "kv.pool_bytes": _pool_bytes(tree),
        "kv.cache_class": _class(tree, "tree_cache"),
        "kernels.attention_backend": attention(tree) or found.get("kernels.attention_backend"),
        "kernels.threads": known(tree.get("threads"), "torch.get_num_threads()"),
        "lora.backend": _class(tree, "lora") or found.get("lora.backend"),
        **_chunks(scheduler),
        **_policy(scheduler),
        **_graph_settings(tree),
    }
    if str(_part(tree, "classes").get("tree_cache", "")).endswith("ChunkCache"):
        found["kv.prefix_caching"] = known(value=False, where="type(Scheduler.tree_cache)")
    return {key: value for key, value in found.items() if value is not None}


def _arguments(tree: Tree, version: str) -> dict[str, Known]:
    """The arguments as the scheduler holds them, where it holds a value: it changes some after it loaded the model."""
    arguments = _part(tree, "server_args")
    settings = normalize.settings(
        arguments, lambda path: Evidence(source="probe", where=f"Scheduler.server_args.{path}"), {}, version
    )
    resolved = {key: setting.resolved for key, setting in settings.items()}
    return {k: v for k, v in resolved.items() if isinstance(v, Known) and v.value is not None and v.value != "auto"}


def _part(tree: Tree, name: str) -> Tree:
    part = tree.get(name)
    return part if isinstance(part, dict) and "unreadable" not in part else {}


def _element(value: object, where: str) -> Known | None:
    return known(str(value).removeprefix("torch."), where) if isinstance(value, str) else None


def _class(tree: Tree, name: str) -> Known | None:
    said = _part(tree, "classes").get(name)
    return known(said.rsplit(".", 1)[-1], f"type({name})") if isinstance(said, str) else None


def attention(tree: Tree) -> Known | None:
    """The attention back end in use; two where prompts and decoding have their own."""
    runner = _part(tree, "runner")
    decode, prefill = runner.get("decode_attention_backend"), runner.get("prefill_attention_backend")
    if isinstance(decode, str) and isinstance(prefill, str):
        both = decode if decode == prefill else f"decode {decode}, prefill {prefill}"
        return known(both, "ModelRunner.decode_attention_backend_str, prefill_attention_backend_str")
    return known(_part(tree, "server_args").get("attention_backend"), "Scheduler.server_args.attention_backend")


def _chunks(scheduler: Tree) -> dict[str, Known | None]:
    where = "Scheduler.chunked_prefill_size"
    size = scheduler.get("chunked_prefill_size")
    chunked = isinstance(size, int) and size > 0
    if not scheduler:
        return {}
    return {
        "scheduler.chunked_prefill": known(chunked, where),
        "scheduler.max_num_batched_tokens": known(size, where) if chunked else None,
    }


def _policy(scheduler: Tree) -> dict[str, Known | None]:
    policy = scheduler.get("schedule_policy")
    return {"scheduler.policy": known(policy.lower(), "SchedulePolicy.policy")} if isinstance(policy, str) else {}


def _graph_settings(tree: Tree) -> dict[str, Known | None]:
    """What was captured; with no runner for graphs there are none."""
    if not _part(tree, "classes"):
        return {}
    if "graph_runner" not in _part(tree, "classes"):
        return {"graphs.mode": known("none", "ModelRunner has no graph runner")}
    sizes = _part(tree, "runner").get("capture_bs")
    if not isinstance(sizes, list) or not sizes:
        return {}
    return {
        "graphs.capture_sizes": known(sizes, "graph runner's capture_bs"),
        "graphs.max_capture_size": known(max(sizes), "graph runner's capture_bs"),
    }


# --- memory -----------------------------------------------------------------------------------------------------

POOL_NAMES = {"full": "KV cache", "sliding window": "KV cache (sliding window)", "state": "Mamba state"}


def _pool_bytes(tree: Tree) -> Known | None:
    sizes = [p.get("bytes") for kind, p in _pools(tree).items() if kind != "state"]
    counted = [size for size in sizes if isinstance(size, int)]
    return known(sum(counted), "get_kv_size_bytes() of the pools") if counted and len(counted) == len(sizes) else None


def _pools(tree: Tree) -> dict[str, Tree]:
    found = _part(tree, "pools")
    return {kind: pool for kind, pool in found.items() if isinstance(pool, dict) and "unreadable" not in pool}


def exact_rank(told: Rank | None, tree: Tree, settings: Mapping[str, Any]) -> Rank:
    """One rank: what the log told of it, made exact where the probe counted."""
    place = {k: v for k, v in _part(tree, "rank").items() if k in ("tp", "pp", "dp", "ep") and isinstance(v, int)}
    pools = tuple(_pool(kind, pool, tree, settings) for kind, pool in _pools(tree).items())
    return Rank(
        **place,
        device=str(tree.get("device") or (told.device if told else "device")),
        ledger=_ledger(told.ledger if told else (), tree),
        pools=pools or (told.pools if told else ()),
        graphs=_graphs(told, tree, settings),
    )


def _ledger(told: Sequence[Term], tree: Tree) -> tuple[Term, ...]:
    """The log's terms with the bytes that the probe counted."""
    counted = {
        "weights": known(_part(tree, "weights").get("bytes"), "sum of the parameters' bytes"),
        "KV cache": _pool_bytes(tree),
    }
    terms = [t.model_copy(update={"bytes": counted.get(t.name) or t.bytes}) for t in told]
    missing = [
        Term(name=name, kind=kind, bytes=value, meaning=meaning)
        for name, kind, meaning in _TERMS
        if (value := counted[name]) is not None and all(t.name != name for t in told)
    ]
    return (*terms, *missing)


_TERMS: tuple[tuple[str, Any, str], ...] = (
    ("weights", "use", "the model's parameters"),
    ("KV cache", "remainder", "keys and values of all layers"),
)


def _pool(kind: str, pool: Tree, tree: Tree, settings: Mapping[str, Any]) -> Pool:
    where = f"{pool.get('class')}"
    tokens = known(pool.get("size"), f"{where}.size")
    page = known(pool.get("page_size"), f"{where}.page_size")
    context = settings["model.max_model_len"].final if "model.max_model_len" in settings else None
    longest = context if isinstance(context, Known) and number(context) else None
    size = known(pool.get("bytes"), f"{where}.get_kv_size_bytes()")
    return Pool(
        name=_pool_name(kind, tree),
        bytes=size or Unknown(because="this version does not count the bytes of this pool"),
        blocks=_over(tokens, page, "size // page_size"),
        block_tokens=page or Unknown(because="this pool has no pages"),
        tokens=tokens or Unknown(because="this pool does not count tokens"),
        max_concurrency=_concurrency(tokens, longest),
        concurrency_at_tokens=longest or Unknown(because="the context length is not known"),
        factors=_factors(pool, size),
        groups=(_group(kind, pool),),
    )


def _pool_name(kind: str, tree: Tree) -> str:
    if kind == "full" and "sliding window" in _pools(tree):
        return "KV cache (full attention)"
    return POOL_NAMES.get(kind, kind)


def _over(tokens: Known | None, page: Known | None, where: str) -> Value:
    count, size = number(tokens), number(page)
    if not size or count is None:
        return Unknown(because="the pool does not say it")
    return Known(value=int(count // size), basis="engine rule", evidence=Evidence(source="rule", where=where))


def _concurrency(tokens: Known | None, longest: Known | None) -> Value:
    count, length = number(tokens), number(longest)
    if not length or count is None:
        return Unknown(because="SGLang does not state it")
    where = Evidence(source="rule", where="tokens of the pool / context length")
    return Known(value=round(count / length, 2), basis="engine rule", evidence=where)


def _token_bytes(pool: Tree) -> int | None:
    """Bytes of one token's keys and values in all layers of a pool; ``None`` for shapes of another kind."""
    element = ELEMENT_BYTES.get(str(pool.get("store_dtype")))
    heads, size, layers = pool.get("head_num"), pool.get("head_dim"), pool.get("layer_num")
    values = pool.get("v_head_dim", size)
    if element is None or not all(isinstance(n, int) for n in (heads, size, layers, values)):
        return None
    return int(heads * (size + values) * layers * element)


def _factors(pool: Tree, size: Known | None) -> tuple[Factor, ...]:
    """The product that makes the pool's bytes: every pool has room for one page more, which nobody is given."""
    token = _token_bytes(pool)
    tokens, page, whole = pool.get("size"), pool.get("page_size"), number(size)
    if token is None or not isinstance(tokens, int) or not isinstance(page, int):
        return ()
    if whole != (tokens + page) * token:
        return ()
    room = known(tokens + page, "size + page_size")
    each = known(token, "heads x (key size + value size) x layers x bytes per element")
    if room is None or each is None:
        return ()
    return (
        Factor(name="tokens, with one page to spare", value=room, setting="kv.configured_tokens"),
        Factor(name="bytes per token", value=each, setting="kv.dtype"),
    )


def _group(kind: str, pool: Tree) -> Group:
    nothing = Unknown(because="this pool does not say it")
    token, page = _token_bytes(pool), pool.get("page_size")
    each = known(token * page, "bytes per token x page_size") if token and isinstance(page, int) else None
    name: Any = "mla" if pool.get("kv_lora_rank") is not None else kind
    return Group(
        kind=name if name in ("full", "sliding window", "mla", "state") else "other",
        layers=known(pool.get("layer_num"), "layer_num") or nothing,
        block_tokens=known(page, "page_size") or nothing,
        bytes_per_block=each or nothing,
    )


def _graphs(told: Rank | None, tree: Tree, settings: Mapping[str, Any]) -> Graphs:
    nothing = Unknown(because="SGLang does not report it")
    seen = told.graphs if told else Graphs(**dict.fromkeys(Graphs.model_fields, nothing))
    prefill = _part(tree, "runner").get("prefill_capture")
    update: dict[str, Value] = {}
    for name, key in (("mode", "graphs.mode"), ("sizes", "graphs.capture_sizes")):
        if key in settings:
            update[name] = settings[key].final
    if found := known(prefill, "prefill graph runner"):
        update["prefill_sizes"] = found
    if _no_graphs(update.get("mode")):
        none = Unknown(because="no graphs are captured on this device")
        update |= {"sizes": none, "captured": none, "bytes": none, "seconds": none, "prefill_sizes": none}
    return seen.model_copy(update=update)


def _no_graphs(value: Value | None) -> bool:
    """Whether a mode says that there are no graphs."""
    return isinstance(value, Known) and value.value == "none"
