"""From one start in a log of vLLM to the parts of a Capture."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import JsonValue

from engdiff.engines.vllm import log_memory, log_settings
from engdiff.logs.starts import Start
from engdiff.logs.statements import Statement
from engdiff.logs.values import amount, evidence, word
from engdiff.schema.capture import Admission, Capture, Instance, Launch, Phase, Rank, Runner, Setting
from engdiff.schema.values import Evidence, Known, Unknown, Value, number, plain

NOT_STATED = "the log does not state it"

SEVERAL_TIMES = "as vLLM times it"


def capture(start: Start, base: Capture) -> Capture:
    """``base`` with everything that the log states."""
    trees = log_settings.trees(start)
    settings = log_settings.settings(start, trees)
    ranks = log_memory.ranks(start, settings)
    identity = base.identity.model_copy(
        update={"version": _version(start), "devices": log_memory.devices(start, settings) or base.identity.devices}
    )
    return base.model_copy(
        update={
            "identity": identity,
            "launch": _launch(start, trees, base.launch),
            "native": {**trees.native(), "log": _said(start)},
            "settings": settings,
            "instances": (Instance(processes=(), ranks=ranks),) if ranks else (),
            "runner": _runner(start, settings),
            "admission": _admission(start),
            "boot": phases(start),
            "notes": (*base.notes, *_notes(start, trees, settings, ranks)),
        }
    )


def _version(start: Start) -> Value:
    if found := log_settings.version(start):
        return found
    unnamed = next((s for s in start.all("api version", "engine config", "banner version") if s.get("version")), None)
    if unnamed:
        return Unknown(
            because=f"this vLLM was built without a version: line {unnamed.line.number} says `{unnamed['version']}`"
        )
    return Unknown(because=NOT_STATED)


def _launch(start: Start, trees: log_settings.Trees, launch: Launch) -> Launch:
    """The model as printed: as the user gave it, else as the configuration or a line names it."""
    for tree, names in ((trees.given, ("model", "model_tag")), (trees.every, ("model",)), (trees.config, ("model",))):
        for name in names:
            if tree and isinstance(model := tree.tree.get(name), str):
                return launch.model_copy(update={"model": model, "model_given": model})
    statement = start.last_of("banner model", "loading model")
    model = statement["model"] if statement else None
    return launch.model_copy(update={"model": model, "model_given": model}) if model else launch


# --- how far it came --------------------------------------------------------------------------------------------

_STAGES: Mapping[str, tuple[str, ...]] = {
    "configuration": ("api version", "banner version", "user args", "all args", "engine config", "architecture"),
    "load weights": ("loading model", "checkpoint", "checkpoint shards", "attention backend", "weights loaded"),
    "profile memory": ("weights", "dynamo", "compiled", "encoder budget", "profiled", "graph plan", "graph estimate"),
    "size the KV cache": (
        "available KV",
        "memory split",
        "memory results",
        "KV check",
        "CPU KV",
        "KV set outright",
        "KV tokens",
        "blocks",
        "concurrency",
    ),
    "capture graphs": ("capturing", "graph bar", "graph capping"),
    "warm up": ("graphs", "graph pool", "memory summary"),
    "serve": ("initialised", "serving", "routes", "up"),
}
"""The phase that goes on after a statement of these names."""


def stage(start: Start) -> str:
    """The furthest phase that the start says it reached."""
    said = {statement.name for statement in start.statements}
    reached = [phase for phase, names in _STAGES.items() if not said.isdisjoint(names)]
    return reached[-1] if reached else "configuration"


# --- runner, admission, boot ------------------------------------------------------------------------------------


def _runner(start: Start, settings: Mapping[str, Setting]) -> Runner:
    v2, fallback = start.last_of("runner V2"), start.last_of("runner fallback")
    name: Value = Unknown(because="vLLM names only its V2 model runner, and the log does not")
    if v2:
        name = Known(value="V2", evidence=evidence(v2.line.text, v2.line))
    elif fallback:
        name = Known(value="V1", evidence=evidence(fallback.line.text, fallback.line))
    backend = settings.get("kernels.attention_backend")
    listed = next((s for s in reversed(list(start.all("attention backend"))) if s.get("candidates")), None)
    return Runner(
        name=name,
        because=_word(fallback, "because") or Unknown(because="the log gives no reason for the runner"),
        attention_backend=backend.final if backend else Unknown(because=NOT_STATED),
        candidates=_word(listed, "candidates") or Unknown(because=NOT_STATED),
    )


def _word(statement: Statement | None, group: str) -> Known | None:
    return word(statement, group) if statement else None


def reason(start: Start) -> Known | None:
    """Why the V2 runner was not used, in the engine's own words; the message is cited without its prefix."""
    said = start.last_of("runner fallback")
    if said is None:
        return None
    return Known(value=said.text, evidence=Evidence(source="log", where=said.text, line=said.line.number))


def _admission(start: Start) -> Admission:
    """V0 states that it preempts; V1 recomputes in every version, and no start says so."""
    unknown = Unknown(because="the log does not state the scheduler's rule")
    generation = start.last_of("engine config")
    preemption: Value = unknown
    if generation and (generation.get("generation") or "").startswith("V1"):
        where = f"vllm/v1/core/sched/scheduler.py, the V1 engine of line {generation.line.number}"
        preemption = Known(
            value="recompute: the request that came last is thrown out and starts again",
            basis="engine rule",
            evidence=Evidence(source="rule", where=where),
        )
    keys = (
        "scheduler.max_num_seqs",
        "scheduler.max_num_batched_tokens",
        "scheduler.chunked_prefill",
        "kv.prefix_caching",
    )
    return Admission(rule=unknown, preemption=preemption, settings=keys)


TIMED = {
    "load weights": ("weights loaded", "load_seconds"),
    "compile": ("compiled", "compile_seconds"),
    "capture graphs": ("graphs", "capture_seconds"),
    "profile, allocate KV, warm up": ("initialised", "init_seconds"),
}
"""Boot phases that a launched capture has as well, by statement and group."""

_ALSO_TIMED = {
    "load model": ("weights", "model_seconds"),
    "profile memory": ("profiled", "profile_seconds"),
}


def phases(start: Start) -> tuple[Phase, ...]:
    """What vLLM times itself; of several workers the slowest."""
    found = []
    for name, (statement, group) in {**TIMED, **_ALSO_TIMED}.items():
        said = {(s.speaker, s.said.pid): s for s in start.all(statement) if s.get(group) is not None}
        times = [seconds for s in said.values() if (seconds := amount(s, group))]
        if times:
            slowest = max(times, key=lambda seconds: number(seconds) or 0)
            several = f"{SEVERAL_TIMES}; the slowest of {len(times)} workers" if len(times) > 1 else SEVERAL_TIMES
            found.append(Phase(name=name, seconds=slowest, meaning=several))
    return tuple(found)


# --- everything else --------------------------------------------------------------------------------------------

_ELSEWHERE = {"user args", "all args", "engine config", "config fragment"}
"""Their text is a tree of its own."""


def _said(start: Start) -> dict[str, JsonValue]:
    """The last occurrence of every statement, so that nothing that was read is lost."""
    found: dict[str, JsonValue] = {}
    for statement in start.statements:
        if statement.name not in _ELSEWHERE:
            groups = {k: v.strip() for k, v in statement.match.groupdict().items() if v is not None}
            found[statement.name] = {**groups}
    return found


def _notes(
    start: Start, trees: log_settings.Trees, settings: Mapping[str, Setting], ranks: tuple[Rank, ...]
) -> list[str]:
    found = [*trees.notes(), *log_memory.notes(start, settings)]
    by_default = [p for rank in ranks for p in rank.pools if _by_default(p.block_tokens)]
    if by_default:
        tokens = plain(by_default[0].block_tokens)
        found.append(
            f"the log states no block size: {tokens} tokens, the default of its version, is used to count tokens"
        )
    return found


def _by_default(value: Value) -> bool:
    return isinstance(value, Known) and value.evidence is not None and value.evidence.where.startswith("the default")
