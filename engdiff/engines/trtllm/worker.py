"""What a worker of TensorRT-LLM really does, as the probe read it (``engdiff/engines/trtllm/probe.py``)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import JsonValue

from engdiff.engines.probed import known
from engdiff.engines.trtllm.normalize import DECODE
from engdiff.schema.capture import Device, Graphs, Pool, Rank, Term
from engdiff.schema.values import Evidence, Known, Unknown, Value, number

Tree = Mapping[str, Any]

NOT_HELD = Unknown(because="the worker holds no such value")
IN_NO_LINE = Unknown(because="no line of the log states it, and the worker does not hold it")

ATTENTION: Mapping[str, str] = {
    "TrtllmAttention": "TRTLLM",
    "FlashInferAttention": "FLASHINFER",
    "VanillaAttention": "VANILLA",
    "StarAttention": "FLASHINFER_STAR_ATTENTION",
}
"""Class to the name of its back end (tensorrt_llm/_torch/attention_backend/utils.py 0.17 to newest)."""

SAME_NAME: Mapping[str, str] = {
    "model.max_model_len": "max_seq_len",
    "scheduler.max_num_seqs": "max_batch_size",
    "scheduler.max_num_batched_tokens": "max_num_tokens",
    "scheduler.chunked_prefill": "chunking",
    "kv.block_size": "kv_block_tokens",
    "kv.prefix_caching": "block_reuse",
}
"""Canonical key to the name in the probe's answer, where the value is the registry's own."""


def effective(workers: Sequence[Tree]) -> dict[str, Known]:
    """What the first rank holds: all ranks of an instance take the same decisions."""
    if not workers:
        return {}
    first = workers[0]
    found = {key: _known(first.get(name), name) for key, name in SAME_NAME.items()}
    found |= {
        "scheduler.capacity_policy": _policy(first),
        "scheduler.class": _known(_last_name(first.get("scheduler")), "type(scheduler)"),
        "scheduler.async_scheduling": _overlap(first),
        "kernels.attention_backend": _attention(first),
        **_graph_settings(first),
    }
    return {key: value for key, value in found.items() if value is not None}


def _known(value: object, where: str) -> Known | None:
    """A value as the worker has it, citing the name of the probe's table; ``None`` when it could not be read."""
    return known(value, f"worker: {where}")


def _last_name(value: object) -> str | None:
    return value.rpartition(".")[2] if isinstance(value, str) else None


def _policy(worker: Tree) -> Known | None:
    """The policy that the scheduler holds, or that its C++ part was made with."""
    name = _last_name(worker.get("policy"))
    return _known(name.upper() if name else None, "policy of the scheduler")


def _overlap(worker: Tree) -> Known | None:
    """By the loop that runs; with pipeline stages there is one loop for both, and the switch decides."""
    loop = worker.get("event_loop")
    if loop in ("_executor_loop_overlap", "_executor_loop"):
        return _known(loop == "_executor_loop_overlap", f"event_loop {loop}")
    off, on = worker.get("disable_overlap"), worker.get("enable_overlap")
    if isinstance(off, bool):
        return _known(not off, "disable_overlap_scheduler")
    return _known(on, "enable_overlap_scheduler") if isinstance(on, bool) else None


def _attention(worker: Tree) -> Known | None:
    name = _last_name(worker.get("attention"))
    return _known(ATTENTION.get(name, name) if name else None, "attn_backend")


def _graph_settings(worker: Tree) -> dict[str, Known | None]:
    sizes = worker.get("graph_sizes")
    if not isinstance(sizes, list):
        return {}
    on = bool(sizes) and worker.get("graphs_on") is not False
    held = sorted(size for size in sizes if isinstance(size, int)) if on else []
    return {
        "graphs.mode": _known(DECODE if on else "none", "_cuda_graph_batch_sizes"),
        "graphs.capture_sizes": _known([*held], "_cuda_graph_batch_sizes"),
        "graphs.max_capture_size": _known(held[-1] if held else None, "_cuda_graph_batch_sizes"),
    }


def devices(workers: Iterable[Tree]) -> tuple[Device, ...]:
    """One device of each rank, as torch names it."""
    found = []
    for worker in workers:
        gpu = worker.get("gpu")
        if isinstance(gpu, dict) and isinstance(gpu.get("name"), str):
            size = _known(gpu.get("bytes"), "torch.cuda.get_device_properties().total_memory") or NOT_HELD
            found.append(Device(kind="gpu", name=gpu["name"], memory_bytes=size))
    return tuple(found)


# --- ranks ------------------------------------------------------------------------------------------------------


def ranks(workers: Sequence[Tree], logged: Sequence[Rank], longest: Value | None) -> tuple[Rank, ...]:
    """Each worker's rank: what it holds, with the memory that its log states."""
    return tuple(_rank(worker, _logged(worker, at, logged), longest) for at, worker in enumerate(workers))


def _logged(worker: Tree, at: int, logged: Sequence[Rank]) -> Rank | None:
    """What the log says of this rank; a log that names no rank speaks of all."""
    if len(logged) == 1:
        return logged[0]
    same = [rank for rank in logged if (rank.tp, rank.pp) == (worker.get("tp_rank"), worker.get("pp_rank"))]
    return same[0] if len(same) == 1 else logged[at] if at < len(logged) else None


def _rank(worker: Tree, logged: Rank | None, longest: Value | None) -> Rank:
    pool = logged.pools[0] if logged and logged.pools else None
    device = worker.get("device")
    return Rank(
        tp=_index(worker.get("tp_rank")),
        pp=_index(worker.get("pp_rank")),
        device=f"cuda:{device}" if isinstance(device, int) else logged.device if logged else "GPU",
        ledger=logged.ledger if logged and logged.ledger else _device_term(worker),
        pools=(_pool(worker, pool, longest),),
        graphs=_graphs(worker, logged),
    )


def _index(value: object) -> int:
    return value if isinstance(value, int) else 0


def _device_term(worker: Tree) -> tuple[Term, ...]:
    gpu = worker.get("gpu")
    size = _known(gpu.get("bytes"), "total_memory") if isinstance(gpu, dict) else None
    return (
        (Term(name="device memory", kind="capacity", bytes=size, meaning="all memory of the device"),) if size else ()
    )


def _pool(worker: Tree, logged: Pool | None, longest: Value | None) -> Pool:
    """Blocks by the worker, bytes by its log."""
    blocks = _blocks(worker) or (logged.blocks if logged else IN_NO_LINE)
    block = _known(worker.get("kv_block_tokens"), "kv_block_tokens") or (logged.block_tokens if logged else IN_NO_LINE)
    held = _ratio(blocks, block, times=True) or (logged.tokens if logged else IN_NO_LINE)
    at = longest if isinstance(longest, Known) else Unknown(because="the longest request is not known")
    return Pool(
        name="KV cache",
        bytes=logged.bytes if logged else IN_NO_LINE,
        blocks=blocks,
        block_tokens=block,
        tokens=held,
        max_concurrency=(logged and _if_known(logged.max_concurrency))
        or _ratio(held, at)
        or Unknown(because="tokens or the longest request are not known"),
        concurrency_at_tokens=at,
        groups=logged.groups if logged else (),
    )


def _if_known(value: Value) -> Known | None:
    return value if isinstance(value, Known) else None


def _blocks(worker: Tree) -> Known | None:
    capacity = worker.get("kv_capacity")
    stated = capacity.get("max_num_blocks") if isinstance(capacity, dict) else None
    return _known(worker.get("kv_blocks"), "kv_blocks") or _known(stated, "get_kv_cache_capacity().max_num_blocks")


def _ratio(left: Value, right: Value, *, times: bool = False) -> Known | None:
    a, b = number(left), number(right)
    if a is None or not b:
        return None
    value: JsonValue = int(a * b) if times else round(a / b, 2)
    words = "blocks x tokens of a block" if times else "tokens / tokens of the longest request"
    return Known(value=value, basis="engine rule", evidence=Evidence(source="rule", where=words))


def _graphs(worker: Tree, logged: Rank | None) -> Graphs:
    held = _graph_settings(worker)
    silent = Unknown(because="TensorRT-LLM does not log it")
    base = logged.graphs if logged else Graphs(**dict.fromkeys(Graphs.model_fields, silent))
    return base.model_copy(
        update={
            "mode": held.get("graphs.mode") or base.mode,
            "sizes": held.get("graphs.capture_sizes") or base.sizes,
        }
    )
