"""Runs inside vLLM's own processes as a general plugin: reads what was resolved, changes nothing.

Standard library and vLLM only; this file and :mod:`engdiff.engines.probe_kit` are copied beside a ``.dist-info`` folder
and put on ``PYTHONPATH`` (:mod:`engdiff.engines.vllm.launch`). vLLM calls :func:`register` in every process
(vllm/plugins/__init__.py, ``load_general_plugins``). The front end writes ``arguments.json``; each engine core writes
``core-N.json`` when it enters its busy loop, that is, when the boot is over and before the first request.
"""

from __future__ import annotations

import functools
import multiprocessing
import os
import sys
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

if find_spec("engdiff_probe_kit"):
    from engdiff_probe_kit import (
        HIDDEN,
        OUT,
        PACKAGES,
        SECRET,
        attempt,
        explicit_of,
        flags_of,
        plain,
        tensors,
        without_secrets,
        write,
    )
else:
    from engdiff.engines.probe_kit import (
        HIDDEN,
        OUT,
        PACKAGES,
        SECRET,
        attempt,
        explicit_of,
        flags_of,
        plain,
        tensors,
        without_secrets,
        write,
    )

PACKAGES.add("vllm")


def register() -> None:
    """The entry point: called once in every vLLM process."""
    if not os.environ.get(OUT):
        return
    if is_front_end():
        write("arguments", arguments)
    module = sys.modules.get("vllm.v1.engine.core")
    for cls in vars(module).values() if module else ():
        if isinstance(cls, type) and "run_busy_loop" in vars(cls):
            setattr(cls, "run_busy_loop", after_boot(vars(cls)["run_busy_loop"]))  # noqa: B010


def is_front_end() -> Any:
    """Whether this process parses the command line; vLLM also starts a bare one that only inspects the model class."""
    return multiprocessing.parent_process() is None and len(sys.argv) > 1


def after_boot(run_busy_loop: Any) -> Any:
    """Wrap an engine core's loop so that the core is read once, before its first step."""

    @functools.wraps(run_busy_loop)
    def wrapped(core: Any, *args: Any, **kwargs: Any) -> Any:
        if not hasattr(core, "_engdiff_seen"):
            core._engdiff_seen = True
            write(f"core-{getattr(core, 'engine_index', 0) or 0}", lambda: engine_core(core))
        return run_busy_loop(core, *args, **kwargs)

    return wrapped


# --- the front end: what the user asked for, and the flags this version has -------------------------------------


def arguments() -> Any:
    """The parsed command line, which words were explicit, and every flag with its declared default."""
    parser = front_end_parser()
    words = sys.argv[1:]
    flags = flags_of(parser)
    return {"argv": without_secrets(words), "explicit": plain(explicit_of(parser, words)), "flags": flags}


def front_end_parser() -> Any:
    """VLLM's own parser; the module that builds it moved in 0.29 and in 0.33."""
    from vllm.utils.argparse_utils import FlexibleArgumentParser

    try:
        from vllm.entrypoints.common.cli_args import make_arg_parser
    except ImportError:
        try:
            from vllm.entrypoints.launchers.cli_args import make_arg_parser
        except ImportError:
            from vllm.entrypoints.openai.cli_args import make_arg_parser
    return make_arg_parser(FlexibleArgumentParser())


# --- the engine core: what was decided ------------------------------------------------------------------------


def engine_core(core: Any) -> Any:
    """Everything that is settled once the engine core has booted."""
    config = core.vllm_config
    scheduler = core.scheduler
    return {
        "config": attempt(lambda: config),
        "variables": variables(),
        "platform": attempt(lambda: type(sys.modules["vllm.platforms"].current_platform)),
        "platform_facts": attempt(platform_facts),
        "executor": attempt(lambda: type(core.model_executor)),
        "scheduler_class": attempt(lambda: type(scheduler)),
        "scheduling": {
            name: attempt(lambda name=name: getattr(scheduler, name)) for name in SCHEDULER if hasattr(scheduler, name)
        },
        "batch_queue_size": attempt(lambda: core.batch_queue_size),
        "kv": kv_cache(core),
        "runner": runner(config),
        "workers": attempt(lambda: core.model_executor.collective_rpc(worker)),
        "versions": attempt(versions),
    }


SCHEDULER = (
    "max_num_running_reqs",
    "max_num_scheduled_tokens",
    "num_lookahead_tokens",
    "num_spec_tokens",
    "policy",
    "scheduler_reserve_full_isl",
    "use_v2_model_runner",
    "use_eagle",
    "block_size",
)


def versions() -> Any:
    """What the engine says of itself and of the libraries it runs on."""
    import torch
    import vllm

    commit = getattr(sys.modules.get("vllm._version"), "__commit_id__", None)
    return {
        "vllm": vllm.__version__,
        "commit": commit,
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "hip": torch.version.hip,
        "python": sys.version.split()[0],
    }


def platform_facts() -> Any:
    """What the platform's own code answers on this machine."""
    platform = sys.modules["vllm.platforms"].current_platform
    return {
        "device_type": platform.device_type,
        "device_name": attempt(platform.get_device_name),
        "capability": attempt(platform.get_device_capability),
        "architecture": attempt(platform.get_cpu_architecture),
    }


def variables() -> Any:
    """Every environment variable that this version reads, as it resolves it."""
    import vllm.envs as envs

    read_all = {name: attempt(lambda read=read: read()) for name, read in envs.environment_variables.items()}
    return {name: HIDDEN if value and SECRET.search(name) else value for name, value in read_all.items()}


def kv_cache(core: Any) -> Any:
    """The pool and its groups, from the scheduler's own configuration, and the sizes that follow from it."""
    made = getattr(core.scheduler, "kv_cache_config", None)
    found = {} if made is None else pool(core.vllm_config, made)
    found["available_bytes"] = attempt(lambda: core.available_gpu_memory_for_kv_cache)
    cache = core.vllm_config.cache_config
    if hasattr(cache, "resolved_gpu_memory_utilization"):
        found["utilisation"] = attempt(lambda: cache.resolved_gpu_memory_utilization)
    return found


def pool(config: Any, made: Any) -> dict[str, Any]:
    """Blocks, bytes and groups of a ``KVCacheConfig``."""
    return {
        "num_blocks": attempt(lambda: made.num_blocks),
        "tensor_bytes": attempt(lambda: tensor_bytes(made.kv_cache_tensors)),
        "groups": [attempt(lambda group=group: kv_group(group)) for group in made.kv_cache_groups],
        "max_concurrency": attempt(lambda: max_concurrency(config, made)),
    }


def tensor_bytes(tensors: Any) -> Any:
    """Bytes of the pool on its device. Tensors with a block stride are places in one allocation; each has its size."""
    held = [tensor for tensor in tensors if not getattr(tensor, "host_resident", False)]
    shared = {tensor.size for tensor in held if getattr(tensor, "block_stride", 0)}
    return sum(shared) + sum(tensor.size for tensor in held if not getattr(tensor, "block_stride", 0))


def max_concurrency(config: Any, pool: Any) -> Any:
    """VLLM's own figure (vllm/v1/core/kv_cache_utils.py)."""
    from vllm.v1.core.kv_cache_utils import get_max_concurrency_for_kv_cache_config

    return get_max_concurrency_for_kv_cache_config(config, pool)


def kv_group(group: Any) -> Any:
    """One group of layers that share a block table."""
    spec = group.kv_cache_spec
    return {
        "spec": type(spec).__name__,
        "layers": len(group.layer_names),
        "block_size": spec.block_size,
        "page_size_bytes": spec.page_size_bytes,
        "fields": attempt(lambda: spec),
    }


def runner(config: Any) -> Any:
    """Which model runner, and what the engine's own check says against the newer one."""
    found: dict[str, Any] = {}
    questions: dict[str, Callable[[], Any]] = {
        "use_v2": lambda: config.use_v2_model_runner,
        "unsupported": lambda: config._get_v2_model_runner_unsupported_features(),
        "triton": lambda: __import__("vllm.triton_utils", fromlist=["HAS_TRITON"]).HAS_TRITON,
    }
    for name, read in questions.items():
        try:
            found[name] = plain(read())
        except AttributeError:
            continue  # this version has no such question
        except Exception as error:
            found[name] = {"unreadable": f"{type(error).__name__}: {error}"}
    return found


# --- a worker: what it really did; sent by vLLM's own collective_rpc --------------------------------------------

WORKER = (
    "requested_memory",
    "requested_cpu_memory",
    "available_kv_cache_memory_bytes",
    "peak_activation_memory",
    "non_torch_memory",
    "total_consumed",
    "cudagraph_memory_estimate",
    "local_omp_cpuid",
    "rank",
    "local_rank",
)
RUNNER = ("model_memory_usage", "use_aux_hidden_state_outputs", "max_num_tokens", "max_num_reqs")
PARALLEL = ("rank", "data_parallel_rank")


def worker(self: Any) -> Any:
    """Facts of one worker: memory it counted, parameters it holds, the attention backend it settled on."""
    inner = getattr(self, "worker", self)
    model_runner = inner.model_runner
    return {
        "class": plain(type(inner)),
        "runner_class": plain(type(model_runner)),
        "device": str(getattr(inner, "device", None)),
        "memory": {name: attempt(lambda name=name: getattr(inner, name)) for name in WORKER if hasattr(inner, name)},
        "snapshot": attempt(lambda: getattr(inner, "init_snapshot", None)),
        "runner": {
            name: attempt(lambda name=name: getattr(model_runner, name))
            for name in RUNNER
            if hasattr(model_runner, name)
        },
        "weights": attempt(lambda: weights(model_runner)),
        "attention": attempt(lambda: attention(model_runner)),
        "captured": attempt(captured),
        "threads": attempt(lambda: __import__("torch").get_num_threads()),
        "node_memory": attempt(node_memory),
        "parallel": attempt(lambda: {name: getattr(inner.parallel_config, name) for name in PARALLEL}),
        "pid": os.getpid(),
    }


def node_memory() -> Any:
    """Memory of the NUMA node as vLLM's CPU worker measures it (total, available), in bytes; newer versions only."""
    module = sys.modules.get("vllm.v1.worker.cpu_worker")
    if module is None or not hasattr(module, "get_memory_node_info"):
        return None
    return module.get_memory_node_info(module.get_allowed_cpu_list()[0].numa_node)


def weights(model_runner: Any) -> Any:
    """Bytes and count of the parameters that this worker holds, and their element types."""
    model = model_runner.get_model() if hasattr(model_runner, "get_model") else model_runner.model
    return tensors(model.parameters())


def attention(model_runner: Any) -> Any:
    """Attention backends in use, as the worker's groups name them."""
    names: set[str] = set()
    for groups in getattr(model_runner, "attn_groups", ()) or ():
        names.update(group.backend.get_name() for group in groups)
    return sorted(names)


def captured() -> Any:
    """How many graphs the worker holds, from whichever counter this version keeps."""
    counter = sys.modules.get("vllm.compilation.counter")
    return getattr(counter.compilation_counter, "num_cudagraph_captured", None) if counter else None
