"""How TensorRT-LLM lets requests in: which policy runs, by what rule, and what it is known to cost.

cpp/tensorrt_llm/batch_manager/capacityScheduler.cpp 0.10 to 1.1; tensorrt_llm/_torch/pyexecutor/scheduler 1.2, newest.

The arguments do not tell which policy runs. KVCacheManagerV2 (1.3 and later) schedules by MAX_UTILIZATION whatever they
say (scheduler_v2.py), and ``use_kv_cache_manager_v2: auto`` leaves it to the model which manager that is.
"""

from __future__ import annotations

from engdiff.engines.layers import lookup
from engdiff.engines.trtllm.arguments import Printed
from engdiff.engines.trtllm.memory import sentence
from engdiff.logs.starts import Start
from engdiff.logs.statements import Statement
from engdiff.schema.capture import Admission, Setting
from engdiff.schema.values import Evidence, Known, Unknown, plain

SECOND_SCHEDULER = "KVCacheV2Scheduler"
SECOND_MANAGERS = "MAX_UTILIZATION"
"""The one policy of KVCacheV2Scheduler."""

FIRST_MANAGER = "KVCacheManager"
"""The manager in C++: the one that says that it allocates a paged KV cache, and runs the policy that it is given."""

POLICY_PATH = "scheduler_config.capacity_scheduler_policy"

_RULES = {
    "GUARANTEED_NO_EVICT": (
        "a request is let in when the blocks of its prompt and of its longest answer are free beside those that "
        "running requests may still need; the first that does not fit stops the queue",
        "never: what was let in runs to its end",
    ),
    SECOND_MANAGERS: (
        "a request is let in when the blocks of its next step are free",
        "the request that started last is paused, its blocks are given up, and it is tried again",
    ),
    "STATIC_BATCH": (
        "requests are let in only when none is running",
        "never: what was let in runs to its end",
    ),
}

COSTS = {
    SECOND_MANAGERS: (
        "what it costs was measured by the reporter of issue #16827 (Llama-3.3-70B-FP8, one H200), and only under KV "
        "pressure, against GUARANTEED_NO_EVICT: 161.0 to 95.7 tok/s (-40.6 %) and TPOT p99 122 to 1,111 ms on 1.2.1, "
        "160.7 to 159.2 tok/s (-0.9 %) on 1.3.0rc22; with room in the pool nothing"
    ),
}
"""By policy, in words: not measured by this project."""

FORCED = "{scheduler} schedules by {policy} only; it was given {given} (scheduler_v2.py)"

SETTINGS = (
    "scheduler.capacity_policy",
    "scheduler.max_num_seqs",
    "scheduler.max_num_batched_tokens",
    "scheduler.chunked_prefill",
    "kv.prefix_caching",
)


def rule(policy: Setting | None) -> Admission:
    """The rule of the policy that runs; unknown while that is not known, whatever was asked for."""
    runs = policy.effective if policy else None
    name = plain(runs)
    if not isinstance(runs, Known) or not isinstance(name, str) or name not in _RULES:
        unknown = Unknown(because=_not_known(policy))
        return Admission(rule=unknown, preemption=unknown, settings=SETTINGS)
    words, preemption = _RULES[name]
    line = runs.evidence.line if runs.evidence else None
    where = Evidence(source="rule", where=f"{name}{f', line {line}' if line else ''}")
    return Admission(
        rule=Known(value=f"{name}: {words}", basis="engine rule", evidence=where),
        preemption=Known(value=preemption, basis="engine rule", evidence=where),
        settings=SETTINGS,
    )


def _not_known(policy: Setting | None) -> str:
    asked = plain(policy.resolved) if policy else None
    if not isinstance(asked, str):
        return "the log does not state the capacity policy"
    return f"the arguments say {asked}, and nothing says which KV cache manager runs: the second one does not heed them"


def policy(start: Start, args: Printed | None) -> Known | None:
    """The policy that runs: as forced, as the C++ runtime states it, or as the manager that runs decides it."""
    stated = start.last_of("capacity_policy", "policy_forced")
    if stated is not None:
        return sentence(stated, "policy", value=stated["policy"].upper())
    second = start.last_of("v2_scheduler")
    if second is not None:
        return _by_rule(SECOND_MANAGERS, f"the one policy of {SECOND_SCHEDULER}, which runs", second)
    allocated = start.last_of("kv_allocated", "kv_manager")
    if args is None or allocated is None or allocated.get("manager") not in (None, FIRST_MANAGER):
        return None
    return _as_asked(args, allocated)


def _as_asked(args: Printed, allocated: Statement) -> Known | None:
    """What the arguments say, where the first manager runs."""
    asked = lookup(args.tree, POLICY_PATH)
    if not isinstance(asked, str):
        return None
    cited = args.cite(POLICY_PATH)
    return _by_rule(asked, f"{cited.where}, line {cited.line}; {FIRST_MANAGER}, which heeds it, runs", allocated)


def _by_rule(policy: str, words: str, told: Statement) -> Known:
    line = told.line
    where = Evidence(source="rule", where=f"{words}: line {line.number}", line=line.number, file=line.file)
    return Known(value=policy, basis="engine rule", evidence=where)


def given(start: Start) -> dict[str, Known]:
    """What the engine says it was given and does not do, by canonical key."""
    forced = start.last_of("policy_forced")
    if forced is None or not forced.get("given"):
        return {}
    return {"scheduler.capacity_policy": sentence(forced, "given", value=forced["given"])}


def scheduler(start: Start) -> Known | None:
    """The scheduler, where a line names it: that of KVCacheManagerV2 introduces itself, or warns."""
    second = start.last_of("v2_scheduler")
    if second is not None:
        return sentence(second, "tokens_per_block", value=SECOND_SCHEDULER)
    forced = start.last_of("policy_forced")
    return sentence(forced, "policy", value=SECOND_SCHEDULER) if forced and forced.get("given") else None


def because(runs: Known | None, start: Start) -> str | None:
    """Why this policy runs where another was asked for, and what it is known to cost."""
    name = plain(runs)
    forced = start.last_of("policy_forced")
    parts: list[str] = []
    if forced is not None and (asked := forced.get("given")):
        parts.append(FORCED.format(scheduler=SECOND_SCHEDULER, policy=name, given=asked))
    if isinstance(name, str) and name in COSTS:
        parts.append(COSTS[name])
    return "; ".join(parts) or None
