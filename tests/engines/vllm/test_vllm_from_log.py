"""Whole starts of vLLM, V0 and V1: wrappers, ranks, data-parallel engines, restarts, and numbers that mislead."""

from __future__ import annotations

from pathlib import Path

import pytest

from engdiff import engines, errors
from engdiff.engines.vllm import from_log, log
from engdiff.schema.capture import Capture
from engdiff.schema.values import Known, Unknown, number, plain
from engdiff.sources.log import LogWishes, read_log
from engdiff.units import GIB, MIB

T = "01-01 00:00:01"

V0 = f"""\
INFO {T} [__init__.py:239] Automatically detected platform cuda.
INFO {T} [api_server.py:1043] vLLM API server version 0.8.5
INFO {T} [api_server.py:1044] args: Namespace(host=None, port=8000, model='org/tiny', dtype='auto', \
kv_cache_dtype='fp8', max_model_len=None, tensor_parallel_size=2, block_size=None, seed=0, max_num_seqs=64, \
gpu_memory_utilization=0.8912, enforce_eager=False, enable_chunked_prefill=False, api_key=None)
INFO {T} [llm_engine.py:240] Initializing a V0 LLM engine (v0.8.5) with config: model='org/tiny', \
speculative_config=None, dtype=torch.bfloat16, max_seq_len=8192, load_format=LoadFormat.AUTO, \
tensor_parallel_size=2, pipeline_parallel_size=1, disable_custom_all_reduce=False, quantization=None, \
enforce_eager=False, kv_cache_dtype=fp8,  device_config=cuda, decoding_config=DecodingConfig(\
guided_decoding_backend='xgrammar', reasoning_backend=None), seed=0, num_scheduler_steps=1, \
enable_prefix_caching=False, chunked_prefill_enabled=False, compilation_config={{"splitting_ops":[],\
"compile_sizes":[],"cudagraph_capture_sizes":[64,56,8,4,2,1],"max_capture_size":64}}, use_cached_outputs=False,\x20
INFO {T} [cuda.py:292] Using Flash Attention backend.
(VllmWorkerProcess pid=77) INFO {T} [cuda.py:292] Using Flash Attention backend.
INFO {T} [model_runner.py:1108] Starting to load model org/tiny...
INFO {T} [model_runner.py:1146] Model loading took 8.6253 GiB and 7.670299 seconds
(VllmWorkerProcess pid=77) INFO {T} [model_runner.py:1146] Model loading took 8.6253 GiB and 9.1 seconds
(VllmWorkerProcess pid=77) INFO {T} [worker.py:267] Memory profiling takes 5.35 seconds
(VllmWorkerProcess pid=77) INFO {T} [worker.py:267] the current vLLM instance can use total_gpu_memory (79.15GiB) x \
gpu_memory_utilization (0.89) = 70.54GiB
(VllmWorkerProcess pid=77) INFO {T} [worker.py:267] model weights take 8.63GiB; non_torch_memory takes 0.09GiB; \
PyTorch activation peak memory takes 1.16GiB; the rest of the memory reserved for KV Cache is 60.66GiB.
INFO {T} [worker.py:267] Memory profiling takes 5.45 seconds
INFO {T} [worker.py:267] the current vLLM instance can use total_gpu_memory (79.15GiB) x gpu_memory_utilization \
(0.89) = 70.54GiB
INFO {T} [worker.py:267] model weights take 8.63GiB; non_torch_memory takes 0.19GiB; PyTorch activation peak memory \
takes 2.16GiB; the rest of the memory reserved for KV Cache is 59.56GiB.
INFO {T} [executor_base.py:112] # cuda blocks: 14815, # CPU blocks: 1966
INFO {T} [executor_base.py:117] Maximum concurrency for 8192 tokens per request: 28.94x
INFO {T} [model_runner.py:1570] Graph capturing finished in 59 secs, took 1.12 GiB
(VllmWorkerProcess pid=77) INFO {T} [model_runner.py:1570] Graph capturing finished in 58 secs, took 0.92 GiB
INFO {T} [llm_engine.py:447] init engine (profile, create kv cache, warmup model) took 70.01 seconds
INFO {T} [api_server.py:1090] Starting vLLM API server on http://0.0.0.0:8000
INFO:     Started server process [1]
INFO:     Application startup complete.
INFO:     127.0.0.1:1 - "POST /v1/completions HTTP/1.1" 200 OK
INFO {T} [metrics.py:489] Avg prompt throughput: 10.5 tokens/s, Avg generation throughput: 20.0 tokens/s, Running: \
3 reqs, Swapped: 1 reqs, Pending: 2 reqs, GPU KV cache usage: 40.5%, CPU KV cache usage: 1.0%.
INFO {T} [metrics.py:505] Prefix cache hit rate: GPU: 12.50%, CPU: 0.00%
WARNING {T} [scheduler.py:1754] Sequence group cmpl-1 is preempted by PreemptionMode.RECOMPUTE mode because there is \
not enough KV cache space. This can affect the end-to-end performance. total_num_cumulative_preemption=51
"""

V1 = f"""\
(APIServer pid=1) INFO {T} [utils.py:299]  ▄▄ ▄█ █     █     █ ▀▄▀ █  version 0.28.0
(APIServer pid=1) INFO {T} [utils.py:299]   █▄█▀ █     █     █     █  model   org/tiny
(APIServer pid=1) INFO {T} [utils.py:233] non-default args: {{'model_tag': 'org/tiny', 'model': 'org/tiny', \
'max_model_len': 8192, 'data_parallel_size': 2, 'tensor_parallel_size': 2, 'gpu_memory_utilization': 0.9, \
'compilation_config': {{'cudagraph_mode': 'FULL_AND_PIECEWISE'}}, 'speculative_config': {{'method': 'mtp'}}}}
(APIServer pid=1) INFO {T} [vllm.py:840] Asynchronous scheduling is enabled.
(APIServer pid=1) INFO {T} [scheduler.py:228] Chunked prefill is enabled with max_num_batched_tokens=8192.
(EngineCore_DP0 pid=10) INFO {T} [core.py:93] Initializing a V1 LLM engine (v0.28.0) with config: model='org/tiny', \
dtype=torch.bfloat16, max_seq_len=8192, tensor_parallel_size=2, pipeline_parallel_size=1, data_parallel_size=2, \
kv_cache_dtype=auto, enable_prefix_caching=True, enable_chunked_prefill=True, compilation_config={{'mode': \
<CompilationMode.VLLM_COMPILE: 3>, 'cudagraph_mode': <CUDAGraphMode.FULL_AND_PIECEWISE: (2, 1)>, \
'cudagraph_capture_sizes': [1, 2, 4, 8, 16], 'max_cudagraph_capture_size': 16}}
(EngineCore_DP1 pid=11) INFO {T} [core.py:93] Initializing a V1 LLM engine (v0.28.0) with config: model='org/tiny', \
dtype=torch.bfloat16, max_seq_len=8192, tensor_parallel_size=2)
(Worker_DP0_TP0 pid=20) INFO {T} [gpu_worker.py:513] Using V2 Model Runner
(Worker_DP0_TP0 pid=20) INFO {T} [cuda.py:508] Using FLASH_ATTN attention backend out of potential backends: \
['FLASH_ATTN', 'FLASHINFER'].
(Worker_DP0_TP1 pid=21) INFO {T} [gpu_worker.py:772] Available KV cache memory: 30.50 GiB
(Worker_DP0_TP0 pid=20) INFO {T} [gpu_model_runner.py:1] Model loading took 10.25 GiB memory and 3.5 seconds
(Worker_DP0_TP0 pid=20) INFO {T} [gpu_worker.py:772] Available KV cache memory: 30.25 GiB
(Worker_DP1_TP0 pid=22) INFO {T} [gpu_worker.py:772] Available KV cache memory: 29.75 GiB
(Worker_DP1_TP1 pid=23) INFO {T} [gpu_worker.py:772] Available KV cache memory: 29.50 GiB
(EngineCore_DP0 pid=10) INFO {T} [kv_cache_utils.py:2032] GPU KV cache size: 495,616 tokens, Maximum concurrency \
for 8,192 tokens per request: 60.50x
(EngineCore_DP1 pid=11) INFO {T} [kv_cache_utils.py:2032] GPU KV cache size: 483,328 tokens, Maximum concurrency \
for 8,192 tokens per request: 59.00x
(Worker_DP0_TP0 pid=20) INFO {T} [model_runner.py:1163] Graph capturing finished in 4 secs, took 0.20 GiB
(Worker_DP0_TP0 pid=20) INFO {T} [model_runner.py:1163] Graph capturing finished in 9 secs, took 0.55 GiB
(Worker_DP0_TP0 pid=20) INFO {T} [gpu_worker.py:960] Free memory on device (78.5/78.89 GiB) on startup. Desired GPU \
memory utilization is (0.9, 71.0 GiB). Actual usage is 38.0 GiB for consumed memory (weights + non-torch), 2.75 GiB \
for peak activation, and 0.55 GiB for CUDAGraph memory. Replace gpu_memory_utilization config with \
`--kv-cache-memory=32480000000` (30.25 GiB) to fit into requested memory, or `--kv-cache-memory=40000000000` \
(37.25 GiB) to fully utilize gpu memory. Current kv cache memory in use is 30.25 GiB.
(EngineCore_DP0 pid=10) INFO {T} [core.py:405] init engine (profile, create kv cache, warmup model) took 40.25 s \
(compilation: 12.50 s)
(ApiServer_0 pid=30) INFO:     Application startup complete.
(ApiServer_1 pid=31) INFO:     Application startup complete.
(APIServer pid=1) INFO {T} [loggers.py:1] Engine 000: Avg prompt throughput: 100.0 tokens/s, Avg generation \
throughput: 50.0 tokens/s, Running: 8 reqs, Waiting: 1 reqs, Deferred: 1 reqs, Preemptions: 2, GPU KV cache usage: \
35.0%, Prefix cache hit rate: 60.0%, External prefix cache hit rate: 10.0%, MM cache hit rate: 5.0%
(APIServer pid=1) INFO {T} [loggers.py:1] Engine 001: Avg prompt throughput: 0.0 tokens/s, Avg generation \
throughput: 30.0 tokens/s, Running: 2 reqs, Waiting: 0 reqs, CPU KV cache usage: 5.0%
(APIServer pid=1) INFO {T} [metrics.py:96] SpecDecoding metrics: Mean acceptance length: 2.50, Accepted throughput: \
1.00 tokens/s, Drafted throughput: 2.00 tokens/s, Accepted: 5 tokens, Drafted: 10 tokens, Per-position acceptance \
rate: 0.800, 0.600, Avg Draft acceptance rate: 70.0%
"""


def read(text: str, tmp_path: Path, **wishes: object) -> Capture:
    path = tmp_path / "server.log"
    path.write_text(text, encoding="utf-8")
    return read_log([path], LogWishes(**wishes))  # type: ignore[arg-type]


def ledger(capture: Capture, rank: int = 0) -> dict[str, float | None]:
    return {term.name: number(term.bytes) for term in capture.instances[0].ranks[rank].ledger}


# --- whole starts -----------------------------------------------------------------------------------------------


def test_v0(tmp_path: Path) -> None:
    found = read(V0, tmp_path)
    assert plain(found.identity.version) == "0.8.5"
    assert (found.failure, found.reading and found.reading.starts[0].ended) == (None, "ready")
    final = {key: plain(setting.final) for key, setting in found.settings.items()}
    assert final["model.max_model_len"] == 8192
    assert final["scheduler.max_num_seqs"] == 64
    assert final["kv.dtype"] == "fp8"
    assert final["graphs.capture_sizes"] == [64, 56, 8, 4, 2, 1]
    assert final["structured_outputs.backend"] == "xgrammar"
    assert (final["load.format"], final["scheduler.chunked_prefill"]) == ("auto", False)
    assert final["kernels.attention_backend"] == "Flash Attention"
    assert "kv.block_size" not in found.settings
    assert all(setting.origin is None for setting in found.settings.values())
    driver, worker = found.instances[0].ranks
    assert (driver.tp, worker.tp) == (0, 1)
    assert ledger(found) == pytest.approx(
        {
            "device memory": 79.15 * GIB, "vLLM may use": 70.54 * GIB, "weights": 8.6253 * GIB,
            "activation peak": 2.16 * GIB, "outside torch": 0.19 * GIB, "KV cache": 59.56 * GIB,
        }, abs=1,
    )  # fmt: skip
    for rank in (driver, worker):
        assert number(rank.pools[0].bytes) == pytest.approx(59.56 * GIB, abs=1)
        assert (number(rank.pools[0].block_tokens), number(rank.pools[0].tokens)) == (16, 237040)
    assert number(driver.graphs.bytes) == pytest.approx(1.12 * GIB, abs=1)
    assert number(worker.graphs.bytes) == pytest.approx(0.92 * GIB, abs=1)
    assert len(found.identity.devices) == 2
    assert {p.name: plain(p.seconds) for p in found.boot}["load model"] == 9.1
    assert any("name no ranks" in note for note in found.notes)
    run = {name: plain(value) for name, value in found.run_summary.items()}
    assert run["requests.swapped_requests"]["last"] == 1  # type: ignore[call-overload, index]
    assert run["requests.waiting_requests"]["last"] == 2  # type: ignore[call-overload, index]
    assert run["KV usage.usage_percent"]["most"] == 40.5  # type: ignore[call-overload, index]
    assert run["prefix cache.hit_percent"]["last"] == 12.5  # type: ignore[call-overload, index]
    assert run["preemption.total"]["last"] == 51  # type: ignore[call-overload, index]
    assert "api_key" not in str(found.native["args"]) or "None" in str(found.native["args"])


def test_v1_with_two_engines_of_two_ranks(tmp_path: Path) -> None:
    found = read(V1, tmp_path)
    assert plain(found.identity.version) == "0.28.0"
    assert found.failure is None
    ranks = found.instances[0].ranks
    assert [(r.dp, r.tp) for r in ranks] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    pools = [r.pools[0] for r in ranks]
    assert [number(p.bytes) for p in pools] == pytest.approx([b * GIB for b in (30.25, 30.25, 29.5, 29.5)], abs=1)
    assert [number(p.tokens) for p in pools] == [495616, 495616, 483328, 483328]
    assert [number(p.max_concurrency) for p in pools] == [60.5, 60.5, 59.0, 59.0]
    said = ledger(found)
    assert said["consumed"] == pytest.approx(38.0 * GIB, abs=1)
    assert "unexplained" not in said
    weights = next(term for term in ranks[0].ledger if term.name == "weights")
    assert weights.draws_on == "consumed"
    assert number(ranks[0].graphs.bytes) == pytest.approx(0.55 * GIB, abs=1)
    assert plain(ranks[0].graphs.mode) == "FULL_AND_PIECEWISE"
    assert plain(found.runner.name) == "V2"
    assert plain(found.runner.candidates) == "['FLASH_ATTN', 'FLASHINFER']"
    settings = found.settings
    assert settings["model.max_model_len"].origin == "user"
    assert settings["graphs.mode"].origin == "user"
    assert settings["parallel.dp"].origin == "user"
    assert settings["kv.gpu_memory_utilization"].origin == "user"
    assert plain(settings["speculative.method"].configured) == "mtp"
    assert plain(settings["scheduler.async_scheduling"].final) is True
    assert plain(found.admission.preemption) is not None
    run = {name: plain(value) for name, value in found.run_summary.items()}
    assert run["throughput.generation_tokens_per_second"]["lines"] == 2  # type: ignore[call-overload, index]
    assert run["requests.deferred_requests"]["last"] == 1  # type: ignore[call-overload, index]
    assert run["preemptions.requests"]["last"] == 2  # type: ignore[call-overload, index]
    assert run["external prefix cache.hit_percent"]["last"] == 10.0  # type: ignore[call-overload, index]
    assert run["speculation.accepted_percent"]["last"] == 70.0  # type: ignore[call-overload, index]
    assert any("smallest decides" in note for note in found.notes)


def test_a_printed_share_is_the_given_one_rounded(tmp_path: Path) -> None:
    args = "non-default args: {'model': 'm', 'gpu_memory_utilization': 0.8912}"
    line = "the current vLLM instance can use total_gpu_memory (8.00GiB) x gpu_memory_utilization (0.89) = 7.13GiB"
    share = read(f"INFO {T} [u.py:1] {args}\nINFO {T} [w.py:1] {line}\n", tmp_path).settings[
        "kv.gpu_memory_utilization"
    ]
    assert (plain(share.configured), plain(share.final), share.origin) == (0.8912, 0.89, "user")
    other = read(f"INFO {T} [u.py:1] {args}\nINFO {T} [w.py:1] {line.replace('0.89', '0.92')}\n", tmp_path)
    assert other.settings["kv.gpu_memory_utilization"].origin == "forced"


# --- wrappers, restarts, streams --------------------------------------------------------------------------------

WRAPPERS = {
    "docker compose": "vllm-1  | {}",
    "kubectl": "[pod/llm-0/server] {}",
    "docker timestamps": "2025-01-01T00:00:00.000000000Z {}",
    "journald": "Jan 01 00:00:00 box vllm[12]: {}",
    "colour": "\x1b[0;36m{}\x1b[0;0m",
    "TUI": "│ {}                                      │",
}


@pytest.mark.parametrize("name", WRAPPERS)
def test_wrappers_change_nothing(name: str, tmp_path: Path) -> None:
    wrapped = "\n".join(WRAPPERS[name].format(line) for line in V1.splitlines()) + "\n"
    assert ledger(read(wrapped, tmp_path)) == ledger(read(V1, tmp_path))


def test_a_restart_in_one_file(tmp_path: Path) -> None:
    second = V1.replace("30.25 GiB", "20.25 GiB").replace("org/tiny", "org/other")
    both = read(V1 + second, tmp_path)
    assert both.reading is not None
    assert [start.ended for start in both.reading.starts] == ["ready", "ready"]
    assert both.launch.model == "org/other"
    assert read(V1 + second, tmp_path, start=1).launch.model == "org/tiny"


def test_what_follows_a_shutdown_is_no_failure(tmp_path: Path) -> None:
    ended = V1 + (
        f"(EngineCore_DP0 pid=10) INFO {T} [core.py:1454] [shutdown] EngineCore: trigger received signal=SIGTERM\n"
        f"(APIServer pid=1) ERROR {T} [async_llm.py:906] vllm.v1.engine.exceptions.EngineDeadError: EngineCore "
        "encountered an issue. See stack trace (above) for the root cause.\n"
    )
    assert read(ended, tmp_path).failure is None
    died = V1 + (
        f"(EngineCore_DP0 pid=10) ERROR {T} [core.py:1512] EngineCore encountered a fatal error.\n"
        f"(EngineCore_DP0 pid=10) ERROR {T} [core.py:1512] torch.OutOfMemoryError: CUDA out of memory. Tried to "
        "allocate 2.50 GiB.\n"
    )
    failure = read(died, tmp_path).failure
    assert failure is not None
    assert failure.stage == "serving"
    assert failure.cause == "The device ran out of memory (the failed allocation: 2.50 GiB)"


# --- numbers that mislead ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "term", "size"),
    [
        ("Loading model weights took 7.9692 GB", "weights", 7.9692 * GIB),
        ("Loading model weights took 244.61 MB", "weights", 244.61 * MIB),
        ("Model loading took 13.72 GiB memory and 62.3 seconds", "weights", 13.72 * GIB),
        ("Model loading took 13.72 GiB and 62.3 seconds", "weights", 13.72 * GIB),
        ("Available KV cache memory: 5 GiB", "KV cache", 5 * GIB),
        ("Available KV cache memory: -2.14 GiB", "KV cache", -2.14 * GIB),
        ("Available memory: 57403864576, total memory: 65787658240", "KV cache", 57403864576),
        ("Initial free memory 70.5 GiB, reserved 40.0 GiB memory for KV Cache as specified by kv_cache_memory_bytes "
         "config and skipped memory profiling.", "KV cache asked for", 40 * GIB),
        ("Auto set (18.5/23.54) GiB for KV cache on node 0, with 21.66 GiB requested memory for the worker. 3.16 GiB "
         "memory was consumed by non-kv usages.", "process of the worker", 3.16 * GIB),
        ("Memory profiling takes 3.20 seconds. Total non KV cache memory: 20.50GiB; torch peak memory increase: "
         "1.25GiB; non-torch forward increase memory: 0.50GiB; weights memory: 18.75GiB.",
         "activation peak", 1.25 * GIB),
    ],
)  # fmt: skip
def test_one_line_of_memory(line: str, term: str, size: float, tmp_path: Path) -> None:
    found = read(f"(EngineCore pid=1) INFO {T} [a.py:1] {line}\n", tmp_path)
    assert ledger(found)[term] == pytest.approx(size, abs=1)
    value = next(t.bytes for t in found.instances[0].ranks[0].ledger if t.name == term)
    assert isinstance(value, Known)
    assert value.evidence is not None
    assert line in value.evidence.where


@pytest.mark.parametrize(
    "line",
    [
        "Available KV cache memory: 5.3",
        "Available KV cache memory: 5.",
        "Available KV cache memory: 5.33 Gi",
        "Model loading took 13.7",
        "GPU KV cache size: 1,04",
        "# GPU blocks: 12",
        "the current vLLM instance can use total_gpu_memory (79.15GiB) x gpu_memory_utilization (0.8",
        "Graph capturing finished in 9 secs, took 0.5",
        "Estimated CUDA graph memory: 0.2",
        "vLLM API server version",
        "KV cache size: lots of tokens",
    ],
)
def test_a_cut_number_is_not_read(line: str, tmp_path: Path) -> None:
    try:
        found = read(f"(EngineCore pid=1) INFO {T} [a.py:1] {line}", tmp_path)
    except errors.LogForeign:
        return
    assert not any(rank.ledger for instance in found.instances for rank in instance.ranks)
    blocks = [p.blocks for i in found.instances for r in i.ranks for p in r.pools]
    assert line.startswith("# GPU") or all(isinstance(b, Unknown) for b in blocks)


def test_the_last_graph_line_counts_and_no_budget_is_made_up(tmp_path: Path) -> None:
    text = (
        f"(EngineCore pid=1) INFO {T} [a.py:1] Estimated CUDA graph memory: 0.26 GiB total\n"
        f"(EngineCore pid=1) INFO {T} [a.py:1] Available KV cache memory: 5.33 GiB\n"
    )
    found = read(text, tmp_path)
    (graphs,) = (t for t in found.instances[0].ranks[0].ledger if t.name == "graphs")
    assert (graphs.draws_on, "does not say whether" in graphs.meaning) == (None, True)
    counted = read(
        text
        + f"(EngineCore pid=1) INFO {T} [a.py:1] CUDA graph memory profiling is enabled (default since v0.21.0). The "
        "current --gpu-memory-utilization=0.9200 is equivalent to --gpu-memory-utilization=0.9129 without CUDA graph "
        "memory profiling.\n",
        tmp_path,
    )
    (graphs,) = (t for t in counted.instances[0].ranks[0].ledger if t.name == "graphs")
    assert graphs.draws_on == "vLLM may use"


def test_a_build_without_a_version_is_unknown(tmp_path: Path) -> None:
    found = read(
        f"INFO {T} [core.py:1] Initializing a V1 LLM engine (vdev) with config: model='m', seed=0)\n", tmp_path
    )
    assert isinstance(found.identity.version, Unknown)
    assert "`dev`" in found.identity.version.because


def test_block_size_in_order_of_truth(tmp_path: Path) -> None:
    blocks = f"INFO {T} [e.py:1] # cuda blocks: 100, # CPU blocks: 0\n"
    by_default = read(blocks, tmp_path).instances[0].ranks[0].pools[0]
    assert number(by_default.tokens) == 1600
    assert isinstance(by_default.block_tokens, Known)
    assert by_default.block_tokens.basis == "engine rule"
    concurrent = blocks + f"INFO {T} [e.py:2] Maximum concurrency for 320 tokens per request: 10.00x\n"
    assert number(read(concurrent, tmp_path).instances[0].ranks[0].pools[0].block_tokens) == 32
    given = f"INFO {T} [u.py:1] non-default args: {{'model': 'm', 'block_size': 8}}\n" + blocks
    assert number(read(given, tmp_path).instances[0].ranks[0].pools[0].tokens) == 800
    hpu = read(blocks.replace("cuda", "hpu"), tmp_path).instances[0].ranks[0].pools[0]
    assert isinstance(hpu.block_tokens, Unknown)


def test_pools_stated_twice_are_not_summed(tmp_path: Path) -> None:
    twice = f"INFO {T} [k.py:1] GPU KV cache size: 1,000 tokens\nINFO {T} [k.py:1] GPU KV cache size: 1,200 tokens\n"
    found = read(twice, tmp_path)
    assert number(found.instances[0].ranks[0].pools[0].tokens) == 1200
    assert any("nothing is summed" in note for note in found.notes)


def test_global_ranks_are_split_by_the_tensor_size(tmp_path: Path) -> None:
    given = "{'model': 'm', 'tensor_parallel_size': 2, 'pipeline_parallel_size': 2}"
    text = f"INFO {T} [u.py:1] non-default args: {given}\n"
    for rank, left in enumerate((9.0, 8.0, 5.0, 6.0)):
        text += f"(VllmWorker rank={rank} pid={rank + 5}) INFO {T} [g.py:1] Available KV cache memory: {left} GiB\n"
    ranks = read(text, tmp_path).instances[0].ranks
    assert [(r.pp, r.tp) for r in ranks] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    sizes = [number(r.pools[0].bytes) for r in ranks]
    assert sizes == [8 * GIB, 8 * GIB, 5 * GIB, 5 * GIB]


def test_a_config_line_without_its_beginning(tmp_path: Path) -> None:
    text = (
        "kv_cache_dtype=fp8, device_config=cuda, tensor_parallel_size=4, seed=0, enable_prefix_caching=True, "
        "compilation_config={'cudagraph_mode': <CUDAGraphMode.PIECEWISE: 1>, 'cudagraph_capture_sizes': [1, 2]}\n"
    )
    found = read(f"INFO {T} [k.py:1] GPU KV cache size: 1,000 tokens\n...e, {text}", tmp_path)
    assert plain(found.settings["parallel.tp"].final) == 4
    assert plain(found.settings["graphs.mode"].final) == "PIECEWISE"
    assert any("beginning is missing" in note for note in found.notes)


@pytest.mark.parametrize(
    ("printed", "mode"),
    [
        ('{"level":3,"cudagraph_mode":[2,1]}', "FULL_AND_PIECEWISE"),
        ('{"cudagraph_mode":1}', "PIECEWISE"),
        ("{'cudagraph_mode': <CUDAGraphMode.FULL_DECODE_ONLY: (2, 0)>}", "FULL_DECODE_ONLY"),
    ],
)
def test_graph_modes_as_each_version_prints_them(printed: str, mode: str, tmp_path: Path) -> None:
    line = f"Initializing a V1 LLM engine (v0.11.0) with config: model='m', compilation_config={printed}"
    assert plain(read(f"INFO {T} [core.py:1] {line}\n", tmp_path).settings["graphs.mode"].final) == mode


# --- stages and failures ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "stage"),
    [
        ("vLLM API server version 0.8.5", "configuration"),
        ("Starting to load model m...", "load weights"),
        ("Model loading took 5.0 GiB and 1.0 seconds", "profile memory"),
        ("Available KV cache memory: 5.0 GiB", "size the KV cache"),
        ("Capturing cudagraphs for decoding. This may lead to unexpected consequences", "capture graphs"),
        ("Graph capturing finished in 9 secs, took 0.55 GiB", "warm up"),
        ("init engine (profile, create kv cache, warmup model) took 5.00 seconds", "serve"),
    ],
)
def test_stages(line: str, stage: str) -> None:
    start = log.launched(f"INFO {T} [a.py:1] vLLM API server version 0.8.5\nINFO {T} [a.py:1] {line}\n")
    assert from_log.stage(start) == stage
    assert from_log.stage(log.launched("")) == "configuration"


HEALTHY = (
    V0.replace("INFO:     Application startup complete.", ""),
    V1.replace("INFO:     Application startup complete.", ""),
    f"WARNING {T} [utils.py:1] Found ulimit of 20000 and failed to automatically increase. This can cause fd limit "
    "errors like `OSError: [Errno 24] Too many open files`. Consider increasing with ulimit -n\n"
    f"INFO {T} [a.py:1] Available KV cache memory: 5.0 GiB\n",
    f"INFO {T} [g.py:1] Initial free memory 70.5 GiB, reserved 40.0 GiB memory for KV Cache as specified by "
    "kv_cache_memory_bytes config and skipped memory profiling. If OOM'ed, check the difference of initial free memory "
    "between the current run and the previous run\n",
    f"WARNING {T} [c.py:1] CUDAGraphMode.FULL is not supported with FlashInferBackend backend (support: "
    "AttentionCGSupport.UNIFORM_BATCH); setting cudagraph_mode=PIECEWISE\n"
    f"INFO {T} [a.py:1] Available KV cache memory: 5.0 GiB\n",
    f"WARNING {T} [v.py:1] Model Runner V2 does not yet support pipeline parallelism; using the V1 model runner "
    "instead.\n"
    f"INFO {T} [a.py:1] Available KV cache memory: 5.0 GiB\n",
    f"INFO {T} [m.py:1] Capturing cudagraphs for decoding. If out-of-memory error occurs during cudagraph capture, "
    "consider decreasing `gpu_memory_utilization` or switching to eager mode.\n",
    f"WARNING {T} [g.py:1] CUDA graph memory profiling is disabled (VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS=0). "
    "Without it, CUDA graph memory is not accounted for during KV cache allocation, which may require lowering "
    "--gpu-memory-utilization to avoid OOM. Consider re-enabling it (the default as of v0.21.0) and increasing "
    "--gpu-memory-utilization from 0.9000 to 0.9100.\n",
)  # fmt: skip


@pytest.mark.parametrize("text", HEALTHY, ids=range(len(HEALTHY)))
def test_advice_and_warnings_are_no_failure(text: str, tmp_path: Path) -> None:
    assert read(text, tmp_path).failure is None
    assert engines.get("vllm").cause(text, "") is None


def test_real_starts_are_no_failure(tmp_path: Path) -> None:
    boot = (Path(__file__).parent / "data" / "boot-0.32.0.log").read_text(encoding="utf-8")
    found = read(boot, tmp_path, engine="vllm")
    assert found.failure is None
    assert plain(found.runner.name) == "V1"
