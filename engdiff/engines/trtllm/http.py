"""What a running TensorRT-LLM server answers: endpoints that only read, and what their answers mean.

No endpoint states the resolved configuration (tensorrt_llm/serve/openai_server.py 0.17 to newest). ``/health`` says
nothing but a status; ``/health_generate`` runs a request; ``/kv_cache_events`` drains, and is a POST in every version
read: none of them is asked. ``/prometheus/metrics`` exists from 1.1 on, with ``return_perf_metrics``; the configuration
as labels came with 1.3 (tensorrt_llm/metrics/collector.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import JsonValue

from engdiff.engines.answers import answered, cards_in, counted, labelled, object_in, plain_value
from engdiff.engines.layers import settle
from engdiff.engines.trtllm import admission
from engdiff.engines.trtllm.normalize import at_default, who
from engdiff.jsontext import parse_json
from engdiff.metrics_text import Sample, samples
from engdiff.schema.capture import Capture, Graphs, Instance, Launch, Pool, Rank, Runner, Setting
from engdiff.schema.values import Evidence, Known, Unknown, Value, number

IDENTIFY: tuple[str, ...] = ("/v1/models",)

ENDPOINTS: Mapping[str, str] = {
    "version": "/version",
    "models": "/v1/models",
    "prometheus": "/prometheus/metrics",
}

DRAINING: Mapping[str, str] = {"metrics": "/metrics", "perf_metrics": "/perf_metrics"}
"""Statistics of iterations, and of requests that ended: a reading takes them out of their queue."""

PREFIX = "trtllm_"
MOST_SAMPLES = 500
NOT_STATED = Unknown(because="the endpoints do not state it")

LABELS: Mapping[str, tuple[str, str]] = {
    "model.path": ("model_config_info", "model"),
    "model.dtype": ("model_config_info", "dtype"),
    "model.quantization": ("model_config_info", "quantization"),
    "model.max_model_len": ("model_config_info", "max_model_len"),
    "parallel.tp": ("parallel_config_info", "tensor_parallel_size"),
    "parallel.pp": ("parallel_config_info", "pipeline_parallel_size"),
    "speculative.method": ("speculative_config_info", "spec_method"),
    "speculative.model": ("speculative_config_info", "spec_draft_model"),
    "speculative.num_tokens": ("speculative_config_info", "spec_num_tokens"),
    "kv.block_size": ("kv_cache_config_info", "page_size"),
    "kv.prefix_caching": ("kv_cache_config_info", "enable_block_reuse"),
    "kv.gpu_memory_utilization": ("kv_cache_config_info", "free_gpu_memory_fraction"),
    "kv.dtype": ("kv_cache_config_info", "cache_dtype"),
}
"""Canonical key to a gauge and one of its labels (1.3, newest)."""

GAUGES: Mapping[str, str] = {
    "scheduler.max_num_seqs": "max_batch_size_static",
    "scheduler.max_num_batched_tokens": "max_num_tokens_runtime",
    "kv.block_size": "kv_cache_tokens_per_block",
}
ITERATION: Mapping[str, tuple[str, ...]] = {
    "scheduler.max_num_seqs": ("maxBatchSizeStatic",),
    "scheduler.max_num_batched_tokens": ("maxNumTokensStatic",),
    "kv.block_size": ("kvCacheStats", "tokensPerBlock"),
}
"""Canonical key to the field of an iteration's statistics (/metrics 0.18 to newest)."""

_NOTHING = {"", "none", "null", "unknown", "n/a"}
_WHOLE = re.compile(r"[+-]?\d{1,18}")
_REAL = re.compile(r"[+-]?\d{1,18}\.\d{1,18}")

Tree = Mapping[str, JsonValue]


def recognises(answers: Mapping[str, str]) -> bool:
    """Whether these answers are of TensorRT-LLM: its name as owner of the models."""
    return any(card.get("owned_by") == "tensorrt_llm" for card in cards_in(answers.get("/v1/models")))


def capture(answers: Mapping[str, str], base: Capture) -> Capture:
    """``base`` with everything that the endpoints say."""
    said = _said(answers)
    version = object_in(answers.get("version")).get("version")
    stated = plain_value(version, "/version version") if isinstance(version, str) else None
    settings = _settings(said, version if isinstance(version, str) else None)
    return base.model_copy(
        update={
            "identity": base.identity.model_copy(update={"version": stated}) if stated else base.identity,
            "launch": _launch(base, said),
            "native": _native(said),
            "settings": settings,
            "instances": _instances(said, settings),
            "runner": Runner(name=NOT_STATED, because=NOT_STATED, attention_backend=NOT_STATED, candidates=NOT_STATED),
            "admission": admission.rule(None),
            "run_summary": {**base.run_summary, **_run_summary(said)},
        }
    )


@dataclass(frozen=True)
class Answers:
    """What was answered: the model's card, the samples, and the last iteration's statistics."""

    card: Tree
    samples: tuple[Sample, ...] = ()
    iteration: Tree = field(default_factory=dict)
    iterations: int = 0

    def label(self, gauge: str, name: str) -> str | None:
        """A label of a gauge that holds the configuration."""
        for sample in self.samples:
            if sample.name == PREFIX + gauge and name in sample.labels:
                return sample.labels[name]
        return None

    def gauge(self, name: str) -> float | None:
        """The first value of a gauge."""
        return next((s.value for s in self.samples if s.name == PREFIX + name), None)


def _said(answers: Mapping[str, str]) -> Answers:
    cards = cards_in(answers.get("models"))
    found = tuple(_first(s for s in samples(answers.get("prometheus", "")) if s.name.startswith(PREFIX)))
    body = parse_json(answers["metrics"]) if "metrics" in answers else None
    iterations = [i for i in body if isinstance(i, dict)] if isinstance(body, list) else []
    return Answers(cards[0] if cards else {}, found, iterations[-1] if iterations else {}, len(iterations))


def _first(found: Iterable[Sample]) -> Iterable[Sample]:
    """Without the buckets of histograms, and no more than a server has any use for."""
    count = 0
    for sample in found:
        if "le" in sample.labels:
            continue
        count += 1
        if count > MOST_SAMPLES:
            return
        yield sample


def _count(value: object, where: str) -> Known | None:
    """A number; a gauge's is a float though it counts."""
    return counted(int(value) if isinstance(value, float) and value.is_integer() else value, where)


# --- launch and native ------------------------------------------------------------------------------------------


def _launch(base: Capture, said: Answers) -> Launch:
    """The model as the server names it."""
    stated = (said.label("model_config_info", "model"), said.card.get("id"))
    model = next((name for name in stated if isinstance(name, str) and name), None)
    return base.launch if model is None else base.launch.model_copy(update={"model": model, "model_given": model})


def _native(said: Answers) -> dict[str, JsonValue]:
    info: dict[str, JsonValue] = {
        s.name.removeprefix(PREFIX): {**s.labels} for s in said.samples if s.name.endswith("_config_info")
    }
    parts: dict[str, JsonValue] = {
        "config_info": info,
        "model_card": {k: v for k, v in said.card.items() if k != "created"},
        "iteration": {**said.iteration},
    }
    return {name: part for name, part in parts.items() if part}


# --- settings ---------------------------------------------------------------------------------------------------


def _settings(said: Answers, version: str | None) -> dict[str, Setting]:
    resolved = {key: value for key, place in LABELS.items() if (value := _labelled(said, *place))}
    effective = {**_gauges(said), **_iteration(said)}
    return {
        key: _settled(key, resolved.get(key), effective.get(key), version)
        for key in sorted(resolved.keys() | effective.keys())
    }


def _settled(key: str, resolved: Known | None, effective: Known | None, version: str | None) -> Setting:
    wrote, declared = who(key, resolved, version) if resolved else (None, at_default(key, effective, version))
    return settle(configured=wrote, declared=declared, resolved=resolved or NOT_STATED, effective=effective)


def _labelled(said: Answers, gauge: str, name: str) -> Known | None:
    printed = said.label(gauge, name)
    if printed is None or printed.strip().lower() in _NOTHING:
        return None
    return Known(value=_plain(printed.strip()), evidence=answered(f"/prometheus/metrics {PREFIX}{gauge} {name}"))


def _plain(text: str) -> JsonValue:
    """A label's text as what it stands for."""
    if text in ("True", "true", "False", "false"):
        return text.lower() == "true"
    if _WHOLE.fullmatch(text):
        return int(text)
    return float(text) if _REAL.fullmatch(text) else text


def _gauges(said: Answers) -> dict[str, Known]:
    found = {key: _count(said.gauge(name), f"/prometheus/metrics {PREFIX}{name}") for key, name in GAUGES.items()}
    return {key: value for key, value in found.items() if value is not None and number(value)}


def _iteration(said: Answers) -> dict[str, Known]:
    found = {key: _field(said, *path) for key, path in ITERATION.items()}
    return {key: value for key, value in found.items() if value is not None and number(value)}


def _field(said: Answers, *path: str) -> Known | None:
    """A number in the last iteration's statistics."""
    at: JsonValue | Tree = said.iteration
    for name in path:
        at = at.get(name) if isinstance(at, Mapping) else None
    return _count(at, f"/metrics [{said.iterations - 1}].{'.'.join(path)}")


# --- pool and counters ------------------------------------------------------------------------------------------


def _instances(said: Answers, settings: Mapping[str, Setting]) -> tuple[Instance, ...]:
    name = "kv_cache_max_blocks"
    blocks = _field(said, "kvCacheStats", "maxNumBlocks") or _count(
        said.gauge(name), f"/prometheus/metrics {PREFIX}{name}"
    )
    if blocks is None or not number(blocks):
        return ()
    block = _final(settings, "kv.block_size")
    context = _final(settings, "model.max_model_len")
    tokens = _product(blocks, block)
    pool = Pool(
        name="KV cache",
        bytes=NOT_STATED,
        blocks=blocks,
        block_tokens=block or NOT_STATED,
        tokens=tokens or NOT_STATED,
        max_concurrency=_ratio(tokens, context) or NOT_STATED,
        concurrency_at_tokens=context or NOT_STATED,
    )
    graphs = Graphs(**dict.fromkeys(Graphs.model_fields, NOT_STATED))
    return (Instance(processes=(), ranks=(Rank(device="GPU", ledger=(), pools=(pool,), graphs=graphs),)),)


def _final(settings: Mapping[str, Setting], key: str) -> Known | None:
    final = settings[key].final if key in settings else None
    return final if isinstance(final, Known) and number(final) else None


def _product(blocks: Known, block: Known | None) -> Known | None:
    count, size = number(blocks), number(block)
    if count is None or size is None:
        return None
    where = Evidence(source="rule", where="blocks x tokens of a block")
    return Known(value=int(count * size), basis="engine rule", evidence=where)


def _ratio(tokens: Known | None, context: Known | None) -> Known | None:
    count, longest = number(tokens), number(context)
    if count is None or not longest or longest < 0:
        return None
    where = Evidence(source="rule", where="tokens / tokens of the longest request")
    return Known(value=round(count / longest, 2), basis="engine rule", evidence=where)


_SAME = {"model_name", "engine_type"}
"""Labels that every sample of a server has alike."""


def _run_summary(said: Answers) -> dict[str, Value]:
    """Counters and gauges with the labels that tell them apart; numbers of the last iteration."""
    found: dict[str, Value] = {}
    for sample in said.samples:
        if sample.name.endswith(("_config_info", "_created")):
            continue
        name = labelled(sample, _SAME)
        if value := _count(sample.value, f"/prometheus/metrics {name}"):
            found[name] = value.model_copy(update={"basis": "measured"})
    for name, number_of in _numbers(said.iteration):
        if value := _count(number_of, f"/metrics [{said.iterations - 1}].{name}"):
            found[f"iteration.{name}"] = value.model_copy(update={"basis": "measured"})
    return found


def _numbers(tree: Tree, prefix: str = "") -> Iterable[tuple[str, Any]]:
    """Numbers two levels deep: kvCacheStats.usedNumBlocks."""
    for name, value in tree.items():
        if isinstance(value, dict) and not prefix:
            yield from _numbers(value, f"{name}.")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield f"{prefix}{name}", value
