"""What the endpoints of a running server say, by version, and bodies that say nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest

from engdiff.engines.sglang import http
from engdiff.schema.capture import Capture
from engdiff.schema.values import Known, plain
from engdiff.sources.base import read_capture
from engdiff.units import GIB
from tests.engines.sglang.facts import final, pool, rank

MODELS = json.dumps({"data": [{"id": "m", "owned_by": "sglang", "root": "org/m", "max_model_len": 4096, "created": 1}]})

ARGUMENTS: dict[str, Any] = {
    "model_path": "org/m",
    "tp_size": 2,
    "mem_fraction_static": 0.83,
    "disable_radix_cache": False,
    "disable_overlap_schedule": True,
    "chunked_prefill_size": 8192,
    "max_running_requests": None,
    "attention_backend": None,
    "page_size": 64,
    "device": "cuda",
    "api_key": "sk-secret-secret-secret",
}

NEW = {
    **ARGUMENTS,
    "version": "0.5.23",
    "max_total_num_tokens": 40960,
    "startup_time": {"load_weight": 12.5, "scheduler_e2e": 30.0},
    "internal_states": [
        {
            **ARGUMENTS,
            "attention_backend": "fa3",
            "effective_max_running_requests_per_dp": 48,
            "last_gen_throughput": 99.5,
            "decode_cuda_graph_bs": [1, 2, 4],
            "memory_usage": {
                "weight": 7.5,
                "kvcache": 20.25,
                "token_capacity": 40960,
                "graph": {"decode": 1.25, "prefill": 0.5, "draft_decode": 0.0},
                "startup_available": 9.75,
            },
        }
    ],
}

OLD = {
    **ARGUMENTS,
    "version": "0.4.6",
    "max_total_num_tokens": 40960,
    "last_gen_throughput": 12.5,
    "memory_usage": {"weight": 7.5, "kvcache": 20.25, "cuda_graph": 1.25},
}

METRICS = """# HELP sglang:num_running_reqs The number of running requests
sglang:num_running_reqs{engine_type="unified",model_name="m",pp_rank="0",tp_rank="0"} 3.0
sglang:num_retracted_requests_total{model_name="m",tp_rank="0"} 2.0
sglang:time_to_first_token_seconds_bucket{le="0.1",model_name="m"} 1.0
process_cpu_seconds_total 5.0
sglang:cache_hit_rate{model_name="m"} NaN
"""


def of(**bodies: str) -> Capture:
    """The capture of these answers."""
    return http.capture(bodies, read_capture("sglang", "attach", "the server does not state it"))


def test_recognises() -> None:
    assert http.recognises({"/v1/models": MODELS})
    assert http.recognises({"/get_model_info": '{"model_path": "m", "tokenizer_path": "m", "is_generation": true}'})
    assert not http.recognises({"/v1/models": '{"data": [{"id": "m", "owned_by": "vllm"}]}'})
    assert not http.recognises({"/v1/models": "<html>", "/get_model_info": "[]"})


def test_nothing_that_changes_the_server_is_read() -> None:
    paths = {*http.IDENTIFY, *http.ENDPOINTS.values(), *http.DRAINING.values()}
    assert not any(word in path for path in paths for word in ("health", "flush", "abort", "generate", "set_"))


def test_2026() -> None:
    capture = of(server_info=json.dumps(NEW), models=MODELS, metrics=METRICS)
    assert plain(capture.identity.version) == "0.5.23"
    assert capture.launch.model == "org/m"
    assert final(capture, "parallel.tp") == 2
    assert final(capture, "kernels.attention_backend") == "fa3"
    assert final(capture, "scheduler.max_num_seqs") == 48
    assert final(capture, "scheduler.async_scheduling") is False
    assert final(capture, "kv.prefix_caching") is True
    assert final(capture, "model.max_model_len") == 4096
    assert final(capture, "graphs.capture_sizes") == [1, 2, 4]
    ledger = {t.name: plain(t.bytes) for t in rank(capture).ledger}
    assert ledger == {
        "weights": 7.5 * GIB,
        "KV cache": 20.25 * GIB,
        "graphs": 1.25 * GIB,
        "prefill graphs": 0.5 * GIB,
        "left free": 9.75 * GIB,
    }
    assert plain(pool(capture).tokens) == 40960
    assert plain(pool(capture).max_concurrency) == 10.0
    assert {p.name: plain(p.seconds) for p in capture.boot} == {"load weights": 12.5, "start of the scheduler": 30.0}
    assert plain(capture.run_summary["last_gen_throughput[0]"]) == 99.5
    assert plain(capture.run_summary["sglang:num_running_reqs{pp_rank=0,tp_rank=0}"]) == 3.0
    assert not any("bucket" in name or "cache_hit_rate" in name for name in capture.run_summary)
    pool_bytes = capture.settings["kv.pool_bytes"].effective
    assert isinstance(pool_bytes, Known)
    assert pool_bytes.evidence
    assert pool_bytes.evidence.where == "/server_info internal_states[0].memory_usage.kvcache"
    assert "secret" not in capture.model_dump_json()


def test_2025_answers_in_one_level() -> None:
    capture = of(get_server_info=json.dumps(OLD))
    assert plain(capture.identity.version) == "0.4.6"
    assert {t.name: plain(t.bytes) for t in rank(capture).ledger}["graphs"] == 1.25 * GIB
    assert plain(pool(capture).tokens) == 40960
    assert final(capture, "kernels.attention_backend") is None
    evidence = capture.settings["parallel.tp"].resolved
    assert isinstance(evidence, Known)
    assert evidence.evidence
    assert evidence.evidence.where == "/get_server_info tp_size"


HOSTILE = [
    "",
    "[]",
    "null",
    "[" * 5000,
    '{"data": 3, "internal_states": 4, "version": [], "device": 7, "model_path": 1}',
    '{"internal_states": [1, null, {"memory_usage": [], "attention_backend": {"a": 1}}]}',
    '{"memory_usage": {"weight": 1e400, "kvcache": true, "graph": {"decode": "x"}}}',
    '{"memory_usage": {"weight": ' + "9" * 400 + '}, "cuda_graph_config": {"decode": 3}}',
    '{"disable_radix_cache": "maybe", "hicache_size": "x", "ep_size": null, "chunked_prefill_size": []}',
    '{"data": [{"max_model_len": "x", "id": null}]}',
    '{"data": [{"max_model_len": 0}], "max_total_num_tokens": 5, "memory_usage": {"a": 1}}',
]


@pytest.mark.parametrize("body", HOSTILE)
def test_hostile_bodies(body: str) -> None:
    capture = of(**dict.fromkeys(http.ENDPOINTS, body))
    assert Capture.model_validate(capture.model_dump(mode="json"))
    http.recognises(dict.fromkeys(http.IDENTIFY, body))
