"""Prefixes, the profiling pass, ranks, restarts, Triton, what was forced, and how a start ends."""

from __future__ import annotations

import re
from typing import Any

import pytest

from engdiff import engines
from engdiff.engines.trtllm.log import FORMAT, said
from engdiff.schema.values import Unknown, plain
from engdiff.units import GIB
from tests.engines.conftest import Read
from tests.engines.known import every_known
from tests.engines.trtllm import logs
from tests.engines.trtllm.facts import final, gib, pool, rank, term
from tests.engines.trtllm.facts import said as printed


def text(lines: list[str]) -> str:
    return "\n".join(lines) + "\n"


# --- prefixes ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "process", "level", "message"),
    [
        ("[TensorRT-LLM][INFO] a", "", "INFO", "a"),
        ("[TensorRT-LLM][WARNING] a", "", "WARNING", "a"),
        ("[TensorRT-LLM][INFO][3] a", "RANK 3", "INFO", "a"),
        ("[01/01/2025-00:00:01] [TRT-LLM] [I] a", "", "INFO", "a"),
        ("[01/01/2025-00:00:01] [TRT-LLM] [RANK 2] [W] a", "RANK 2", "WARNING", "a"),
        ("[01/01/2025-00:00:01] [TRT-LLM] [MPI_Rank 1] [E] a", "RANK 1", "ERROR", "a"),
        ("[TRT-LLM] [RANK 2] [W] a", "RANK 2", "WARNING", "a"),
        ("[RANK 0] a", "RANK 0", None, "a"),
        ("[1,3]<stdout>:[TensorRT-LLM][INFO] a", "RANK 3", "INFO", "a"),
        ("1: [01/01/2025-00:00:01] [TRT-LLM] [I] a", "RANK 1", "INFO", "a"),
        ("(ServeReplica:default:TritonDeployment pid=3556) [TensorRT-LLM][INFO] a", "", "INFO", "a"),
        ("[TensorRT-LLM] TensorRT-LLM version: 1.0.0", "", None, "TensorRT-LLM version: 1.0.0"),
        ("I0101 00:00:08.000000 1 file.cc:849] a", "", None, "a"),
        ("[01/01/2025-00:00:01] [TRT] [W] a", "", None, "a"),
        ("INFO:     a", "", None, "a"),
        ("2025-01-01T00:00:00.381069Z  INFO dynamo_llm::http: a", "", None, "dynamo_llm::http: a"),
    ],
)
def test_prefix(line: str, process: str, level: str | None, message: str) -> None:
    found = said(line)
    assert (found.process, found.level, found.text, found.prefixed) == (process, level, message, True)


@pytest.mark.parametrize("line", ["model='a' dtype='auto'", " Model: 1.00 / 2.00", "[unrelated] a", ""])
def test_a_line_without_a_prefix_may_continue_another(line: str) -> None:
    found = said(line)
    assert (found.text, found.prefixed) == (line, False)


def test_anchors_tell() -> None:
    for line in FORMAT.lines:
        assert line.anchors
        assert all(len(anchor) >= 6 for anchor in line.anchors), line.name


def test_units_end_the_names_of_sizes() -> None:
    for line in FORMAT.lines:
        for group in line.pattern.groupindex:
            assert not group.endswith("_gb"), line.name


# --- PyTorch back end -------------------------------------------------------------------------------------------


def test_the_last_allocation_counts(read: Read) -> None:
    capture = read(text(logs.pytorch()))
    assert (gib(pool(capture).bytes), plain(pool(capture).tokens)) == (55.93, 458176)
    assert plain(pool(capture).blocks) == 14318
    assert pool(capture).groups[0].detail["max_sequence_length"] == 131073
    assert gib(capture.settings["kv.pool_bytes"].final) == 55.93
    assert final(capture, "model.max_model_len") == 131073


def test_the_ledger_of_the_profiling_pass(read: Read) -> None:
    capture = read(text(logs.pytorch()))
    names = ["device memory", "weights", "activation peak", "outside torch", "available for the KV cache", "KV cache"]
    assert [term(capture, name) for name in names] == [79.0, 15.2, 0.85, 1.3, 55.93, 55.93]
    assert term(capture, "torch may use") == 19.75
    assert printed(capture, "profile", "peak_gib") == "17.35"
    assert printed(capture, "profile", "temporary_gib") == "0.50"
    assert printed(capture, "weights_outside", "size_gib") == "1.10"


def test_sizes_have_the_bounds_of_their_rounding(read: Read) -> None:
    size: Any = pool(read(text(logs.pytorch()))).bytes
    assert size.low == pytest.approx(55.925 * GIB)
    assert size.high == pytest.approx(55.935 * GIB)


def test_a_log_that_ends_in_the_profiling_pass_has_no_pool(read: Read) -> None:
    lines = logs.pytorch()
    end = next(i for i, line in enumerate(lines) if "Estimated max memory" in line)
    capture = read(text(lines[: end + 1]))
    assert isinstance(pool(capture).bytes, Unknown) if rank(capture).pools else True
    assert "kv.pool_bytes" not in capture.settings
    assert term(capture, "available for the KV cache") == 55.93


def test_configurations_are_read(read: Read) -> None:
    capture = read(text(logs.pytorch()))
    assert plain(capture.identity.version) == "1.1.0rc3"
    assert final(capture, "kernels.attention_backend") == "TRTLLM"
    assert final(capture, "kernels.moe_backend") == "CUTLASS"
    assert final(capture, "scheduler.async_scheduling") is False
    assert final(capture, "scheduler.chunked_prefill") is False
    assert final(capture, "kv.prefix_caching") is True
    assert final(capture, "graphs.capture_sizes") == [1, 2, 4, 8]
    assert final(capture, "scheduler.max_num_batched_tokens") == 4096
    assert final(capture, "scheduler.max_num_seqs") == 8
    assert plain(capture.runner.name) == "PyTorch"
    assert [(p.name, plain(p.seconds)) for p in capture.boot] == [("load weights", 21.14)]
    config: Any = capture.native["PyTorchConfig"]
    assert config["sampler_type"] == "auto"


def test_a_fraction_is_the_one_that_was_meant(read: Read) -> None:
    value: Any = read(text(logs.pytorch())).settings["kv.gpu_memory_utilization"].final
    assert (value.value, value.evidence.source) == (0.9, "rule")


@pytest.mark.parametrize(
    ("tail", "fraction", "total", "temporary"),
    [
        ("", None, None, None),
        (", fraction is set 0.9, kv size is 32768", "0.9", None, None),
        (
            ", fraction is set 0.9, kv size is 32768. device total memory 79.00 GiB, , tmp kv_mem 0.56 GiB",
            "0.9",
            "79.00",
            "0.56",
        ),
        (
            ", fraction is set 0.9, kv size per token is CacheCost(slope=32768.0, intercept=0). device total memory "
            "79.00 GiB, temporary kv cache memory during profiling 0.56 GiB",
            "0.9",
            "79.00",
            "0.56",
        ),
    ],
)
def test_four_wordings_of_the_peak(
    tail: str, fraction: str | None, total: str | None, temporary: str | None, read: Read
) -> None:
    line = (
        f"{logs.STAMP}[I] Peak memory during memory usage profiling (torch + non-torch): 17.35 GiB, available KV cache "
        f"memory when calculating max tokens: 55.93 GiB{tail}"
    )
    log: Any = read(line).native["log"]
    found = log["profile"]
    assert (found["peak_gib"], found["available_gib"]) == ("17.35", "55.93")
    assert [found.get(n) for n in ("fraction", "total_gib", "temporary_gib")] == [fraction, total, temporary]


def test_the_arguments_on_the_next_line(read: Read) -> None:
    capture = read(text(logs.ranks()))
    assert capture.launch.model == "org/name"
    assert plain(capture.settings["kv.gpu_memory_utilization"].resolved) == 0.85
    assert final(capture, "kv.dtype") == "fp8"
    assert final(capture, "parallel.tp") == 2
    assert final(capture, "parallel.ep") is False
    assert final(capture, "scheduler.async_scheduling") is True
    assert final(capture, "scheduler.capacity_policy") == "GUARANTEED_NO_EVICT"
    assert capture.settings["scheduler.max_num_seqs"].origin == "user"
    config: Any = capture.native["config"]
    assert config["scheduler_config"]["capacity_scheduler_policy"] == "GUARANTEED_NO_EVICT"
    evidence: Any = capture.settings["kv.dtype"].resolved
    assert "dtype='fp8'" in evidence.evidence.where


def test_the_arguments_that_dynamo_gives(read: Read) -> None:
    line = (
        "TensorRT-LLM engine args: {'model': 'org/name', 'tensor_parallel_size': 8, 'pipeline_parallel_size': 1, "
        "'moe_expert_parallel_size': 8, 'max_batch_size': 256, 'max_seq_len': 131072, 'kv_cache_config': "
        "{'free_gpu_memory_fraction': 0.75}}"
    )
    capture = read(line)
    assert (capture.launch.model, final(capture, "parallel.tp")) == ("org/name", 8)
    assert final(capture, "parallel.ep") is True
    assert final(capture, "kv.gpu_memory_utilization") == 0.75


def test_arguments_that_break_off_are_named(read: Read) -> None:
    capture = read(f"{logs.STAMP}[I] {logs.PYTORCH_CONFIG[:200]}")
    assert any("is missing" in note for note in capture.notes)


def test_the_second_cache_manager_runs_another_policy(read: Read) -> None:
    lines = [
        *logs.ranks(),
        f"{logs.STAMP}[RANK 0] [W] KVCacheV2Scheduler only supports MAX_UTILIZATION for now, got GUARANTEED_NO_EVICT, "
        "setting to MAX_UTILIZATION",
        f"{logs.STAMP}[RANK 0] [I] KVCacheV2Scheduler: tokens_per_block=32, max_num_tokens=4096, max_batch_size=8, "
        "draft_mgr=None",
    ]
    capture = read(text(lines))
    setting = capture.settings["scheduler.capacity_policy"]
    assert (plain(setting.resolved), plain(setting.effective)) == ("GUARANTEED_NO_EVICT", "MAX_UTILIZATION")
    assert str(plain(capture.admission.rule)).startswith("MAX_UTILIZATION")
    assert "paused" in str(plain(capture.admission.preemption))
    assert final(capture, "scheduler.class") == "KVCacheV2Scheduler"


def test_the_second_cache_manager_takes_the_estimate_as_quota(read: Read) -> None:
    lines = [
        f"{logs.STAMP}[I] Estimated max memory in KV cache : 55.93 GiB",
        f"{logs.STAMP}[I] KVCacheV2Scheduler: tokens_per_block=32, max_num_tokens=4096, max_batch_size=8",
    ]
    size: Any = pool(read(text(lines))).bytes
    assert (gib(size), size.evidence.source) == (55.93, "rule")


def test_the_quota_of_the_second_cache_manager(read: Read) -> None:
    quota = f"{logs.STAMP}[RANK {{rank}}] [I] KV cache manager v2 device quota set to {{gib}}GiB"
    ranks = [line for line in logs.ranks() if "TensorRT-LLM][INFO]" not in line]
    at = next(i for i, line in enumerate(ranks) if "Peak memory" in line) - 1
    lines = [
        *ranks[:at],
        quota.format(rank=0, gib="0.5"),
        quota.format(rank=1, gib="0.5"),
        *ranks[at:],
        quota.format(rank=0, gib="40.0078125"),
        quota.format(rank=1, gib="40.25"),
        f"{logs.STAMP}[RANK 0] [I] KV cache manager v2 host cache quota set to 16.0GiB",
    ]
    capture = read(text(lines))
    assert [gib(pool(capture, i).bytes) for i in (0, 1)] == [40.01, 40.25]
    assert gib(capture.settings["kv.pool_bytes"].final) == 40.01
    assert gib(capture.settings["kv.offload_bytes"].effective) == 16.0


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ("Disabling block reuse for FLASHINFER backend", "kv.prefix_caching"),
        (
            "KV cache reuse for MLA can only be enabled on SM90/SM100/SM103/SM120, disable enable_block_reuse for SM89",
            "kv.prefix_caching",
        ),
        ("Block reuse is disabled because of beam search", "kv.prefix_caching"),
        (
            "Chunked Prefill for MLA can only be enabled on SM90/SM100/SM103/SM120, disable enable_chunked_context for "
            "SM89",
            "scheduler.chunked_prefill",
        ),
        ("Disable overlap scheduler for speculation mode NGRAM", "scheduler.async_scheduling"),
    ],
)
def test_what_was_turned_off(line: str, key: str, read: Read) -> None:
    capture = read(text([*logs.ranks(), f"{logs.STAMP}[RANK 0] [W] {line}"]))
    setting = capture.settings[key]
    assert plain(setting.effective) is False
    assert any(w.text == line for w in capture.warnings)
    assert (setting.because or "").endswith(f": “{line}”")
    if key != "scheduler.chunked_prefill":  # it was off already
        assert (plain(setting.resolved), setting.origin) == (True, "derived")


REDUCED = (
    "Attention window size 131073 exceeds upper bound 86720 for available blocks. Reducing to 86720.",
    "Adjusted max_seq_len to 86720",
)


def test_the_longest_request_is_cut_down_to_the_pool(read: Read) -> None:
    lines = [line for line in logs.pytorch() if "max_seq_len=131073" not in line]
    at = max(i for i, line in enumerate(lines) if "paged KV cache" in line)
    lines[at:at] = [f"{logs.STAMP}[W] {line}" for line in REDUCED]
    setting = read(text(lines)).settings["model.max_model_len"]
    assert plain(setting.effective) == 86720
    assert "Adjusted max_seq_len to 86720" in (setting.because or "")
    grown = f"{logs.STAMP}[I] max_seq_len=86721, max_num_requests=8, max_num_tokens=4096, max_batch_size=8"
    assert final(read(text([*lines, grown])), "model.max_model_len") == 86721


def test_a_list_of_graphs_that_breaks_off_is_no_list(read: Read) -> None:
    whole = text(logs.pytorch())
    assert final(read(whole), "graphs.capture_sizes") == [1, 2, 4, 8]
    last = [i for i, line in enumerate(logs.pytorch()) if "CUDA graph warmup" in line][-1]
    cut = [line for line in logs.pytorch()[:last] if "PyTorchConfig" not in line]
    capture = read(text(cut))
    assert "graphs.capture_sizes" not in capture.settings
    assert final(capture, "graphs.max_capture_size") == 8


def test_a_flash_mla_block(read: Read) -> None:
    capture = read(f"{logs.STAMP}[I] Change tokens_per_block to: 64 for using FlashMLA")
    assert final(capture, "kv.block_size") == 64


# --- ranks ------------------------------------------------------------------------------------------------------


def test_ranks_are_told_apart_and_never_summed(read: Read) -> None:
    capture = read(text(logs.ranks()))
    assert [r.tp for r in capture.instances[0].ranks] == [0, 1]
    assert [term(capture, "weights", i) for i in (0, 1)] == [15.2, 15.1]
    assert [term(capture, "torch may use", i) for i in (0, 1)] == [23.7, 24.49]
    assert [gib(pool(capture, i).bytes) for i in (0, 1)] == [40.01, 40.01]
    assert [plain(pool(capture, i).tokens) for i in (0, 1)] == [655488, 655488]
    assert final(capture, "graphs.capture_sizes") == [1, 2, 4, 8]


def test_pipeline_stages_follow_the_size_of_tensor_parallelism(read: Read) -> None:
    lines = [line.replace("[RANK 1]", "[RANK 2]") for line in logs.ranks()]
    capture = read(text(lines))
    assert [(r.tp, r.pp) for r in capture.instances[0].ranks] == [(0, 0), (0, 1)]


def test_the_smallest_pool_decides(read: Read) -> None:
    lines = logs.ranks()
    at = max(i for i, line in enumerate(lines) if "Allocated" in line)
    lines[at] = "[TensorRT-LLM][INFO] [MemUsageChange] Allocated 39.00 GiB for max tokens in paged KV cache (638976)."
    capture = read(text(lines))
    assert plain(pool(capture).tokens) == 638976
    assert any("40.01 GiB" in note for note in capture.notes)


def test_repeats_without_a_rank_are_one_rank(read: Read) -> None:
    lines = [line for line in logs.engine() for _ in range(4)]
    capture = read(text(lines))
    assert len(capture.instances[0].ranks) == 1
    assert gib(pool(capture).bytes) == 62.99


def test_several_windows_are_several_groups(read: Read) -> None:
    lines = [
        f"{logs.INFO}Max KV cache blocks per sequence: 16 [window size=512], tokens per block=32, primary blocks=1000, "
        "secondary blocks=0, max sequence length=8192",
        f"{logs.INFO}Max KV cache blocks per sequence: 256 [window size=8192], tokens per block=32, primary "
        "blocks=500, secondary blocks=0, max sequence length=8192",
        f"{logs.INFO}[MemUsageChange] Allocated 10.00 GiB for max tokens in paged KV cache (48000).",
    ]
    found = pool(read(text(lines)))
    assert [(g.kind, g.detail["window"]) for g in found.groups] == [("full", 8192), ("sliding window", 512)]
    assert plain(found.blocks) == 1500
    assert isinstance(found.groups[0].bytes_per_block, Unknown)


# --- TensorRT back end and Triton -------------------------------------------------------------------------------


def test_the_engines_gb_is_1024(read: Read) -> None:
    capture = read(text(logs.engine()))
    assert term(capture, "runtime buffers") == 1.14
    assert term(capture, "decoder") == round(43.5 / 1024, 2)
    assert term(capture, "weights") == round(6214 / 1024, 2)
    assert (plain(pool(capture).blocks), plain(pool(capture).block_tokens)) == (4607, 64)
    assert plain(pool(capture).max_concurrency) == pytest.approx(4607 / 65, abs=0.01)
    assert final(capture, "scheduler.capacity_policy") == "GUARANTEED_NO_EVICT"
    assert final(capture, "scheduler.chunked_prefill") is True
    assert plain(capture.runner.name) == "TensorRT"


def test_the_version_of_an_engine_file_is_not_the_version_that_runs_it(read: Read) -> None:
    capture = read(text(logs.engine()))
    assert isinstance(capture.identity.version, Unknown)
    assert any("0.12.0" in note for note in capture.notes)


def test_triton_around_it(read: Read) -> None:
    capture = read(text(logs.triton()))
    assert capture.reading
    assert capture.reading.starts[0].ended == "ready"
    assert (plain(pool(capture).bytes), plain(pool(capture).tokens)) == (4143972352, 31616)
    assert [d.name for d in capture.identity.devices] == ["NVIDIA GeForce RTX 3090"]
    assert final(capture, "scheduler.capacity_policy") == "GUARANTEED_NO_EVICT"
    assert final(capture, "kv.prefix_caching") is False
    assert len(capture.warnings) == 4


def test_a_version_with_text_glued_to_it(read: Read) -> None:
    assert plain(read("[TensorRT-LLM] TensorRT-LLM version: 0.8.0Input [Text 0]: x").identity.version) == "0.8.0"


@pytest.mark.parametrize("version", ["1.0.0", "1.1.0rc2.post2", "0.12.0.dev2024073000", "1.4.0rc1"])
def test_versions(version: str, read: Read) -> None:
    for name in ("TensorRT-LLM", "TensorRT LLM"):
        assert plain(read(f"[TensorRT-LLM] {name} version: {version}").identity.version) == version


# --- starts -----------------------------------------------------------------------------------------------------


def test_a_version_printed_by_each_process_begins_no_second_start(read: Read) -> None:
    capture = read(text(logs.pytorch()))
    assert capture.reading
    assert len(capture.reading.starts) == 1


def test_restarts_in_one_file(read: Read) -> None:
    second = [line.replace("55.93 GiB for max", "50.00 GiB for max") for line in logs.pytorch()]
    both = text([*logs.pytorch(), "INFO:     Finished server process [41]", *second])
    assert gib(pool(read(both)).bytes) == 50.0
    first = read(both, start=1)
    assert gib(pool(first).bytes) == 55.93
    assert first.reading
    assert [s.ended for s in first.reading.starts] == ["ready", "ready"]


WRAPPERS = {
    "docker compose": "trtllm-1  | ",
    "kubectl --timestamps": "2025-01-01T00:00:00.000000000Z ",
    "docker compose with colours": "\x1b[36mtrtllm-1  |\x1b[0m ",
}


@pytest.mark.parametrize("wrapper", WRAPPERS)
@pytest.mark.parametrize("log", ["pytorch", "ranks", "triton", "engine"])
def test_wrapped(wrapper: str, log: str, read: Read) -> None:
    lines = getattr(logs, log)()
    bare, wrapped = read(text(lines)), read(text([WRAPPERS[wrapper] + line for line in lines]))
    for capture in (bare, wrapped):
        assert capture.native
    assert wrapped.native == bare.native
    assert {k: plain(s.final) for k, s in wrapped.settings.items()} == {
        k: plain(s.final) for k, s in bare.settings.items()
    }


# --- while serving ----------------------------------------------------------------------------------------------


def test_iterations_are_summarised(read: Read) -> None:
    iterations = [
        f"{logs.STAMP}[I] iter = {n}, global_rank = 0, rank = 0, currank_total_requests = {n}/{n}, host_step_time = "
        f"{n}.5ms, prev_device_step_time = {'N/A' if n == 1 else '9.0'}ms, timestamp = 2025-01-01 00:00:00, "
        f"num_scheduled_requests: {n}, states = {{'num_ctx_requests': 1, 'num_ctx_tokens': {n * 10}, "
        "'num_generation_tokens': 3}"
        for n in (1, 2, 3)
    ]
    capture = read(text([*logs.pytorch(), *iterations]))
    summary: Any = plain(capture.run_summary["iteration.context_tokens"])
    assert (summary["lines"], summary["least"], summary["most"]) == (3, 10, 30)
    steps: Any = plain(capture.run_summary["iteration.host_step_ms"])
    assert steps["mean"] == 2.5


def test_older_iterations(read: Read) -> None:
    line = (
        f"{logs.STAMP}[I] iter = 100, global_rank = 0, rank = 0, currank_total_requests = 1/1, elapsed_time = 0.25s, "
        "timestamp = 2025-01-01 00:00:00, num_scheduled_requests: 1, states = {'num_ctx_requests': 0, "
        "'num_ctx_tokens': 0, 'num_generation_tokens': 1}"
    )
    summary: Any = plain(read(line).run_summary["iteration.elapsed_seconds"])
    assert summary["last"] == 0.25


def test_statistics_of_triton(read: Read) -> None:
    line = (
        '[TensorRT-LLM][INFO] {"Active Request Count":2,"Context Requests":1,"Free KV cache blocks":90,"Generation '
        'Requests":1,"Iteration Counter":7,"Max KV cache blocks":100,"Used KV cache blocks":10}'
    )
    capture = read(text([*logs.triton(), line]))
    free: Any = plain(capture.run_summary["batch.free_blocks"])
    used: Any = plain(capture.run_summary["batch_blocks.used_blocks"])
    assert (free["last"], used["last"]) == (90, 10)


# --- how it ends ------------------------------------------------------------------------------------------------


def test_healthy_logs_have_no_failure(read: Read) -> None:
    for log in (logs.pytorch(ready=False), logs.ranks()[:-1], logs.engine()):
        assert read(text(log)).failure is None


@pytest.mark.parametrize(
    "line",
    [
        "[TRT-LLM] [W] insufficient GPU memory for CUDA graphs, capturing fewer batch sizes",
        "[TRT-LLM] [W] CUDA out of memory. Tried to allocate 20.00 MiB (handled, retrying)",
        "Memory usage when loading weights: 3.21 GiB",
        "free_gpu_memory_fraction=0.8, out of 7.70 GiB total",
        "[TRT-LLM] [W] It is recommended to incl. 'garbage_collection_threshold:0.???' in PYTORCH_CUDA_ALLOC_CONF.",
        "  kv_cache: reduce free_gpu_memory_fraction",
    ],
)
def test_lines_that_only_mention_memory(line: str, read: Read) -> None:
    assert read(text([*logs.pytorch(ready=False), line])).failure is None


@pytest.mark.parametrize(
    ("line", "stage", "words"),
    [
        ("ValueError: Unknown architecture for AutoModelForCausalLM: NewForCausalLM", "load weights", "NewForCausalLM"),
        ("Error: No such option: --tp", "configuration", "--tp"),
        ("Error: Invalid value for '--backend': 'tensorrt' is not 'pytorch'.", "configuration", "--backend"),
        ("RuntimeError: No weight files found in models/x.", "load weights", "models/x"),
        ("ValueError: No GPU devices found on the node", "configuration", "GPU"),
        ("RuntimeError: Failed to bind socket to 0.0.0.0:8000: in use", "configuration", "0.0.0.0:8000"),
        (
            "[TensorRT-LLM][ERROR] Assertion failed: maxTokensInPagedKvCache (512) must be large enough to process at "
            "least 1 sequence to completion (i.e. must be larger than beam_width (1) * tokensPerBlock (64) * "
            "maxBlocksPerSeq (65))",
            "size the KV cache",
            "65 blocks of 64",
        ),
        (
            "1 validation error for TorchLlmArgs\nkv_cache_dtype\n  Extra inputs are not permitted [type=extra]",
            "configuration",
            "kv_cache_dtype",
        ),
    ],
)
def test_causes(line: str, stage: str, words: str, read: Read) -> None:
    lines = [*logs.pytorch(ready=False)[:2], line, "RuntimeError: Executor worker returned error"]
    failure = read(text(lines)).failure
    assert failure
    assert failure.stage == stage
    assert words in (failure.cause or "")


def test_what_would_have_fitted(read: Read) -> None:
    line = (
        "[TensorRT-LLM][ERROR] Assertion failed: maxTokensInPagedKvCache (512) must be large enough to process at "
        "least 1 sequence to completion (i.e. must be larger than beam_width (1) * tokensPerBlock (64) * "
        "maxBlocksPerSeq (65))"
    )
    failure = read(text([*logs.engine()[:12], line])).failure
    assert failure
    assert failure.would_fit == "requests of 512 tokens would fit"
    assert plain(failure.numbers["available_tokens"]) == 512


def test_out_of_memory_while_graphs_are_captured(read: Read) -> None:
    lines = [
        *logs.pytorch(ready=False)[:-1],
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a capacity of 79.00 GiB",
        "RuntimeError: Executor worker returned error",
    ]
    failure = read(text(lines)).failure
    assert failure
    assert failure.stage == "capture graphs"


def test_the_table_under_a_launcher_of_several_ranks(read: Read) -> None:
    table = [
        "RuntimeError: Executor creation failed due to insufficient GPU memory.",
        "",
        "The following component could not be created: Initial KV Cache (temporary for KV cache size estimation)",
        "Total GPU memory (GiB): 79.00",
        "Free GPU memory before component creation attempt (GiB): 2.00",
        "",
        "Previously created components and free GPU memory before/after creation (GiB):",
        "model: 78.50 / 2.10",
        "sampler: 2.10 / 2.00",
        "",
        "Possible options include:",
        "  model: reduce max_num_tokens and/or shard the model weights",
    ]
    capture = read(text([f"[1,0]<stderr>:{line}" for line in table]))
    assert capture.failure
    assert capture.failure.stage == "profile memory"
    assert "2.00 of 79.00 GiB" in (capture.failure.cause or "")
    assert term(capture, "model") == 76.4


STAGES = [
    ("ATTENTION RUNTIME FEATURES", 0, "configuration"),
    ("GB for model weights", 0, "load weights"),
    ("Using Sampler", 0, "profile memory"),
    ("Allocated", 0, "profile memory"),
    ("CUDA graph warmup", 0, "profile memory"),
    ("Peak memory", 0, "profile memory"),
    ("Estimated max memory", 0, "size the KV cache"),
    ("Allocated", 1, "size the KV cache"),
    ("CUDA graph warmup", len(logs.GRAPHS), "capture graphs"),
    ("Setting PyTorch memory fraction", 0, "warm up"),
]


@pytest.mark.parametrize(("words", "time", "phase"), STAGES)
def test_stage(words: str, time: int, phase: str, read: Read) -> None:
    whole = logs.pytorch()
    last = [i for i, line in enumerate(whole) if words in line][time]
    failure = read(text([*whole[: last + 1], "RuntimeError: Executor worker returned error"])).failure
    assert failure
    assert failure.stage == phase


def test_stages_of_the_tensorrt_back_end(read: Read) -> None:
    whole = logs.engine()
    for words, phase in (("MPI size", "configuration"), ("Loaded engine", "load weights"), ("Allocated 62.99", "size")):
        last = next(i for i, line in enumerate(whole) if words in line)
        died = "E0101 00:00:00.000000 1 model_lifecycle.cc:1] failed to load 'tensorrt_llm' version 1: Internal: x"
        failure = read(text([*whole[: last + 1], died])).failure
        assert failure
        assert failure.stage.startswith(phase)


def test_every_value_cites_a_line_that_holds_it(read: Read) -> None:
    for log in (logs.pytorch(), logs.ranks(), logs.triton(), logs.engine()):
        lines = text(log).splitlines()
        for known in every_known(read(text(log))):
            evidence = known.evidence
            if evidence is None or evidence.source != "log":
                continue
            assert evidence.line is not None
            assert evidence.where in " ".join(lines[evidence.line - 1 : evidence.line + 1])
            if isinstance(known.value, int | float) and not isinstance(known.value, bool) and known.low is None:
                assert re.search(rf"(?<![\d.]){re.escape(str(known.value))}(?!\d)", evidence.where)


def test_what_is_no_log_of_it_is_none_of_its_lines() -> None:
    lines = [
        'INFO:     10.0.0.1:1234 - "POST /v1/chat/completions HTTP/1.1" 200 OK',
        "INFO 01-01 00:00:01 [core.py:77] Initializing a V1 LLM engine (v0.11.0) with config: model='x'",
        "[2025-01-01 00:00:00 TP0] Memory pool end. avail mem=4.02 GB",
        "llama_kv_cache: size = 512.00 MiB",
        "(EngineCore pid=1) INFO 01-01 00:00:01 [autotuner.py:256] [Autotuner]: Autotuning process starts",
    ]
    for line in lines:
        message = said(line)
        near = [p for p in FORMAT.lines if p.telling and any(anchor in line for anchor in p.anchors)]
        told = [p.name for p in near if p.pattern.search(message.text)]
        assert told == []


def test_its_engine_is_registered() -> None:
    assert engines.get("trtllm").log.format is FORMAT
