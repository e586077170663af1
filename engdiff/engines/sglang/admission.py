"""How SGLang lets requests in and throws them out.

The same in all versions looked at (managers/schedule_policy.py, managers/schedule_batch.py 0.4.6-0.5.23).
"""

from __future__ import annotations

from engdiff.schema.capture import Admission
from engdiff.schema.values import Evidence, Known

RULE = (
    "a waiting request joins while free and evictable KV tokens hold its prompt and its answer (up to 4096 tokens), "
    "beside what the running requests are expected to need: what they may still write x new_token_ratio"
)
PREEMPTION = "retract: when decoding finds no KV, running requests are thrown out and start again; the ratio then rises"

SETTINGS = (
    "scheduler.max_num_seqs",
    "scheduler.max_num_batched_tokens",
    "scheduler.chunked_prefill",
    "scheduler.policy",
    "scheduler.async_scheduling",
    "kv.prefix_caching",
)


def rule() -> Admission:
    """The rule of every version."""
    source = "sglang/srt/managers/schedule_policy.py, schedule_batch.py"
    evidence = Evidence(source="rule", where=source)
    return Admission(
        rule=Known(value=RULE, basis="engine rule", evidence=evidence),
        preemption=Known(value=PREEMPTION, basis="engine rule", evidence=evidence),
        settings=SETTINGS,
    )
