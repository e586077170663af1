"""How vLLM lets requests in and throws them out, by what this version's scheduler has."""

from __future__ import annotations

from typing import Any

from engdiff.schema.capture import Admission
from engdiff.schema.values import Evidence, Known

Tree = dict[str, Any]


def rule(core: Tree) -> Admission:
    """The rule, composed from the resolved scheduler configuration (vllm/v1/core/sched/scheduler.py)."""
    scheduler = (core.get("config") or {}).get("scheduler_config") or {}
    parts = ["a waiting request joins while fewer than max_num_seqs run and the step's token budget lasts"]
    if scheduler.get("scheduler_reserve_full_isl"):
        parts.append("only when free KV blocks hold its whole prompt")
    elif scheduler.get("enable_chunked_prefill"):
        parts.append("as soon as free KV blocks hold the next piece of its prompt")
    watermark = scheduler.get("watermark")
    if watermark and isinstance(watermark, int | float):
        parts.append(f"keeping {watermark:.0%} of the blocks free")
    evidence = Evidence(source="probe", where="scheduler_config")
    return Admission(
        rule=Known(value=", ".join(parts), basis="engine rule", evidence=evidence),
        preemption=Known(
            value="recompute: the request that came last is thrown out and starts again", basis="engine rule"
        ),
        settings=(
            "scheduler.max_num_seqs",
            "scheduler.max_num_batched_tokens",
            "scheduler.chunked_prefill",
            "scheduler.policy",
            "scheduler.reserve_full_prompt",
            "scheduler.watermark",
            "scheduler.async_scheduling",
            "kv.prefix_caching",
            "kv.prefix_hash",
        ),
    )
