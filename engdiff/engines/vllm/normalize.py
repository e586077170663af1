"""From what one launch of vLLM showed to the parts of a Capture."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import JsonValue

from engdiff.engines.contract import Observed
from engdiff.engines.layers import MISSING, exact, lookup, settle
from engdiff.engines.probed import Tree, known, tree
from engdiff.engines.processes import Role, processes
from engdiff.engines.starting import whole_boot
from engdiff.engines.vllm import admission, from_log, log, memory
from engdiff.knowledge.tables import Knowledge, Names
from engdiff.logs.starts import Start
from engdiff.logs.statements import Statement
from engdiff.process.supervise import ProcessFact
from engdiff.schema.capture import Capture, Device, Graphs, Instance, Phase, Process, Rank, Runner, Setting, Step
from engdiff.schema.values import Evidence, Known, Unknown, Value
from engdiff.units import GIB

KNOWLEDGE = Knowledge("engdiff.engines.vllm")


def capture(observed: Observed, base: Capture) -> Capture:
    """``base`` with everything that the probe, the endpoints and the log say."""
    core, arguments = tree(observed.probe.get("core-0")), tree(observed.probe.get("arguments"))
    answers = core.get("workers")
    workers = [w for w in answers if isinstance(w, dict)] if isinstance(answers, list) else []
    said = log.launched(observed.log)
    return base.model_copy(
        update={
            "identity": _identity(base, core, workers),
            "native": native(core, arguments),
            "settings": settings(observed, core, arguments, workers),
            "instances": (_instance(observed, core, workers, said),),
            "runner": _runner(core, workers, said),
            "admission": admission.rule(core),
            "boot": _boot(observed, said),
            "warnings": tuple(said.warnings),
            "notes": (*base.notes, *_notes(observed)),
        }
    )


def _notes(observed: Observed) -> tuple[str, ...]:
    """What the probe could not read, with its reason."""
    out = []
    for name in ("arguments", "core-0"):
        value = observed.probe.get(name)
        if value is None and observed.ready_at is not None:
            out.append(f"the probe wrote no {name}.json; settings that come from it are unknown")
        elif isinstance(value, dict) and "unreadable" in value:
            out.append(f"the probe could not read {name}: {value['unreadable']}")
    return tuple(out)


def _identity(base: Capture, core: Tree, workers: list[Tree]) -> Any:
    versions = core.get("versions") or {}
    update: dict[str, Any] = {}
    if commit := versions.get("commit"):
        update["commit"] = exact(commit, "probe", "vllm._version.__commit_id__")
    if devices := tuple(_gpu_device(w) for w in workers if str(w.get("device", "")).startswith("cuda")):
        update["devices"] = devices
    return base.identity.model_copy(update=update)


def _gpu_device(worker: Tree) -> Device:
    snapshot = worker.get("snapshot") or {}
    return Device(
        kind="gpu",
        name=str(worker.get("device")),
        memory_bytes=memory.known(snapshot.get("total_memory"), "init_snapshot.total_memory"),
    )


def native(core: Tree, arguments: Tree) -> dict[str, JsonValue]:
    """Everything as vLLM names it; flags by destination, so that a pin can be written in this version's own words."""
    flags: dict[str, JsonValue] = {
        f["dest"]: {k: v for k, v in f.items() if k != "dest"} for f in arguments.get("flags") or ()
    }
    kept = {
        k: core.get(k)
        for k in ("config", "variables", "platform", "platform_facts", "executor", "scheduler_class", "scheduling")
    }
    return {
        **kept,
        "kv": core.get("kv"),
        "workers": core.get("workers"),
        "explicit": arguments.get("explicit"),
        "flags": flags,
    }


# --- settings ---------------------------------------------------------------------------------------------------


def settings(observed: Observed, core: Tree, arguments: Tree, workers: list[Tree]) -> dict[str, Setting]:
    """Canonical settings in their three layers, for every key that this version has."""
    config = core.get("config")
    if not isinstance(config, dict):
        return {}
    declared = {f["dest"]: f["default"] for f in arguments.get("flags") or ()}
    explicit = arguments.get("explicit") or {}
    effective = _effective(core, workers)
    found: dict[str, Setting] = {}
    for key, names in KNOWLEDGE.names(observed.request.version).items():
        native = _native_path(key, names, config)
        value = lookup(config, native) if native else MISSING
        resolved: Known | Unknown = Unknown(because="this version's configuration does not hold it")
        if value is not MISSING:
            resolved = exact(_clean(value), "probe", f"VllmConfig.{native}")
        elif key not in effective:
            continue
        found[key] = settle(
            configured=_configured(names, explicit, observed.plan.read_variables),
            declared=_declared(names, declared),
            resolved=resolved,
            effective=effective.get(key),
            native=native,
        )
    return found


CPU_SPACE = "cache_config.cpu_kvcache_space_bytes"
"""Where CPU builds up to 0.19.1 keep the bytes of the cache; nothing reads their kv_cache_memory_bytes."""


def _native_path(key: str, names: Names, config: Tree) -> str | None:
    """Where this launch keeps a setting: by version, and for the bytes of the cache by device."""
    if key == "kv.configured_bytes" and lookup(config, CPU_SPACE) not in (MISSING, None):
        return CPU_SPACE
    return names.native


NOT_FOR_USERS = object()
"""Declared default of a setting that no flag sets: whatever holds was derived."""


def _declared(names: Names, declared: Mapping[str, Any]) -> object:
    """The parser's default; of a flag that takes a whole sub-configuration, that of its entry."""
    if names.arg is None:
        return NOT_FOR_USERS if names.variable is None else MISSING
    default = declared.get(names.arg, MISSING)
    leaf = (names.native or "").rsplit(".", 1)[-1]
    if leaf != names.arg and names.arg.endswith("_config"):
        return default.get(leaf, MISSING) if isinstance(default, dict) else MISSING
    return default if default is MISSING else _clean(default)


def _configured(names: Names, explicit: Mapping[str, Any], variables: Mapping[str, str]) -> Known | None:
    """What the user wrote, as a flag or as a variable; a nested flag is looked up by its last name."""
    if names.arg and names.arg in explicit:
        written = explicit[names.arg]
        leaf = (names.native or "").rsplit(".", 1)[-1]
        if isinstance(written, dict):
            return exact(written[leaf], "command", f"--{names.arg.replace('_', '-')}") if leaf in written else None
        return exact(_clean(written), "command", names.flag or f"--{names.arg}")
    if names.variable and names.variable in variables:
        return exact(_from_variable(variables[names.variable], names.variable_unit), "command", names.variable)
    return None


def _from_variable(text: str, unit: str | None) -> JsonValue:
    """The variable's value in the setting's own unit."""
    if unit == "GiB":
        try:
            return round(float(text) * GIB)
        except (ValueError, OverflowError):
            return text
    return text


def _clean(value: object) -> Any:
    """The value in the registry's words: element types without ``torch.``, classes by their last name."""
    if isinstance(value, str):
        value = value.removeprefix("torch.")
        return value.rsplit(".", 1)[-1] if re.fullmatch(r"vllm(\.\w+)+", value) else value
    return value


def _effective(core: Tree, workers: list[Tree]) -> dict[str, Known]:
    """What scheduler and workers really hold."""
    scheduling, share = core.get("scheduling") or {}, (core.get("kv") or {}).get("utilisation")
    found = {
        "kv.gpu_memory_utilization": known(share, "CacheConfig.resolved_gpu_memory_utilization"),
        "scheduler.max_num_seqs": _scheduling(scheduling, "max_num_running_reqs"),
        "scheduler.max_num_batched_tokens": _scheduling(scheduling, "max_num_scheduled_tokens"),
        "scheduler.class": known(_clean(core.get("scheduler_class")), "type(EngineCore.scheduler)"),
        "parallel.worker_class": known(_clean(workers[0].get("class")), "type(worker)") if workers else None,
        "kernels.attention_backend": known(_backends(workers), "attn_groups[].backend") if workers else None,
    }
    return {key: value for key, value in found.items() if value is not None}


def _scheduling(scheduling: Tree, name: str) -> Known | None:
    return known(scheduling.get(name), f"Scheduler.{name}")


def _backends(workers: Iterable[Tree]) -> str | None:
    names = sorted({b for w in workers for b in w.get("attention") or () if isinstance(b, str)})
    return ", ".join(names) or None


# --- instances --------------------------------------------------------------------------------------------------


def _instance(observed: Observed, core: Tree, workers: list[Tree], said: Start) -> Instance:
    ranks = tuple(_rank(core, worker, said) for worker in workers)
    return Instance(processes=_processes(observed.processes), ranks=ranks)


def _rank(core: Tree, worker: Tree, said: Start) -> Rank:
    parallel = worker.get("parallel") or {}
    device = str(worker.get("device"))
    terms = memory.ledger(core, worker)
    return Rank(
        tp=_index(parallel.get("rank")),
        dp=_index(parallel.get("data_parallel_rank")),
        device="cpu" if device == "None" else device,
        ledger=terms,
        pools=memory.pool(core, terms),
        graphs=_graphs(core, worker, said),
    )


def _index(value: object) -> int:
    return value if isinstance(value, int) else 0


ONE_LIST = Unknown(because="vLLM captures decode and mixed batches by one list of sizes")


def _graphs(core: Tree, worker: Tree, said: Start) -> Graphs:
    compilation = (core.get("config") or {}).get("compilation_config") or {}
    mode, sizes = compilation.get("cudagraph_mode"), compilation.get("cudagraph_capture_sizes")
    nothing = Unknown(because="no graph was captured")
    captured = said.last_of("graphs")
    return Graphs(
        mode=value_of(mode, "compilation_config.cudagraph_mode"),
        sizes=value_of(sizes, "compilation_config.cudagraph_capture_sizes"),
        prefill_sizes=ONE_LIST,
        captured=value_of(worker.get("captured"), "compilation_counter.num_cudagraph_captured"),
        bytes=_from_log(captured, "graphs_gib", GIB) or nothing,
        seconds=_from_log(captured, "capture_seconds", 1) or nothing,
    )


def value_of(value: object, where: str) -> Value:
    """A value of the probe, or that this version does not report it."""
    return known(value, where) or Unknown(because=f"this version does not report {where}")


def _from_log(statement: Statement | None, group: str, unit: int) -> Known | None:
    """A number of the log in bytes or seconds; the message is cited without its prefix."""
    if statement is None or statement.get(group) is None:
        return None
    return Known(
        value=float(statement[group]) * unit,
        basis="measured",
        evidence=Evidence(source="log", where=statement.text, line=statement.line.number),
    )


FRONT_END: tuple[Step, ...] = ("http", "tokenise", "detokenise")

ROLES: tuple[Role, ...] = (
    ("api_server", "front end", FRONT_END),
    ("ApiServer", "front end", FRONT_END),
    ("EngineCore", "engine core", ("schedule",)),
    ("Worker", "worker", ("execute",)),
    ("resource_tracker", "resource tracker", ()),
)
"""Which process owns which step, by its title (vllm/utils/system_utils.py ``set_process_title``)."""


def _processes(facts: tuple[ProcessFact, ...]) -> tuple[Process, ...]:
    """Without workers of its own an engine core executes as well."""
    found = processes(facts, ROLES)
    if any(one.name == "worker" for one in found):
        return found
    both: tuple[Step, ...] = ("schedule", "execute")
    return tuple(one.model_copy(update={"steps": both}) if one.name == "engine core" else one for one in found)


# --- runner and boot --------------------------------------------------------------------------------------------


def _runner(core: Tree, workers: list[Tree], said: Start) -> Runner:
    cls = str(workers[0].get("runner_class")) if workers else ""
    return Runner(
        name=Known(
            value="V2" if _is_v2(core, cls) else "V1",
            evidence=Evidence(source="probe", where=f"type(model_runner): {cls}"),
        )
        if cls
        else Unknown(because="no worker was up to be asked"),
        because=_runner_reason(core, said),
        attention_backend=known(_backends(workers), "attn_groups[].backend")
        or Unknown(because="no worker was up to be asked"),
        candidates=Unknown(because="this version does not say which backends it considered"),
    )


def _is_v2(core: Tree, cls: str) -> bool:
    use = (core.get("runner") or {}).get("use_v2")
    return use if isinstance(use, bool) else ".gpu.model_runner" in cls or ".cpu.model_runner" in cls


def _runner_reason(core: Tree, said: Start) -> Value:
    """The engine's own words, else its own check, else nothing."""
    return from_log.reason(said) or unsupported(core)


def unsupported(core: Tree) -> Value:
    """What the engine's own check says against the newer runner."""
    against = (core.get("runner") or {}).get("unsupported")
    if isinstance(against, list) and against:
        return exact(", ".join(map(str, against)), "probe", "VllmConfig._get_v2_model_runner_unsupported_features()")
    return Unknown(because="this version gives no reason for its runner")


def _boot(observed: Observed, said: Start) -> tuple[Phase, ...]:
    phases = []
    for name, (statement, group) in from_log.TIMED.items():
        if seconds := _from_log(said.last_of(statement), group, 1):
            phases.append(Phase(name=name, seconds=seconds, meaning="as vLLM times it"))
    return (*phases, whole_boot(observed))
