"""How llama.cpp lets requests in: a free slot, and nothing is ever preempted."""

from __future__ import annotations

from engdiff.schema.capture import Admission
from engdiff.schema.values import Known

RULE = (
    "a request takes a free slot and keeps it to its end; without one it waits; "
    "longer than a slot's context it is refused"
)
"""tools/server/server-context (b10229): ``get_available_slot``, deferred tasks, and the exceed_context_size error."""


def rule() -> Admission:
    """The rule for this server."""
    return Admission(
        rule=Known(value=RULE, basis="engine rule"),
        preemption=Known(value="none", basis="engine rule"),
        settings=("scheduler.max_num_seqs", "model.max_model_len", "kv.unified", "kv.slot_similarity"),
    )
