"""What a running vLLM server answers, by version; and answers that nobody should send."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engdiff.engines.vllm import http
from engdiff.schema.capture import Capture
from engdiff.schema.values import Known, Unknown, number, plain
from engdiff.sources.base import read_capture

MODELS = json.dumps(
    {
        "object": "list",
        "data": [
            {"id": "tiny", "object": "model", "owned_by": "vllm", "root": "/models/tiny", "max_model_len": 2048},
            {"id": "lora", "object": "model", "owned_by": "vllm", "root": "/models/lora", "parent": "tiny"},
        ],
    }
)

METRICS = """\
# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="tiny"} 3.0
vllm:num_requests_running{engine="1",model_name="tiny"} 2.0
vllm:num_requests_waiting{engine="0",model_name="tiny"} 1.0
vllm:kv_cache_usage_perc{engine="0",model_name="tiny"} 0.25
vllm:kv_cache_usage_perc{engine="1",model_name="tiny"} 0.75
vllm:num_preemptions_total{engine="0",model_name="tiny"} 7.0
vllm:prefix_cache_queries_total{engine="0",model_name="tiny"} 1000.0
vllm:prefix_cache_hits_total{engine="0",model_name="tiny"} 400.0
vllm:prompt_tokens_total{engine="0",model_name="tiny"} NaN
vllm:cache_config_info{block_size="16",cache_dtype="auto",enable_prefix_caching="True",engine="0",\
gpu_memory_utilization="0.9",kv_cache_memory_bytes="None",num_gpu_blocks="1000",num_gpu_blocks_override="None",\
prefix_caching_hash_algo="sha256"} 1.0
vllm:cache_config_info{block_size="16",cache_dtype="auto",enable_prefix_caching="True",engine="1",\
gpu_memory_utilization="0.9",kv_cache_memory_bytes="None",num_gpu_blocks="990",num_gpu_blocks_override="None",\
prefix_caching_hash_algo="sha256"} 1.0
"""

CONFIG = {
    "model_config": {"model": "/models/tiny", "dtype": "torch.bfloat16", "max_model_len": 2048, "seed": 0},
    "cache_config": {"block_size": 16, "cache_dtype": "auto", "gpu_memory_utilization": 0.9},
    "scheduler_config": {"max_num_seqs": 128, "policy": "fcfs", "async_scheduling": True},
    "parallel_config": {"tensor_parallel_size": 2, "data_parallel_size": 1},
    "compilation_config": {"mode": 3, "cudagraph_mode": [2, 1], "cudagraph_capture_sizes": [1, 2, 4]},
    "device_config": {"device_type": "cuda"},
}


def info(config: object) -> str:
    variables = {"VLLM_USE_V2_MODEL_RUNNER": None, "VLLM_API_KEY": "sk-secret", "HF_TOKEN": "hf_secret"}
    return json.dumps({"vllm_config": config, "vllm_env": variables, "system_env": {"os": "Linux"}})


def read(**answers: str) -> Capture:
    return http.capture(answers, read_capture("vllm", "attach", "not over HTTP"))


def test_recognised_by_the_owner_of_its_models() -> None:
    assert http.recognises({"/v1/models": MODELS})
    assert not http.recognises({"/v1/models": MODELS.replace("vllm", "sglang")})
    for foreign in ("", "[]", "{", '{"data": 1}', '{"data": ["vllm"]}', '{"data": [{"owned_by": ["vllm"]}]}'):
        assert not http.recognises({"/v1/models": foreign})
    assert not http.recognises({})


def test_a_server_without_the_dev_mode() -> None:
    found = read(version='{"version": "0.32.0"}', models=MODELS, metrics=METRICS)
    assert plain(found.identity.version) == "0.32.0"
    assert found.launch.model == "/models/tiny"
    final = {key: plain(setting.final) for key, setting in found.settings.items()}
    assert final["kv.block_size"] == 16
    assert final["kv.gpu_memory_utilization"] == 0.9
    assert final["kv.prefix_caching"] is True
    assert "kv.configured_bytes" not in final  # None there may be what the engine core has not told the front end
    assert final["kv.prefix_hash"] == "sha256"
    assert final["model.max_model_len"] == 2048
    assert "scheduler.max_num_seqs" not in final
    assert all(s.origin is None and s.configured is None for s in found.settings.values())
    first, second = found.instances[0].ranks
    assert (first.dp, second.dp) == (0, 1)
    assert [number(r.pools[0].blocks) for r in (first, second)] == [1000, 990]
    assert number(first.pools[0].block_tokens) == 16
    assert isinstance(first.pools[0].tokens, Unknown)
    assert {name: plain(value) for name, value in found.run_summary.items()} == {
        "requests.running": 5,
        "requests.waiting": 1,
        "KV usage.fraction": 0.75,
        "preemptions.total": 7,
        "prefix cache.queried_tokens": 1000,
        "prefix cache.hit_tokens": 400,
    }


def test_tokens_of_the_pool_from_024_on() -> None:
    labels = 'num_gpu_blocks="10",block_size="16",kv_cache_size_tokens="160",kv_cache_max_concurrency="2.5"'
    found = read(metrics=f"vllm:cache_config_info{{{labels}}} 1.0\n")
    (pool,) = found.instances[0].ranks[0].pools
    assert (number(pool.tokens), number(pool.max_concurrency)) == (160, 2.5)
    assert isinstance(pool.tokens, Known)
    assert pool.tokens.evidence is not None
    assert pool.tokens.evidence.where == "/metrics vllm:cache_config_info kv_cache_size_tokens"


def test_old_names_of_counters() -> None:
    found = read(
        metrics='vllm:gpu_cache_usage_perc{model_name="m"} 0.5\nvllm:gpu_prefix_cache_hits_total{model_name="m"} 3\n'
        'vllm:num_requests_swapped{model_name="m"} 2\n'
    )
    assert {name: plain(value) for name, value in found.run_summary.items()} == {
        "requests.swapped": 2,
        "KV usage.fraction": 0.5,
        "prefix cache.hit_tokens": 3,
    }


def test_the_resolved_configuration_as_an_object() -> None:
    found = read(version='{"version": "0.32.0"}', server_info=info(CONFIG))
    final = {key: plain(setting.final) for key, setting in found.settings.items()}
    assert final["model.dtype"] == "bfloat16"
    assert final["scheduler.async_scheduling"] is True
    assert final["graphs.mode"] == "FULL_AND_PIECEWISE"
    assert final["compile.mode"] == "VLLM_COMPILE"
    assert final["parallel.tp"] == 2
    assert [d.name for d in found.identity.devices] == ["cuda"]
    resolved = found.settings["scheduler.max_num_seqs"].resolved
    assert isinstance(resolved, Known)
    assert resolved.evidence is not None
    assert resolved.evidence.where == "/server_info vllm_config.scheduler_config.max_num_seqs"
    assert "secret" not in found.model_dump_json()
    assert found.native["config"] == CONFIG


def test_the_resolved_configuration_as_a_text() -> None:
    text = "model='/models/tiny', dtype=torch.float16, max_seq_len=4096, tensor_parallel_size=4, kv_cache_dtype=fp8"
    found = read(version='{"version": "0.10.0"}', server_info=info(text))
    final = {key: plain(setting.final) for key, setting in found.settings.items()}
    assert (final["model.dtype"], final["model.max_model_len"], final["kv.dtype"]) == ("float16", 4096, "fp8")
    assert final["parallel.tp"] == 4
    assert found.launch.model == "/models/tiny"


HOSTILE = (
    "", "null", "[]", "1", '"x"', "{", "{}", '{"version": {}}', '{"version": ["0.32.0"]}', '{"data": {}}',
    '{"data": [null, 1, {"root": 1, "max_model_len": "x"}, {"max_model_len": true}]}',
    '{"vllm_config": 1}', '{"vllm_config": {"cache_config": 1, "model_config": {"dtype": {"a": 1}}}}',
    '{"vllm_config": {"compilation_config": {"cudagraph_mode": {"x": 1}}, "device_config": []}, "vllm_env": []}',
    '{"vllm_config": "((((["}', "[" * 5000, '{"a":' * 5000, "vllm:cache_config_info{",
    'vllm:cache_config_info{num_gpu_blocks="99999999999999999999999",engine="x"} 1',
    'vllm:cache_config_info{num_gpu_blocks="True",block_size="1e999"} 1', "vllm:num_requests_running NaN",
    "vllm:num_requests_running 1e300\nvllm:num_requests_running -Inf",
)  # fmt: skip


@pytest.mark.parametrize("body", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_answers(body: str) -> None:
    http.recognises({"/v1/models": body})
    found = read(**dict.fromkeys(http.ENDPOINTS, body))
    Capture.model_validate(found.model_dump(mode="json"))


@given(st.dictionaries(st.sampled_from(sorted(http.ENDPOINTS)), st.sampled_from(HOSTILE) | st.text(max_size=60)))
def test_any_answer_fuzz(answers: dict[str, str]) -> None:
    read(**answers)


def test_only_paths_that_change_nothing() -> None:
    assert set(http.IDENTIFY) == {"/v1/models"}
    assert not http.DRAINING
    assert all(path.startswith("/") for path in http.ENDPOINTS.values())
