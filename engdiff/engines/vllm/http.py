"""What a running vLLM server answers: endpoints that only read, and what their answers mean.

``/server_info`` is there only with VLLM_SERVER_DEV_MODE=1 (vllm/entrypoints/serve/dev/server_info, 0.12 to 0.32): as
a text until 0.11, as an object with ``config_format=json`` after that. The labels of ``vllm:cache_config_info`` are
every field of CacheConfig (vllm/config/cache.py ``metrics_info``) in every version; two more from 0.24 on say how many
tokens the pool holds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue

from engdiff.engines.answers import LARGEST, answered, cards_in, counted, object_in, plain_value
from engdiff.engines.layers import MISSING, lookup, settle
from engdiff.engines.vllm import log_settings
from engdiff.knowledge.versions import is_version
from engdiff.logs.reprs import parse
from engdiff.metrics_text import Sample, samples
from engdiff.schema.capture import Capture, Device, Graphs, Instance, Launch, Pool, Rank, Runner, Setting
from engdiff.schema.values import Basis, Known, Unknown, Value

IDENTIFY: tuple[str, ...] = ("/v1/models",)

ENDPOINTS: Mapping[str, str] = {
    "version": "/version",
    "models": "/v1/models",
    "metrics": "/metrics",
    "server_info": "/server_info?config_format=json",
    "health": "/health",
}

DRAINING: Mapping[str, str] = {}

COUNTERS: Mapping[str, tuple[str, ...]] = {
    "requests.running": ("vllm:num_requests_running",),
    "requests.waiting": ("vllm:num_requests_waiting",),
    "requests.swapped": ("vllm:num_requests_swapped",),
    "KV usage.fraction": ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"),
    "preemptions.total": ("vllm:num_preemptions_total", "vllm:num_preemptions"),
    "prefix cache.queried_tokens": ("vllm:prefix_cache_queries_total", "vllm:gpu_prefix_cache_queries_total"),
    "prefix cache.hit_tokens": ("vllm:prefix_cache_hits_total", "vllm:gpu_prefix_cache_hits_total"),
    "external prefix cache.queried_tokens": ("vllm:external_prefix_cache_queries_total",),
    "external prefix cache.hit_tokens": ("vllm:external_prefix_cache_hits_total",),
    "tokens.prompt": ("vllm:prompt_tokens_total",),
    "tokens.generated": ("vllm:generation_tokens_total",),
}
"""Name in the run summary to metrics, newest first: V0 and V1 to 0.9 called the usage of the cache that of the GPU."""

SECRETS = ("api_key", "token", "secret", "password", "credential")
"""Variables whose name holds one of these are left out of what is kept."""

NOT_OVER_HTTP = "the server does not state it over HTTP"
MOST_ENGINES = 4096

Tree = Mapping[str, JsonValue]


def recognises(answers: Mapping[str, str]) -> bool:
    """Whether these answers are of vLLM: its name as owner of the models."""
    return any(card.get("owned_by") == "vllm" for card in cards_in(answers.get("/v1/models")))


def capture(answers: Mapping[str, str], base: Capture) -> Capture:
    """``base`` with everything that the endpoints say."""
    said = _said(answers)
    settings = _settings(said)
    identity: dict[str, Any] = {}
    if said.version is not None:
        identity["version"] = said.version
    if device := _device(said):
        identity["devices"] = (device,)
    return base.model_copy(
        update={
            "identity": base.identity.model_copy(update=identity),
            "launch": _launch(said, base.launch),
            "native": {**base.native, **_native(said)},
            "settings": settings,
            "instances": _instances(said, settings),
            "runner": _runner(settings),
            "run_summary": {**base.run_summary, **_run_summary(said)},
        }
    )


@dataclass(frozen=True)
class Answers:
    """What was answered.

    ``config`` is the resolved configuration of ``/server_info``, as an object or read from its text; ``caches`` holds,
    for every engine, the labels of its cache configuration.
    """

    version: Known | None
    cards: tuple[Tree, ...]
    info: Tree
    config: Tree
    is_text: bool
    metrics: tuple[Sample, ...]
    caches: Mapping[int, Tree]


def _said(answers: Mapping[str, str]) -> Answers:
    info = object_in(answers.get("server_info"))
    config = info.get("vllm_config")
    text = isinstance(config, str)
    tree: Tree = parse(config).tree if isinstance(config, str) else config if isinstance(config, dict) else {}
    metrics = tuple(samples(answers.get("metrics") or ""))
    return Answers(
        version=plain_value(object_in(answers.get("version")).get("version"), "/version version"),
        cards=tuple(cards_in(answers.get("models"))),
        info=info,
        config=tree,
        is_text=text,
        metrics=metrics,
        caches=dict(_caches(metrics)),
    )


def _caches(metrics: tuple[Sample, ...]) -> Iterator[tuple[int, Tree]]:
    for sample in metrics:
        if sample.name == "vllm:cache_config_info":
            yield _engine(sample), {name: _plain(text) for name, text in sample.labels.items() if name != "engine"}


def _engine(sample: Sample) -> int:
    label = sample.labels.get("engine", "")
    return int(label) if re.fullmatch(r"\d{1,4}", label) else 0


def _plain(label: str) -> JsonValue:
    """A label's text as the Python value that it was printed from."""
    words: dict[str, JsonValue] = {"None": None, "True": True, "False": False}
    if label in words:
        return words[label]
    if re.fullmatch(r"-?\d{1,18}", label):
        return int(label)
    return float(label) if re.fullmatch(r"-?\d{1,15}\.\d{1,18}", label) else label


# --- identity, launch, native -----------------------------------------------------------------------------------


def _device(said: Answers) -> Device | None:
    kind = lookup(said.config, "device_config.device_type")
    kind = kind if isinstance(kind, str) else said.config.get("device_config")
    if not isinstance(kind, str):
        return None
    unknown = Unknown(because="the endpoints do not state the size of the devices")
    return Device(kind="cpu" if kind == "cpu" else "gpu", name=kind, memory_bytes=unknown)


def _launch(said: Answers, launch: Launch) -> Launch:
    """The path that the first model was loaded from, else its name."""
    first = next(iter(said.cards), {})
    stated = (lookup(said.config, "model_config.model"), said.config.get("model"), first.get("root"), first.get("id"))
    model = next((name for name in stated if isinstance(name, str)), None)
    return launch if model is None else launch.model_copy(update={"model": model, "model_given": model})


def _native(said: Answers) -> dict[str, JsonValue]:
    variables = said.info.get("vllm_env")
    kept = variables if isinstance(variables, dict) else {}
    parts: dict[str, JsonValue] = {
        "config": dict(said.config),
        "variables": {k: v for k, v in kept.items() if not any(word in k.lower() for word in SECRETS)},
        "system": said.info.get("system_env"),
        "models": [dict(card) for card in said.cards],
        "cache_config": {str(engine): dict(labels) for engine, labels in said.caches.items()},
    }
    return {name: part for name, part in parts.items() if part}


# --- settings ---------------------------------------------------------------------------------------------------


def _settings(said: Answers) -> dict[str, Setting]:
    """Every canonical setting that the configuration, the labels of the cache or the list of models hold."""
    found: dict[str, Setting] = {}
    version = str(said.version.value) if said.version and is_version(str(said.version.value)) else log_settings.NEWEST
    for key, names in log_settings.KNOWLEDGE.names(version).items():
        value = _value(key, names.native, said)
        if value is not None:
            found[key] = settle(
                configured=None,
                declared=MISSING,
                resolved=value,
                effective=Unknown(because=NOT_OVER_HTTP),
                native=names.native,
            )
    return found


def _value(key: str, native: str | None, said: Answers) -> Known | None:
    """From the configuration, else from the labels of the cache, else from the list of models."""
    if said.is_text:
        for place in log_settings.config_places().get(key, ()):
            value = lookup(said.config, place)
            if value is not MISSING:
                return _resolved(key, value, f"/server_info vllm_config, {place}")
    elif native and (value := lookup(said.config, native)) is not MISSING:
        return _resolved(key, value, f"/server_info vllm_config.{native}")
    if found := _of_the_cache(key, native, said):
        return found
    if key == "model.max_model_len":
        return next((k for c in said.cards if (k := counted(c.get("max_model_len"), _LENGTH))), None)
    return None


_LENGTH = "/v1/models data[].max_model_len"


def _of_the_cache(key: str, native: str | None, said: Answers) -> Known | None:
    labels = next(iter(said.caches.values()), {})
    name = (native or "").removeprefix("cache_config.")
    if key == "kv.configured_bytes" and labels.get("cpu_kvcache_space_bytes") is not None:
        name = "cpu_kvcache_space_bytes"  # of CPU builds to 0.19.1, as in normalize.py
    if not (native or "").startswith("cache_config.") or labels.get(name) is None:
        return None  # the front end prints None for what only the engine core resolves
    return _resolved(key, labels[name], f"/metrics vllm:cache_config_info {name}")


def _resolved(key: str, value: object, where: str) -> Known | None:
    """In the registry's words; a part that has fields of its own is no value."""
    if isinstance(value, dict):
        return None
    worded = log_settings.worded(key, value)
    if isinstance(worded, str):
        worded = worded.removeprefix("torch.")
        worded = worded.rsplit(".", 1)[-1] if re.fullmatch(r"vllm(\.\w+)+", worded) else worded
    return Known(value=worded, evidence=answered(where))  # type: ignore[arg-type]


# --- ranks ------------------------------------------------------------------------------------------------------


def _instances(said: Answers, settings: Mapping[str, Setting]) -> tuple[Instance, ...]:
    """One rank for each engine of a data-parallel set: the workers of one share its numbers of blocks."""
    if not said.caches:
        return ()
    device = _device(said)
    ranks = tuple(
        Rank(
            dp=engine,
            device=device.name if device else "not stated",
            ledger=(),
            pools=_pool(labels, settings),
            graphs=_graphs(settings),
        )
        for engine, labels in sorted(said.caches.items())[:MOST_ENGINES]
    )
    return (Instance(processes=(), ranks=ranks),)


def _pool(labels: Tree, settings: Mapping[str, Setting]) -> tuple[Pool, ...]:
    def label(name: str, basis: Basis = "measured") -> Known | None:
        return counted(labels.get(name), f"/metrics vllm:cache_config_info {name}", basis)

    blocks = label("num_gpu_blocks")
    if blocks is None:
        return ()
    length = settings.get("model.max_model_len")
    unstated = Unknown(because="servers before 0.24 state the blocks only, and not in how many groups of layers")
    return (
        Pool(
            name="KV cache",
            bytes=Unknown(because=NOT_OVER_HTTP),
            blocks=blocks,
            block_tokens=label("block_size", "exact") or Unknown(because=NOT_OVER_HTTP),
            tokens=label("kv_cache_size_tokens") or unstated,
            max_concurrency=label("kv_cache_max_concurrency") or unstated,
            concurrency_at_tokens=length.final if length else Unknown(because=NOT_OVER_HTTP),
        ),
    )


def _graphs(settings: Mapping[str, Setting]) -> Graphs:
    unknown = Unknown(because=NOT_OVER_HTTP)

    def final(key: str) -> Value:
        return settings[key].final if key in settings else unknown

    return Graphs(
        mode=final("graphs.mode"),
        sizes=final("graphs.capture_sizes"),
        prefill_sizes=Unknown(because="vLLM captures decode and mixed batches by one list of sizes"),
        captured=unknown,
        bytes=unknown,
        seconds=unknown,
    )


def _runner(settings: Mapping[str, Setting]) -> Runner:
    """Neither is over HTTP which runner was chosen, nor why; only the variable that demands one."""
    unknown = Unknown(because=NOT_OVER_HTTP)
    backend = settings.get("kernels.attention_backend")
    chosen: Value = unknown
    if backend and isinstance(backend.final, Known) and backend.final.value is not None:
        chosen = backend.final
    return Runner(name=unknown, because=unknown, attention_backend=chosen, candidates=unknown)


# --- counters ---------------------------------------------------------------------------------------------------


def _run_summary(said: Answers) -> dict[str, Value]:
    """Counters at the moment of reading; of several engines the sum, and of a share of the cache the highest."""
    found: dict[str, Value] = {}
    for name, metrics in COUNTERS.items():
        for metric in metrics:
            values = [s.value for s in said.metrics if s.name == metric and abs(s.value) < LARGEST]
            if values:
                value = max(values) if name == "KV usage.fraction" else sum(values)
                plain: float | int = int(value) if float(value).is_integer() else value
                found[name] = Known(value=plain, basis="measured", evidence=answered(f"/metrics {metric}"))
                break
    return found
