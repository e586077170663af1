"""How TensorRT-LLM lets requests in, by its capacity policy.

cpp/tensorrt_llm/batch_manager/capacityScheduler.cpp 0.10 to 1.1; tensorrt_llm/_torch/pyexecutor/scheduler 1.2, newest.
"""

from __future__ import annotations

from engdiff.schema.capture import Admission, Setting
from engdiff.schema.values import Evidence, Known, Unknown, plain

_RULES = {
    "GUARANTEED_NO_EVICT": (
        "a request is let in when the blocks of its prompt and of its longest answer are free beside those that "
        "running requests may still need; the first that does not fit stops the queue",
        "never: what was let in runs to its end",
    ),
    "MAX_UTILIZATION": (
        "a request is let in when the blocks of its next step are free",
        "the request that started last is paused, its blocks are given up, and it is tried again",
    ),
    "STATIC_BATCH": (
        "requests are let in only when none is running",
        "never: what was let in runs to its end",
    ),
}

SETTINGS = (
    "scheduler.capacity_policy",
    "scheduler.max_num_seqs",
    "scheduler.max_num_batched_tokens",
    "scheduler.chunked_prefill",
    "kv.prefix_caching",
)


def rule(policy: Setting | None) -> Admission:
    """The rule of the policy that runs; unknown when no line states it."""
    final = policy.final if policy else None
    name = plain(final)
    if not isinstance(final, Known) or not isinstance(name, str) or name not in _RULES:
        unknown = Unknown(because="the log does not state the capacity policy")
        return Admission(rule=unknown, preemption=unknown, settings=SETTINGS)
    words, preemption = _RULES[name]
    line = final.evidence.line if final.evidence else None
    where = Evidence(source="rule", where=f"{name}{f', line {line}' if line else ''}")
    return Admission(
        rule=Known(value=f"{name}: {words}", basis="engine rule", evidence=where),
        preemption=Known(value=preemption, basis="engine rule", evidence=where),
        settings=SETTINGS,
    )
