"""What a running SGLang server answers: endpoints that only read, and what their answers mean.

``/health`` is not among them: from 0.4.10 on it has the handler of ``/health_generate``, which runs a request
(entrypoints/http_server.py 0.5.12, 0.5.23; SGLANG_ENABLE_HEALTH_ENDPOINT_GENERATION is on by default).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue

from engdiff.engines.answers import answered, cards_in, counted, labelled, object_in, plain_value
from engdiff.engines.sglang import admission, normalize
from engdiff.knowledge.versions import is_version
from engdiff.metrics_text import samples
from engdiff.schema.capture import Capture, Device, Graphs, Instance, Phase, Pool, Rank, Runner, Setting, Term
from engdiff.schema.values import Evidence, Known, Unknown, Value
from engdiff.units import GIB

IDENTIFY: tuple[str, ...] = ("/v1/models", "/get_model_info")

ENDPOINTS: Mapping[str, str] = {
    "server_info": "/server_info",
    "get_server_info": "/get_server_info",
    "model_info": "/model_info",
    "get_model_info": "/get_model_info",
    "models": "/v1/models",
    "metrics": "/metrics",
}
"""The names without ``get_`` are there from 0.5.6 on; metrics only with ``--enable-metrics``."""

DRAINING: Mapping[str, str] = {}

NOT_ARGUMENTS = {
    "internal_states",
    "version",
    "status",
    "frontend",
    "launch_command",
    "max_total_num_tokens",
    "max_req_input_len",
    "startup_time",
    "hicache_object_layout",
    "kv_events",
    "last_gen_throughput",
    "memory_usage",
    "avg_spec_accept_length",
    "scheduler_info",
}
"""What /server_info holds besides ServerArgs."""

MEASURED = {
    "last_gen_throughput",
    "memory_usage",
    "startup_time",
    "avg_spec_accept_length",
    "decode_cuda_graph_memory_gb",
}
"""Of a scheduler's state: what has its place elsewhere in the capture."""

SECRETS = {"api_key", "admin_api_key", "watermark_key", "watermark_key_b", "ssl_keyfile_password"}

HALF_CENT = 0.005 * GIB
"""Sizes are rounded to two decimals or more before they are answered."""


MOST_SAMPLES = 500

Tree = Mapping[str, JsonValue]


def recognises(answers: Mapping[str, str]) -> bool:
    """Whether these answers are of SGLang: its name as owner of the models, or what only its model info holds."""
    if any(card.get("owned_by") == "sglang" for card in cards_in(answers.get("/v1/models"))):
        return True
    info = object_in(answers.get("/get_model_info"))
    return isinstance(info.get("is_generation"), bool) and isinstance(info.get("tokenizer_path"), str)


def capture(answers: Mapping[str, str], base: Capture) -> Capture:
    """``base`` with everything that the endpoints say."""
    said = _said(answers)
    settings = _settings(said)
    return base.model_copy(
        update={
            "identity": _identity(base, said),
            "launch": _launch(base, said),
            "native": _native(said),
            "settings": settings,
            "instances": _instances(said, settings),
            "runner": _runner(settings),
            "admission": admission.rule(),
            "boot": _boot(said),
            "run_summary": {**base.run_summary, **_run_summary(answers, said)},
        }
    )


@dataclass(frozen=True)
class Answers:
    """What was answered. ``info_path`` is the path that answered with the arguments."""

    info: Tree
    info_path: str
    states: tuple[Tree, ...]
    model: Tree
    model_path: str
    card: Tree


def _said(answers: Mapping[str, str]) -> Answers:
    info, info_path = _first(answers, "server_info", "get_server_info")
    model, model_path = _first(answers, "model_info", "get_model_info")
    card = next(iter(cards_in(answers.get("models"))), {})
    states = info.get("internal_states")
    listed = [s for s in states if isinstance(s, dict)] if isinstance(states, list) else []
    return Answers(info, info_path, tuple(listed) or ((info,) if info else ()), model, model_path, card)


def _first(answers: Mapping[str, str], *names: str) -> tuple[Tree, str]:
    for name in names:
        if tree := object_in(answers.get(name)):
            return tree, ENDPOINTS[name]
    return {}, ENDPOINTS[names[0]]


def _gib(value: object, where: str) -> Known | None:
    """A size that SGLang rounds to GB, by which it means GiB, in bytes."""
    found = counted(value, where)
    if found is None or not isinstance(found.value, int | float):
        return None
    size = found.value * GIB
    return found.model_copy(
        update={"value": round(size), "low": size - HALF_CENT, "high": size + HALF_CENT, "basis": "measured"}
    )


# --- identity, launch, native -----------------------------------------------------------------------------------


def _identity(base: Capture, said: Answers) -> Any:
    update: dict[str, Any] = {}
    if version := plain_value(said.info.get("version"), f"{said.info_path} version"):
        update["version"] = version
    device = said.info.get("device")
    if isinstance(device, str):
        unknown = Unknown(because="the endpoints do not state the size of the devices")
        update["devices"] = (Device(kind="cpu" if device == "cpu" else "gpu", name=device, memory_bytes=unknown),)
    return base.identity.model_copy(update=update)


def _version(said: Answers) -> str | None:
    version = said.info.get("version")
    return version if isinstance(version, str) and is_version(version) else None


def _launch(base: Capture, said: Answers) -> Any:
    stated = (said.info.get("model_path"), said.model.get("model_path"), said.card.get("root"), said.card.get("id"))
    model = next((name for name in stated if isinstance(name, str)), None)
    return base.launch if model is None else base.launch.model_copy(update={"model": model, "model_given": model})


def _native(said: Answers) -> dict[str, JsonValue]:
    arguments = {k: v for k, v in said.info.items() if k not in NOT_ARGUMENTS and k not in SECRETS}
    rest: dict[str, JsonValue] = {
        k: v for k, v in said.info.items() if k in NOT_ARGUMENTS - {"internal_states", "launch_command"}
    }
    own = [_own(state, arguments) for state in said.states if state is not said.info]
    parts: dict[str, JsonValue] = {
        "server_args": arguments,
        "server_info": rest,
        "internal_states": [*own],
        "model_info": {**said.model},
        "model_card": {k: v for k, v in said.card.items() if k != "created"},
    }
    return {name: part for name, part in parts.items() if part}


def _own(state: Tree, arguments: Tree) -> dict[str, JsonValue]:
    """What a scheduler holds besides the arguments, or holds otherwise."""
    missing = object()
    return {k: v for k, v in state.items() if k not in {*SECRETS, *MEASURED} and arguments.get(k, missing) != v}


# --- settings ---------------------------------------------------------------------------------------------------


def _settings(said: Answers) -> dict[str, Setting]:
    arguments = {k: v for k, v in said.info.items() if k not in NOT_ARGUMENTS and k not in SECRETS}
    return normalize.settings(
        arguments, lambda path: answered(f"{said.info_path} {path}"), _effective(said), _version(said)
    )


def _effective(said: Answers) -> dict[str, Known]:
    """What the scheduler holds after it changed the arguments, and what the model allows."""
    found: dict[str, Known | None] = {**_held(said)}
    state = said.states[0] if said.states else {}
    where = f"{said.info_path} internal_states[0]"
    requests = counted(
        state.get("effective_max_running_requests_per_dp"), f"{where}.effective_max_running_requests_per_dp"
    )
    found["scheduler.max_num_seqs"] = requests or found.get("scheduler.max_num_seqs")
    found["model.max_model_len"] = counted(said.card.get("max_model_len"), "/v1/models data[0].max_model_len")
    usage = state.get("memory_usage")
    if isinstance(usage, dict):
        found["kv.pool_bytes"] = _gib(usage.get("kvcache"), f"{where}.memory_usage.kvcache")
    captured = state.get("decode_cuda_graph_bs")
    if isinstance(captured, list) and captured:
        found["graphs.capture_sizes"] = Known(value=captured, evidence=answered(f"{where}.decode_cuda_graph_bs"))
    if said.info.get("device") == "cpu":
        found.pop("graphs.mode", None)  # the arguments plan graphs of a GPU all the same
    return {key: value for key, value in found.items() if value is not None}


def _held(said: Answers) -> dict[str, Known]:
    """Arguments as the first scheduler holds them, where it holds a value."""
    if not said.states or said.states[0] is said.info:
        return {}
    prefix = f"{said.info_path} internal_states[0]."
    held = normalize.settings(said.states[0], lambda path: answered(prefix + path), {}, _version(said))
    values = {key: setting.resolved for key, setting in held.items()}
    return {k: v for k, v in values.items() if isinstance(v, Known) and v.value is not None and v.value != "auto"}


def _runner(settings: dict[str, Setting]) -> Runner:
    one = Unknown(because="SGLang has one model runner")
    backend = settings["kernels.attention_backend"].final if "kernels.attention_backend" in settings else None
    known = isinstance(backend, Known) and backend.value is not None
    return Runner(
        name=one,
        because=one,
        attention_backend=backend if backend and known else Unknown(because="the endpoints do not state it"),
        candidates=Unknown(because="SGLang does not say which back ends it considered"),
    )


# --- memory -----------------------------------------------------------------------------------------------------


def _instances(said: Answers, settings: dict[str, Setting]) -> tuple[Instance, ...]:
    ranks = tuple(_rank(said, index, settings) for index in range(len(said.states)) if _usage(said, index))
    if not ranks:
        return ()
    mode = said.info.get("disaggregation_mode")
    return (Instance(role=mode if mode in ("prefill", "decode") else "serve", processes=(), ranks=ranks),)  # type: ignore[arg-type]


def _usage(said: Answers, index: int) -> Tree:
    usage = said.states[index].get("memory_usage")
    return usage if isinstance(usage, dict) else {}


def _rank(said: Answers, index: int, settings: dict[str, Setting]) -> Rank:
    """The first rank of one data-parallel replica: only it answers."""
    usage, where = _usage(said, index), f"{said.info_path} internal_states[{index}].memory_usage"
    device = said.info.get("device")
    pool = _gib(usage.get("kvcache"), f"{where}.kvcache")
    weights = None if device == "cpu" else _gib(usage.get("weight"), f"{where}.weight")
    terms = [
        _term("weights", "use", weights, "what loading the model took"),
        _term("KV cache", "remainder", pool, "keys and values of all layers"),
        *_graph_terms(usage, where),
        _term("left free", "remainder", _gib(usage.get("startup_available"), f"{where}.startup_available"), "at start"),
    ]
    return Rank(
        dp=index,
        device=device if isinstance(device, str) else "device",
        ledger=tuple(t for t in terms if t),
        pools=(_pool(said, usage, where, pool, settings),),
        graphs=_graphs(usage, where, settings),
    )


def _term(name: str, kind: Any, value: Known | None, meaning: str) -> Term | None:
    return Term(name=name, kind=kind, bytes=value, meaning=meaning) if value else None


def _graph_sizes(usage: Tree, where: str) -> dict[str, Known]:
    """By phase, where the version tells them apart."""
    name = "graph" if "graph" in usage else "cuda_graph"
    said = usage.get(name)
    if isinstance(said, dict):
        each = {phase: _gib(value, f"{where}.{name}.{phase}") for phase, value in said.items()}
        return {phase: value for phase, value in each.items() if value}
    whole = _gib(said, f"{where}.{name}")
    return {"decode": whole} if whole else {}


_PHASES = {"decode": "graphs", "target_verify": "graphs", "prefill": "prefill graphs"}


def _graph_terms(usage: Tree, where: str) -> list[Term | None]:
    terms: list[Term | None] = []
    for phase, value in _graph_sizes(usage, where).items():
        name = _PHASES.get(phase, f"{phase.replace('_', ' ')} graphs")
        if value.value:
            terms.append(_term(name, "use", value, f"what capturing took ({phase})"))
    return terms


def _graphs(usage: Tree, where: str, settings: dict[str, Setting]) -> Graphs:
    nothing = Unknown(because="the endpoints do not state it")
    sizes = _graph_sizes(usage, where)
    return Graphs(
        mode=settings["graphs.mode"].final if "graphs.mode" in settings else nothing,
        sizes=settings["graphs.capture_sizes"].final if "graphs.capture_sizes" in settings else nothing,
        prefill_sizes=nothing,
        captured=nothing,
        bytes=sizes.get("decode", nothing),
        seconds=nothing,
    )


def _pool(said: Answers, usage: Tree, where: str, size: Known | None, settings: dict[str, Setting]) -> Pool:
    nothing = Unknown(because="the endpoints do not state it")
    tokens = counted(usage.get("token_capacity"), f"{where}.token_capacity") or counted(
        said.info.get("max_total_num_tokens"), f"{said.info_path} max_total_num_tokens"
    )
    page = settings["kv.block_size"].final if "kv.block_size" in settings else nothing
    context: Value = settings["model.max_model_len"].final if "model.max_model_len" in settings else nothing
    context = context if isinstance(context, Known) and context.value is not None else nothing
    return Pool(
        name="KV cache",
        bytes=size or nothing,
        blocks=nothing,
        block_tokens=page,
        tokens=tokens or nothing,
        max_concurrency=_concurrency(tokens, context),
        concurrency_at_tokens=context,
    )


def _concurrency(tokens: Known | None, context: Value) -> Value:
    longest = context.value if isinstance(context, Known) else None
    if tokens is None or not isinstance(tokens.value, int | float) or not isinstance(longest, int | float):
        return Unknown(because="SGLang does not state it")
    if longest <= 0:
        return Unknown(because="the context length is none")
    where = Evidence(source="rule", where="token capacity / max_model_len")
    return Known(value=round(tokens.value / longest, 2), basis="engine rule", evidence=where)


# --- times and counters -----------------------------------------------------------------------------------------


def _boot(said: Answers) -> tuple[Phase, ...]:
    times = said.info.get("startup_time")
    if not isinstance(times, dict):
        return ()
    where = f"{said.info_path} startup_time"
    names = {"load_weight": "load weights", "kv_cache_allocation": "size and allocate the KV cache"}
    names |= {"scheduler_e2e": "start of the scheduler", "tokenizer_e2e": "start of the tokenizer"}
    found = ((name, counted(times.get(key), f"{where}.{key}")) for key, name in names.items())
    return tuple(Phase(name=name, seconds=value, meaning="as SGLang times it") for name, value in found if value)


def _run_summary(answers: Mapping[str, str], said: Answers) -> dict[str, Value]:
    """Counters and gauges, each with the labels that tell ranks apart; histograms by their sum and count."""
    found: dict[str, Value] = {}
    for index, state in enumerate(said.states):
        for key in ("last_gen_throughput", "avg_spec_accept_length"):
            where = f"{said.info_path} internal_states[{index}].{key}"
            if value := counted(state.get(key), where):
                found[f"{key}[{index}]"] = value.model_copy(update={"basis": "measured"})
    for sample in samples(answers.get("metrics", "")):
        if len(found) >= MOST_SAMPLES:
            break
        if not sample.name.startswith("sglang:") or "le" in sample.labels:
            continue
        name = labelled(sample, _SAME_LABELS)
        if value := counted(sample.value, f"/metrics {name}"):
            found[name] = value.model_copy(update={"basis": "measured"})
    return found


_SAME_LABELS = {"model_name", "engine_type", "moe_ep_rank"}
