"""What the endpoints of a running server say, and bodies that say nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest

from engdiff.engines.trtllm import http
from engdiff.schema.capture import Capture
from engdiff.schema.values import Unknown, plain
from engdiff.sources.base import read_capture
from tests.engines.trtllm.facts import final, pool

MODELS = json.dumps({"object": "list", "data": [{"id": "org/name", "owned_by": "tensorrt_llm", "created": 1}]})

PROMETHEUS = """
# TYPE trtllm_kv_cache_max_blocks gauge
trtllm_kv_cache_max_blocks{model_name="m",engine_type="trtllm"} 1000.0
trtllm_kv_cache_tokens_per_block{model_name="m",engine_type="trtllm"} 32.0
trtllm_max_batch_size_static{model_name="m",engine_type="trtllm"} 64.0
trtllm_request_success_total{model_name="m",engine_type="trtllm",finished_reason="stop"} 150.0
trtllm_time_to_first_token_seconds_bucket{le="0.01",model_name="m"} 0.0
trtllm_model_config_info{model="org/name",dtype="bfloat16",quantization="None",max_model_len="8192"} 1.0
trtllm_parallel_config_info{tensor_parallel_size="4",pipeline_parallel_size="1"} 1.0
trtllm_kv_cache_config_info{page_size="32",enable_block_reuse="True",free_gpu_memory_fraction="0.9"} 1
process_cpu_seconds_total 5.0
"""

ITERATIONS = json.dumps(
    [
        {"iter": 1, "kvCacheStats": {"maxNumBlocks": 10}},
        {
            "iter": 2,
            "numActiveRequests": 3,
            "maxBatchSizeStatic": 128,
            "maxNumTokensStatic": 8192,
            "kvCacheStats": {"maxNumBlocks": 2000, "usedNumBlocks": 7, "tokensPerBlock": 64},
        },
    ]
)


def read(**answers: str) -> Capture:
    return http.capture(answers, read_capture("trtllm", "attach", "the server does not state it"))


def test_it_is_recognised_by_the_owner_of_its_models() -> None:
    assert http.recognises({"/v1/models": MODELS})
    assert not http.recognises({"/v1/models": MODELS.replace("tensorrt_llm", "vllm")})
    assert not http.recognises({})


def test_nothing_that_drains_is_read_without_a_wish() -> None:
    paths = {*http.IDENTIFY, *http.ENDPOINTS.values()}
    assert not paths & {"/metrics", "/perf_metrics", "/kv_cache_events", "/health_generate"}
    assert "/metrics" in http.DRAINING.values()


def test_version_and_model() -> None:
    capture = read(version='{"version": "1.1.0rc3"}', models=MODELS)
    assert plain(capture.identity.version) == "1.1.0rc3"
    assert capture.launch.model == "org/name"
    assert capture.instances == ()


def test_labels_and_gauges() -> None:
    capture = read(prometheus=PROMETHEUS, models=MODELS)
    assert final(capture, "parallel.tp") == 4
    assert final(capture, "model.dtype") == "bfloat16"
    assert "model.quantization" not in capture.settings
    assert final(capture, "kv.gpu_memory_utilization") == 0.9
    assert final(capture, "kv.prefix_caching") is True
    assert final(capture, "scheduler.max_num_seqs") == 64
    found = pool(capture)
    assert (plain(found.blocks), plain(found.tokens), plain(found.max_concurrency)) == (1000, 32000, 3.91)
    assert isinstance(found.bytes, Unknown)


def test_counters_without_buckets_and_without_others() -> None:
    summary = read(prometheus=PROMETHEUS).run_summary
    assert plain(summary["trtllm_request_success_total{finished_reason=stop}"]) == 150
    assert not any("bucket" in name or "process" in name or "info" in name for name in summary)


def test_the_last_iteration_counts() -> None:
    capture = read(metrics=ITERATIONS)
    assert plain(pool(capture).blocks) == 2000
    assert final(capture, "scheduler.max_num_batched_tokens") == 8192
    assert plain(capture.run_summary["iteration.kvCacheStats.usedNumBlocks"]) == 7
    value: Any = capture.settings["scheduler.max_num_seqs"].effective
    assert value.evidence.where == "/metrics [1].maxBatchSizeStatic"


HOSTILE = [
    "",
    "null",
    "[]",
    "{}",
    "[1, 2]",
    '{"data": 5}',
    '{"data": [5, null]}',
    '{"version": {"a": 1}}',
    '{"version": 5}',
    "<html>",
    "[" * 5000,
    '[{"kvCacheStats": {"maxNumBlocks": 1e400}}]',
    '[{"kvCacheStats": {"maxNumBlocks": true, "tokensPerBlock": "x"}}]',
    '[{"kvCacheStats": [1]}]',
    'trtllm_kv_cache_max_blocks NaN\ntrtllm_kv_cache_max_blocks{a="b" 5',
    "trtllm_kv_cache_max_blocks -5\ntrtllm_kv_cache_tokens_per_block 1e300",
    'trtllm_kv_cache_max_blocks 5\ntrtllm_kv_cache_tokens_per_block 32\ntrtllm_model_config_info{max_model_len="-1"} 1',
    "\x00\ud800",
]


@pytest.mark.parametrize("body", HOSTILE)
def test_bodies_that_say_nothing(body: str) -> None:
    names = [*http.ENDPOINTS, *http.DRAINING]
    capture = read(**dict.fromkeys(names, body))
    assert not capture.launch.model
    http.recognises({"/v1/models": body})
