"""The settings of one launch of TensorRT-LLM in their three layers, and who decided each."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import JsonValue

from engdiff.engines.layers import MISSING, same, settle
from engdiff.engines.probed import tree
from engdiff.engines.trtllm import admission, normalize, words, worker, yaml_config
from engdiff.engines.trtllm.normalize import Source
from engdiff.engines.trtllm.seen import Seen
from engdiff.engines.trtllm.yaml_config import Meeting
from engdiff.schema.capture import Capture, Setting
from engdiff.schema.values import Evidence, Known, Unknown, number, plain

POLICY = "scheduler.capacity_policy"

Layer = Mapping[str, tuple[Known, str]]
"""Canonical key to value and native path."""


def settings(seen: Seen, stated: Capture) -> tuple[dict[str, Setting], tuple[str, ...]]:
    """Every setting that any layer states, and what a reader must know of how words and file met."""
    typed, filed = _written(seen)
    resolved = normalize.from_args(Source(tree(seen.made.get("args")), _cite_args))
    declared = _declared(seen)
    effective = worker.effective(seen.workers)
    found: dict[str, Setting] = {}
    notes: list[str] = []
    for key in sorted({*typed, *filed, *resolved, *effective, *stated.settings}):
        meeting = Meeting(typed.get(key), filed.get(key))
        value, native = _resolved(key, resolved, stated, meeting)
        why = yaml_config.because(meeting, value, seen.yaml, seen.words)
        if seen.yaml and (note := yaml_config.note(key, meeting, value, why, seen.yaml)):
            notes.append(note)
        default = declared[key] if key in declared else _static_default(key, seen)
        if _somebody_may_have_written_it(seen, meeting, value, default):
            default, why = MISSING, UNREAD
        made = settle(
            configured=meeting.configured,
            declared=default,
            resolved=value,
            effective=_effective(key, effective, stated, bool(seen.workers)),
            native=native,
            because=why,
        )
        found[key] = _explained(key, made, default, stated)
    return found, tuple(notes)


def _written(seen: Seen) -> tuple[Layer, Layer]:
    """What stands on the command line and in the file; of the user's own script, the keywords of its call."""
    if seen.own_script:
        keywords = {"model": seen.asked.get("model"), **tree(seen.asked.get("keywords"))}
        return normalize.from_args(Source(keywords, lambda path: Evidence(source="command", where=f"LLM({path}=)"))), {}
    return normalize.from_args(seen.words.source), normalize.from_args(seen.yaml.source) if seen.yaml else {}


def _cite_args(path: str) -> Evidence:
    return Evidence(source="probe", where=f"llm.args.{path}")


def _declared(seen: Seen) -> dict[str, JsonValue]:
    """Declared defaults: those of LlmArgs, and over them those of the flags, which the server passes on."""
    fields = normalize.from_args(Source(tree(seen.made.get("defaults")), _cite_args))
    flags = [f for f in seen.asked.get("flags") or () if isinstance(f, dict)]
    passed = normalize.from_args(Source(words.declared(flags, seen.version), _cite_args))
    return {key: value.value for key, (value, _) in {**fields, **passed}.items()}


def _resolved(key: str, probed: Layer, stated: Capture, meeting: Meeting) -> tuple[Known | Unknown, str | None]:
    """What the arguments hold, by the probe, else by the log; with the native path."""
    if key in probed:
        return probed[key]
    logged = stated.settings.get(key)
    written = meeting.words or meeting.file
    native = logged.native if logged else written[1] if written else None
    if logged and isinstance(logged.resolved, Known):
        return logged.resolved, native
    because = "this version's arguments do not hold it" if probed else "the arguments were not resolved when it ended"
    return Unknown(because=because), native


NOT_IN_ARGUMENTS = (
    "neither the worker nor its log states it, and the arguments may say otherwise: KVCacheManagerV2 runs "
    "MAX_UTILIZATION whatever is written"
)


def _effective(key: str, probed: Mapping[str, Known], stated: Capture, asked: bool) -> Known | Unknown:
    """What the worker holds, else what its log states."""
    if key in probed:
        return probed[key]
    logged = stated.settings.get(key)
    if logged and isinstance(logged.effective, Known):
        return logged.effective
    if key == POLICY:
        return Unknown(because=NOT_IN_ARGUMENTS)
    return Unknown(because="the worker holds no such value" if asked else "no worker was up to be asked")


def _static_default(key: str, seen: Seen) -> object:
    """What is declared in sources of this version; only where the probe did not read it from the engine."""
    return MISSING if seen.made else normalize.static_default(key, seen.version)


UNREAD = "the YAML file was not read, so that it is not known who set it"


def _somebody_may_have_written_it(seen: Seen, meeting: Meeting, value: Known | Unknown, default: object) -> bool:
    """Whether a file that was not read may hold it."""
    unread = seen.yaml is not None and seen.yaml.unread is not None
    return unread and meeting.words is None and isinstance(value, Known) and not same(default, value.value)


def _explained(key: str, made: Setting, default: object, stated: Capture) -> Setting:
    """The setting with why the worker does something else than the arguments say, in the engine's words if it has any.

    What the worker adds to the longest request for its own needs takes nothing from what the user wrote.
    """
    resolved, does = made.resolved, made.effective
    if not isinstance(does, Known):
        return made
    differs = isinstance(resolved, Known) and not same(resolved.value, does.value)
    if key == "model.max_model_len" and differs and _is_larger(does, resolved):
        origin = settle(configured=made.configured, declared=default, resolved=resolved).origin
        return made.model_copy(update={"origin": origin, "because": made.because or LONGER})
    logged = stated.settings.get(key)
    said = logged.because if logged and logged.because != normalize.PRINTED_IS_RESOLVED else None
    rule = REASONS.get(key, DECIDED_BY_WORKER) if differs and made.because is None else None
    cost = admission.COSTS.get(str(plain(does))) if key == POLICY else None
    words = [made.because or said or rule, cost if cost and cost not in (said or "") else None]
    return made.model_copy(update={"because": "; ".join(filter(None, words)) or None})


def _is_larger(left: Known, right: Known | Unknown) -> bool:
    mine, other = number(left), number(right)
    return mine is not None and other is not None and mine > other


DECIDED_BY_WORKER = "the worker decided otherwise than the arguments say"
LONGER = "the worker adds what the overlap scheduler and drafts need"
REASONS: Mapping[str, str] = {
    POLICY: "the scheduler of KVCacheManagerV2 runs MAX_UTILIZATION whatever is written (scheduler_v2.py)",
    "graphs.capture_sizes": "the worker leaves out what exceeds max_batch_size or max_num_tokens",
    "graphs.max_capture_size": "the worker leaves out what exceeds max_batch_size or max_num_tokens",
    "model.max_model_len": "the worker cuts it down to what the KV cache holds, or takes it from the model",
}
