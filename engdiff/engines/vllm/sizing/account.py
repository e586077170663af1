"""vLLM's ledger of one rank before it starts, its pool, and its own checks in their order.

vllm/v1/worker/gpu_worker.py (determine_available_memory), vllm/v1/worker/utils.py (request_memory) and the planning of
the cache, 0.10 to 0.33; see :mod:`engdiff.engines.vllm.memory` for what a launch tells of the same lines.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from pydantic import JsonValue

from engdiff.engines.intervals import bounds, combined, total
from engdiff.engines.sizing import Account, Check, Deployment, Parallel
from engdiff.engines.vllm.sizing import cache, estimates, following
from engdiff.engines.vllm.sizing.weights import Weights, weights
from engdiff.geometry import Geometry
from engdiff.knowledge.gpus import Gpu
from engdiff.knowledge.versions import holds
from engdiff.schema.capture import Group, Pool, Term
from engdiff.schema.values import Evidence, Known, Value, number
from engdiff.units import GIB

ROUNDED_UP_SINCE = "0.14.0"
"""From here on the share of memory is rounded up to a byte, before down."""

CONSUMED_SINCE = "0.27.0"
"""From here on what loading took of free memory is one number; before, weights and what lies outside torch are two."""

CHARGED_SINCE = "0.20.0"
"""From here on the estimate of graph memory is charged to the budget by default."""

NULL_BLOCK_SINCE = "0.29.0"
"""From here on the check at start keeps one block back, which the pool never gives out."""

DEVICE, LIMIT, CONSUMED, POOL = "device memory", "vLLM may use", "consumed", "KV cache"
WEIGHTS, OUTSIDE, PEAK, GRAPHS = "weights", "outside torch", "activation peak", "graphs"


class VllmSizing:
    """See :class:`~engdiff.engines.sizing.Sizing`."""

    reads: tuple[str, ...] = (
        "kv.gpu_memory_utilization",
        "kv.block_size",
        "kv.dtype",
        "kv.mamba_cache_mode",
        "kv.hybrid_manager_disabled",
        "model.dtype",
        "model.max_model_len",
        "model.enforce_eager",
        "scheduler.max_num_batched_tokens",
        "scheduler.max_num_seqs",
        "scheduler.async_scheduling",
        "graphs.capture_sizes",
        "graphs.charged",
    )
    smallest_block: int = cache.ALIGNMENT
    baseline: Mapping[str, str] = MappingProxyType(
        {"full": "llama-3.1-8b", "sliding window": "gemma-3-27b", "mla": "deepseek-v3", "state": "qwen3-next"}
    )

    def like(self, gpu: Gpu) -> tuple[str, str]:
        """See :mod:`~engdiff.engines.vllm.sizing.following`."""
        return following.like(gpu)

    def settled(
        self, version: str, stated: Mapping[str, JsonValue], defaults: Mapping[str, JsonValue]
    ) -> Mapping[str, JsonValue]:
        """See :mod:`~engdiff.engines.vllm.sizing.following`."""
        return following.settled(version, stated, defaults)

    def estimates(
        self, version: str, geometry: Geometry, parallel: Parallel, settings: Mapping[str, JsonValue]
    ) -> Mapping[str, Value]:
        """See :mod:`~engdiff.engines.vllm.sizing.estimates`."""
        return estimates.estimates(version, geometry, parallel, settings)

    def kept_of_token(self, deployment: Deployment) -> Mapping[str, int]:
        """See :mod:`~engdiff.engines.vllm.sizing.cache`."""
        return cache.kept_of_token(deployment)

    def account(self, deployment: Deployment) -> Account:
        """One rank: the fullest, as the pool of all is that of the fullest."""
        made = cache.plan(deployment)
        held = weights(deployment.geometry, deployment.parallel)
        limit = limit_bytes(deployment)
        uses = used(deployment, held)
        spent = [term.bytes for term in uses if term.draws_on == LIMIT]
        available = combined(
            spent, lambda sizes: limit - sum(sizes), "vLLM may use, less what is taken out of it", falls=True
        )
        pool = pool_of(deployment, made, available)
        ledger = (*limits(deployment, limit), *uses, Term(name=POOL, kind="remainder", bytes=available, draws_on=LIMIT))
        return Account(
            ledger=ledger,
            pool=pool,
            checks=checks(deployment, made, available),
            longest=longest(deployment, made, available),
            notes=notes(deployment),
        )


def exact(size: int, where: str) -> Known:
    """A number that follows from the rule alone."""
    return Known(value=size, basis="engine rule", evidence=Evidence(source="rule", where=where))


# --- the ledger --------------------------------------------------------------------------------------------------


def limit_bytes(deployment: Deployment) -> int:
    """What the engine allows itself of the device."""
    share = deployment.device_bytes * deployment.share("kv.gpu_memory_utilization")
    return math.ceil(share) if holds(deployment.version, since=ROUNDED_UP_SINCE) else int(share)


def limits(deployment: Deployment, limit: int) -> tuple[Term, ...]:
    """The device and the share of it."""
    share = deployment.share("kv.gpu_memory_utilization")
    size = Known(value=deployment.device_bytes, evidence=Evidence(source="rule", where="profiles/gpus"))
    return (
        Term(name=DEVICE, kind="capacity", bytes=size, meaning="what the driver reports"),
        Term(
            name=LIMIT,
            kind="limit",
            bytes=exact(limit, "vllm/v1/worker/utils.py"),
            draws_on=DEVICE,
            meaning=f"device memory x {share:g}",
        ),
    )


def used(deployment: Deployment, held: Weights) -> tuple[Term, ...]:
    """What is taken out of the limit before the cache, under the names that a launch of this release gives them."""
    size = exact(held.total, "tensors, rotary caches and scales of one rank")
    estimate = deployment.estimates
    peak = Term(name=PEAK, kind="use", bytes=estimate[PEAK], draws_on=LIMIT, meaning="largest step, profiled")
    if not holds(deployment.version, since=CONSUMED_SINCE):
        return (
            Term(name=WEIGHTS, kind="use", bytes=size, draws_on=LIMIT, meaning="parameters and buffers"),
            Term(name=OUTSIDE, kind="use", bytes=estimate[OUTSIDE], draws_on=LIMIT, meaning="context, communication"),
            peak,
            *graphs(deployment),
        )
    consumed = total([size, estimate[OUTSIDE]], "weights and outside torch")
    return (
        Term(name=CONSUMED, kind="use", bytes=consumed, draws_on=LIMIT, meaning="GPU memory gone after loading"),
        Term(name=WEIGHTS, kind="use", bytes=size, draws_on=CONSUMED, meaning="parameters and buffers"),
        Term(name=OUTSIDE, kind="use", bytes=estimate[OUTSIDE], draws_on=CONSUMED, meaning="context, communication"),
        peak,
        *graphs(deployment),
    )


def graphs(deployment: Deployment) -> tuple[Term, ...]:
    """Graphs: charged to the limit, or beside it, or none."""
    if deployment.settings.get("model.enforce_eager") is True or not deployment.settings.get("graphs.capture_sizes"):
        return ()
    within = charged(deployment)
    meaning = "estimate, charged to the limit" if within else "not charged: captured outside the limit"
    return (
        Term(
            name=GRAPHS,
            kind="use",
            bytes=deployment.estimates[GRAPHS],
            draws_on=LIMIT if within else DEVICE,
            meaning=meaning,
        ),
    )


def charged(deployment: Deployment) -> bool:
    """Whether graph memory is taken out of the limit: as the variable says, else by the release's default."""
    stated = deployment.settings.get("graphs.charged")
    if isinstance(stated, bool):
        return stated
    return holds(deployment.version, since=CHARGED_SINCE)


# --- the pool ----------------------------------------------------------------------------------------------------


def pool_of(deployment: Deployment, made: cache.Plan, available: Value) -> Pool:
    """Whole blocks of what is left, with the concurrency that the engine prints."""
    length = deployment.whole("model.max_model_len")

    where = "whole blocks of what is left"
    blocks = combined([available], lambda sizes: made.blocks(int(sizes[0])), where)
    return Pool(
        name=POOL,
        bytes=combined([blocks], lambda counts: counts[0] * made.block_bytes, where),
        blocks=blocks,
        block_tokens=exact(min(group.spec.block_tokens for group in made.groups), "block size"),
        tokens=at_once(deployment, made, blocks, length, length),
        max_concurrency=at_once(deployment, made, blocks, length, 1),
        concurrency_at_tokens=exact(length, "model.max_model_len"),
        groups=tuple(group_of(group) for group in made.groups),
    )


def at_once(deployment: Deployment, made: cache.Plan, blocks: Value, length: int, times: int) -> Value:
    """Requests of ``length`` tokens that fit at once, times a number; requests are told to two decimals."""
    each = cache.blocks_of_request(deployment, made, length)
    if not isinstance(blocks, Known):
        return blocks
    low, middle, high = (count / each * times for count in bounds(blocks))
    told = {} if low == middle == high else {"low": low, "high": high}
    return blocks.model_copy(update={"value": int(middle) if times > 1 else round(middle, 2), **told})


def group_of(group: cache.CacheGroup) -> Group:
    """A group as captures tell it."""
    spec = group.spec
    return Group(
        kind=spec.kind if spec.kind in KINDS else "other",  # type: ignore[arg-type]
        layers=exact(group.layers, "layers of the group"),
        block_tokens=exact(spec.block_tokens, "block size"),
        bytes_per_block=exact(group.block_bytes, "page x layers"),
        detail={"sliding_window": spec.window} if spec.window else {},
    )


KINDS = frozenset({"full", "sliding window", "chunked", "mla", "state", "cross"})


# --- the checks at start ------------------------------------------------------------------------------------------


def checks(deployment: Deployment, made: cache.Plan, available: Value) -> tuple[Check, ...]:
    """In the engine's order: memory for the cache, then one request of the longest context."""
    length = deployment.whole("model.max_model_len")
    need = needed_bytes(deployment, made, length)
    kept = kept_back(deployment, made)
    margin = combined([available], lambda sizes: sizes[0] - kept - need, "what is left, less one longest request")
    return (
        Check(
            name="memory for the cache",
            margin_bytes=available,
            message="No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when "
            "initializing the engine.",
            source="vllm/v1/core/kv_cache_utils.py, _check_enough_kv_cache_memory",
        ),
        Check(
            name=f"one request of {length:,} tokens",
            margin_bytes=margin,
            message=f"To serve at least one request with the model's max seq len ({length}), ({need / GIB:.2f} GiB KV "
            f"cache is needed, which is larger than the available KV cache memory ({_gib(available)} GiB). Try "
            "increasing `gpu_memory_utilization` or decreasing `max_model_len` when initializing the engine.",
            source="vllm/v1/core/kv_cache_utils.py, _check_enough_kv_cache_memory",
        ),
    )


def _gib(value: Value) -> str:
    size = number(value)
    return "unknown" if size is None else f"{size / GIB:.2f}"


def needed_bytes(deployment: Deployment, made: cache.Plan, length: int) -> int:
    """Bytes of one request of this length."""
    return cache.blocks_of_request(deployment, made, length) * made.block_bytes


def kept_back(deployment: Deployment, made: cache.Plan) -> int:
    """Bytes that the check does not count on."""
    return made.block_bytes if holds(deployment.version, since=NULL_BLOCK_SINCE) else 0


def longest(deployment: Deployment, made: cache.Plan, available: Value) -> Value:
    """The longest context for which one request still fits, by the same check."""
    kept = kept_back(deployment, made)

    def fits(sizes: Sequence[float]) -> float:
        return longest_within(deployment, made, int(sizes[0]) - kept)

    return combined([available], fits, "the longest context with which the check passes")


MOST_TOKENS = 2**31
"""No context is longer than this."""


def longest_within(deployment: Deployment, made: cache.Plan, room: int) -> int:
    """By bisection: a request's blocks never fall with its length."""
    low, high = 0, MOST_TOKENS
    while low < high:
        middle = (low + high + 1) // 2
        if needed_bytes(deployment, made, middle) <= room:
            low = middle
        else:
            high = middle - 1
    return low


def notes(deployment: Deployment) -> tuple[str, ...]:
    """What a reader must know of the parts that are not counted."""
    return tuple(f"not counted: {part}" for part in deployment.geometry.not_counted)
