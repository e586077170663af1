"""Captured graphs from a log of vLLM."""

from __future__ import annotations

import re
from collections.abc import Mapping

from engdiff.logs.starts import Start
from engdiff.logs.statements import Statement
from engdiff.logs.values import amount
from engdiff.schema.capture import Graphs, Setting, Term
from engdiff.schema.values import Evidence, Known, Unknown, Value, number

NOT_STATED = "the log does not state it"


def graphs(start: Start, settings: Mapping[str, Setting], said: Mapping[str, Statement]) -> Graphs:
    """What was captured, by the lines of one worker (``said``, by name), else by those of any worker.

    From 0.30 on the profiling pass finishes with the same line as the capture: the last counts.
    """
    finished = said.get("graphs") or start.last_of("graphs")
    pool = said.get("graph pool") or start.last_of("graph pool")
    size = amount(finished, "graphs_gib") if finished else None
    size = size or (amount(pool, "graphs_gib") if pool else None) or _in_summary(said.get("memory summary"))
    seconds = amount(finished, "capture_seconds") if finished else None
    nothing = Unknown(because="no graph was captured" if _none(start, settings) else NOT_STATED)
    return Graphs(
        mode=_final(settings, "graphs.mode"),
        sizes=_sizes(settings),
        prefill_sizes=Unknown(because="vLLM captures decode and mixed batches by one list of sizes"),
        captured=_captured(start),
        bytes=size or nothing,
        seconds=seconds or nothing,
    )


def _none(start: Start, settings: Mapping[str, Setting]) -> bool:
    mode = settings.get("graphs.mode")
    off = mode is not None and isinstance(mode.final, Known) and mode.final.value == "NONE"
    return off or start.last_of("graphs skipped", "eager") is not None


def _in_summary(summary: Statement | None) -> Known | None:
    if summary is None:
        return None
    return amount(summary, "graphs_gib") or amount(summary, "device_graphs_gib")


def _final(settings: Mapping[str, Setting], key: str) -> Value:
    setting = settings.get(key)
    return setting.final if setting else Unknown(because=NOT_STATED)


def _sizes(settings: Mapping[str, Setting]) -> Value:
    """The list of sizes; those above a cap that a later line states are not captured."""
    found = _final(settings, "graphs.capture_sizes")
    most = number(_final(settings, "graphs.max_capture_size"))
    if not isinstance(found, Known) or not isinstance(found.value, list) or most is None:
        return found
    kept = [size for size in found.value if isinstance(size, int) and size <= most]
    if kept == found.value:
        return found
    where = f"the sizes of line {found.evidence.line if found.evidence else '?'} up to {most:.0f}"
    return Known(value=list(kept), basis="engine rule", evidence=Evidence(source="rule", where=where))


_PLANNED = re.compile(r"(?P<mode>\w+)=(?P<count>\d+) \(largest=\d+\)")


def _captured(start: Start) -> Value:
    """The number of graphs, by mode, that the profiling of graph memory announces."""
    plan = start.last_of("graph plan")
    if plan is None:
        return Unknown(because=NOT_STATED)
    counts = [int(match["count"]) for match in _PLANNED.finditer(plan["plan"])]
    where = f"{' + '.join(map(str, counts))}, the graphs of each mode, line {plan.line.number}"
    return Known(value=sum(counts), basis="engine rule", evidence=Evidence(source="rule", where=where))


def term(start: Start, said: Mapping[str, Statement], limit: str, *, in_peak: bool) -> Term | None:
    """The estimate of graph memory: charged to the budget, or only printed (vllm/v1/worker/gpu_worker.py).

    ``in_peak``: the activation peak of the same log holds it already, as that of 0.27 and later does.
    """
    estimate = said.get("graph estimate")
    value = amount(estimate, "graphs_gib") if estimate else None
    if value is None and (pool := said.get("graph pool")):
        value = amount(pool, "estimated_gib")
    if value is None:
        return None
    draws_on: str | None = None
    meaning = "estimate; the log does not say whether it is charged to the budget"
    if start.last_of("graph memory counted"):
        draws_on = "activation peak" if in_peak else limit
        meaning = "estimate, charged to the budget" + (" within the activation peak" if in_peak else "")
    elif start.last_of("graph memory not counted"):
        meaning = "estimate, not charged to the budget"
    return Term(name="graphs", kind="use", bytes=value, draws_on=draws_on, meaning=meaning)
