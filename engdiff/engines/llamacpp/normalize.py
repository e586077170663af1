"""From what one launch of llama.cpp showed to the parts of a Capture."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from pydantic import JsonValue

from engdiff.engines.contract import Observed
from engdiff.engines.layers import MISSING, exact, lookup, settle
from engdiff.engines.llamacpp import admission, memory
from engdiff.engines.llamacpp.facts import Context, Fact, LogFacts, cited, parse
from engdiff.engines.llamacpp.launch import translate
from engdiff.knowledge.tables import Knowledge
from engdiff.schema.capture import (
    Capture,
    EngineWarning,
    Graphs,
    Instance,
    Phase,
    Process,
    Rank,
    Runner,
    Setting,
)
from engdiff.schema.values import Known, Unknown, Value
from engdiff.units import MIB

KNOWLEDGE = Knowledge("engdiff.engines.llamacpp")

Tree = dict[str, Any]

EFFECTIVE_IN_CONTEXT = {
    "model.context_total": "n_ctx",
    "scheduler.max_num_batched_tokens": "n_batch",
    "scheduler.micro_batch": "n_ubatch",
    "kv.unified": "kv_unified",
}
"""Settings that the context itself states when it is built (``llama_context:`` lines)."""

EFFECTIVE_IN_FACTS = {
    "scheduler.max_num_seqs": "slots",
    "kernels.threads": "threads",
    "kernels.threads_batch": "threads_batch",
    "server.http_threads": "http_threads",
    "kernels.flash_attention": "flash_attention",
    "kv.checkpoints": "checkpoints",
}
"""Settings that a line of the server states."""


def capture(observed: Observed, base: Capture) -> Capture:
    """``base`` with everything that the probe, the endpoints and the log say."""
    server: Tree = observed.probe.get("server") or observed.probe.get("parameters") or {}  # type: ignore[assignment]
    log = parse(observed.log)
    props = _json(observed.endpoints.get("props"))
    return base.model_copy(
        update={
            "identity": base.identity.model_copy(update={"commit": _commit(server)}),
            "native": _native(server, props, log),
            "settings": settings(observed, server, log, props),
            "instances": (_instance(observed, log),),
            "runner": _runner(log),
            "admission": admission.rule(),
            "boot": _boot(observed, server),
            "warnings": warnings_in(log),
        }
    )


_SPEAKER = re.compile(r"^[a-z~]+\s+[\w()~]+: ")


def warnings_in(log: LogFacts) -> tuple[EngineWarning, ...]:
    """Lines that the engine marked, without the name of the function that speaks; rulers are left out."""
    said = (w.model_copy(update={"text": _SPEAKER.sub("", w.text)}) for w in log.warnings)
    return tuple(w for w in said if re.search(r"[A-Za-z]", w.text))


def _json(body: str | None) -> Tree:
    try:
        data = json.loads(body or "{}")
    except ValueError:
        return {}
    return data if isinstance(data, dict) else {}


def _commit(server: Tree) -> Value:
    commit = (server.get("build_info") or {}).get("commit")
    if commit and commit != "unknown":
        return exact(commit, "probe", "xllamacpp.BUILD_INFO")
    return Unknown(because="this wheel's BUILD_INFO does not name the llama.cpp commit")


def _native(server: Tree, props: Tree, log: LogFacts) -> dict[str, JsonValue]:
    """Everything as the engine names it."""
    served = log.served
    return {
        "params": server.get("resolved"),
        "params_declared": server.get("defaults"),
        "context": {name: fact.value for name, fact in served.values.items()} if served else None,
        "model": {name: fact.value for name, fact in log.model.items()},
        "props": {k: v for k, v in props.items() if k != "chat_template"},
        "build": server.get("build_info"),
        "cpu_backend": server.get("system_info"),
    }


# --- settings ---------------------------------------------------------------------------------------------------


def settings(observed: Observed, server: Tree, log: LogFacts, props: Tree) -> dict[str, Setting]:
    """Canonical settings in their three layers."""
    version = observed.request.version
    translation = translate(observed.request.arguments, observed.request.variables, version)
    written = {"model.path": observed.request.model, **translation.fields}
    where = {"model.path": "-m", **translation.origins}
    found: dict[str, Setting] = {}
    for key, names in KNOWLEDGE.names(version).items():
        path = names.native
        resolved = lookup(server.get("resolved"), path) if path else MISSING
        if path is None or resolved is MISSING:
            continue
        configured = None
        if path in written:
            configured = exact(canonical(key, written[path]), "command", where[path])
        added = observed.plan.added.get(path)
        found[key] = settle(
            configured=configured,
            declared=canonical(key, lookup(server.get("defaults"), path)),
            resolved=exact(canonical(key, resolved), "probe", f"CommonParams.{path}"),
            effective=_effective(key, log),
            native=path,
            because=f"set by engdiff, {added}" if added else None,
        )
    found |= _per_slot(found, log, props)
    return _with_rules(found, log)


def canonical(key: str, value: object) -> Any:
    """The value in the registry's words: short enum names, bytes instead of MiB, positive switches."""
    if isinstance(value, str):
        for prefix in ("GGML_TYPE_", "LLAMA_FLASH_ATTN_TYPE_", "COMMON_REASONING_FORMAT_"):
            if value.startswith(prefix):
                return value.removeprefix(prefix).lower()
    if key == "kv.offload_bytes" and isinstance(value, int) and value >= 0:
        return value * MIB
    if key == "kv.offloaded_to_device" and isinstance(value, bool):
        return not value
    return value


def _effective(key: str, log: LogFacts) -> Known | None:
    """What the running server states in its log."""
    served = log.served
    if served and (name := EFFECTIVE_IN_CONTEXT.get(key)) and (fact := served.values.get(name)):
        return stated(fact)
    if (name := EFFECTIVE_IN_FACTS.get(key)) and (fact := log.facts.get(name)):
        return stated(fact)
    if key == "kernels.threads_batch" and (threads := log.facts.get("threads")):
        return stated(threads).model_copy(update={"basis": "engine rule"})  # unset, it is the number of threads
    if served and key in ("kv.dtype", "kv.dtype_values"):
        return _cache_type(served, "k" if key == "kv.dtype" else "v")
    return None


def _cache_type(served: Context, group: str) -> Known | None:
    """The element type of keys (``k``) or values (``v``), as the first cache that states it says."""
    sizes = (statement for cache in served.caches for statement in (cache.size, cache.init) if statement is not None)
    said = next((statement for statement in sizes if statement.get(group)), None)
    return Known(value=said[group], evidence=cited(said, group).evidence) if said else None


def stated(fact: Fact) -> Known:
    """A fact of the log as a value with its line."""
    return Known(value=fact.value, evidence=fact.line.evidence)


def _per_slot(found: Mapping[str, Setting], log: LogFacts, props: Tree) -> dict[str, Setting]:
    """The longest request: what one slot may hold."""
    per_slot = lookup(props, "default_generation_settings.n_ctx")
    if per_slot is not MISSING:
        value: Known | Unknown = exact(per_slot, "endpoint", "/props default_generation_settings.n_ctx")  # type: ignore[arg-type]
    elif fact := log.facts.get("slot_context"):
        value = stated(fact)
    else:
        value = Unknown(because="neither /props nor the log states a slot's context")
    total = found.get("model.context_total")
    setting = settle(configured=None, declared=None, resolved=value, effective=value)
    if total and total.configured:
        setting = setting.model_copy(
            update={"because": "follows from the context that was asked for and the slots that share it"}
        )
    return {"model.max_model_len": setting}


def _with_rules(found: dict[str, Setting], log: LogFacts) -> dict[str, Setting]:
    """Settings with the engine's own words for why it derived them."""
    rule = log.facts.get("fit_rule")
    total = found.get("model.context_total")
    if rule and total:
        found["model.context_total"] = total.model_copy(update={"because": f"the engine's own words: {rule.value}"})
    return found


# --- the rest ---------------------------------------------------------------------------------------------------


def _instance(observed: Observed, log: LogFacts) -> Instance:
    """One process does everything; its devices are the ranks."""
    main = observed.processes[0] if observed.processes else None
    threads: Value = (
        Known(value=main.threads, basis="measured")
        if main
        else Unknown(because="the process was gone before it was looked at")
    )
    process = Process(
        name="server", parent=None, threads=threads, steps=("http", "tokenise", "schedule", "execute", "detokenise")
    )
    nothing = Unknown(because="llama.cpp's CPU back end captures no graphs")
    graphs = Graphs(
        mode=nothing, sizes=nothing, prefill_sizes=nothing, captured=nothing, bytes=nothing, seconds=nothing
    )
    ranks = tuple(
        Rank(device=device, ledger=memory.ledger(device, log), pools=memory.pools(device, log), graphs=graphs)
        for device in memory.devices(log)
    )
    return Instance(processes=(process,), ranks=ranks)


def _runner(log: LogFacts) -> Runner:
    fact = log.facts.get("flash_attention")
    none = Unknown(because="llama.cpp has one runner")
    backend = _attention(fact) if fact else Unknown(because="the log does not say whether Flash Attention is on")
    return Runner(
        name=Known(value="ggml graph", basis="engine rule"), because=none, attention_backend=backend, candidates=none
    )


def _attention(fact: Fact) -> Known:
    value = "flash attention" if fact.value == "enabled" else "plain attention"
    return Known(value=value, evidence=fact.line.evidence)


def _boot(observed: Observed, server: Tree) -> tuple[Phase, ...]:
    """Phases of the boot, in seconds, from the probe's clock."""
    times = server.get("times") or {}
    unknown = Unknown(because="the server did not come up")

    def between(start: float | None, end: float | None) -> Value:
        return unknown if start is None or end is None else Known(value=round(end - start, 3), basis="measured")

    return (
        Phase(name="start interpreter", seconds=between(observed.started_at, times.get("started"))),
        Phase(name="import", seconds=between(times.get("started"), times.get("imported"))),
        Phase(name="load model and allocate", seconds=between(times.get("imported"), times.get("listening"))),
        healthy(observed).model_copy(update={"meaning": "all of the above"}),
    )


def healthy(observed: Observed) -> Phase:
    """From the start of the process to the first good answer, in seconds."""
    seconds: Value = Unknown(because="the server did not come up")
    if observed.ready_at is not None:
        seconds = Known(value=round(observed.ready_at - observed.started_at, 3), basis="measured")
    return Phase(name="start to healthy", seconds=seconds)
