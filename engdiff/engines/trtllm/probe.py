"""Runs inside TensorRT-LLM's own processes: reads what was resolved and what the worker holds, and changes nothing.

Standard library and TensorRT-LLM only; :mod:`engdiff.engines.site_hook` brings it into every process. The process that
makes the ``LLM`` writes ``trtllm-arguments.json`` before it is built and ``trtllm-llm.json`` afterwards; each worker
writes ``trtllm-worker-N.json`` when its executor starts: first for the profiling pass, then, over it, for serving.

Never run on a live engine by this project: :data:`ATTRIBUTES` is read from public sources.
"""

from __future__ import annotations

import functools
import inspect
import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

if find_spec("engdiff_probe_kit"):
    from engdiff_probe_kit import OUT, AfterImport, attempt, plain, without_secrets, write
else:
    from engdiff.engines.probe_kit import OUT, AfterImport, attempt, plain, without_secrets, write

EXECUTOR = "tensorrt_llm/_torch/pyexecutor/py_executor.py"
ENGINE = "tensorrt_llm/_torch/pyexecutor/model_engine.py"
SCHEDULER = "tensorrt_llm/_torch/pyexecutor/scheduler/scheduler.py"
SCHEDULER_V2 = "tensorrt_llm/_torch/pyexecutor/scheduler/scheduler_v2.py"
CACHE = "tensorrt_llm/_torch/pyexecutor/resource_manager.py"
CACHE_V2 = "tensorrt_llm/_torch/pyexecutor/kv_cache_manager_v2.py"
API = "tensorrt_llm/llmapi/llm.py"

ATTRIBUTES: tuple[tuple[str, str, str, str | None, str | None, str], ...] = (
    ("LLM", "args", "args", "0.17.0", None, API),
    ("LLM", "class", "__class__", "0.17.0", None, API),
    ("LLM", "executor", "_executor.__class__", "0.17.0", None, API),
    ("PyExecutor", "rank", "global_rank", "1.0.0", None, EXECUTOR),
    ("PyExecutor", "rank", "dist.rank", "0.18.0", None, EXECUTOR),
    ("PyExecutor", "tp_rank", "dist.mapping.tp_rank", "0.18.0", None, "tensorrt_llm/mapping.py"),
    ("PyExecutor", "pp_rank", "dist.mapping.pp_rank", "0.18.0", None, "tensorrt_llm/mapping.py"),
    ("PyExecutor", "device", "device_id", "1.0.0", None, EXECUTOR),
    ("PyExecutor", "is_warmup", "is_warmup", "0.18.0", None, EXECUTOR),
    ("PyExecutor", "scheduler", "scheduler.__class__", "0.17.0", None, EXECUTOR),
    ("PyExecutor", "capacity_scheduler", "scheduler.capacity_scheduler.__class__", "0.17.0", None, SCHEDULER),
    ("PyExecutor", "policy", "scheduler.policy", "1.3.0", None, SCHEDULER_V2),
    ("PyExecutor", "policy", "scheduler.scheduler_policy", "1.3.0", None, SCHEDULER),
    ("PyExecutor", "policy", "scheduler.capacity_scheduler.policy", "1.2.0", None, SCHEDULER),
    ("PyExecutor", "chunking", "scheduler.chunking_enabled", "1.3.0", None, SCHEDULER_V2),
    ("PyExecutor", "chunking", "model_engine.attn_runtime_features.chunked_prefill", "0.18.0", None, ENGINE),
    ("PyExecutor", "chunking_policy", "scheduler.chunking_policy", "1.3.0", None, SCHEDULER_V2),
    ("PyExecutor", "chunk_size", "model_engine.attn_runtime_features.chunk_size", "1.0.0", None, ENGINE),
    ("PyExecutor", "max_active_requests", "max_num_active_requests", "0.17.0", None, EXECUTOR),
    ("PyExecutor", "max_batch_size", "max_batch_size", "1.2.0", None, EXECUTOR),
    ("PyExecutor", "max_batch_size", "model_engine.batch_size", "0.17.0", None, ENGINE),
    ("PyExecutor", "max_num_tokens", "max_num_tokens", "1.2.0", None, EXECUTOR),
    ("PyExecutor", "max_num_tokens", "model_engine.max_num_tokens", "0.17.0", None, ENGINE),
    ("PyExecutor", "max_seq_len", "max_seq_len", "1.1.0", None, EXECUTOR),
    ("PyExecutor", "max_seq_len", "kv_cache_manager.max_seq_len", "0.17.0", None, CACHE),
    ("PyExecutor", "event_loop", "event_loop.__name__", "0.17.0", None, EXECUTOR),
    ("PyExecutor", "disable_overlap", "disable_overlap_scheduler", "0.20.0", None, EXECUTOR),
    ("PyExecutor", "enable_overlap", "enable_overlap_scheduler", "0.17.0", "0.19.0", EXECUTOR),
    ("PyExecutor", "waiting_queue", "waiting_queue.__class__", "1.3.0", None, EXECUTOR),
    ("PyExecutor", "sampler", "sampler.__class__", "0.20.0", None, EXECUTOR),
    ("PyExecutor", "sampler", "decoder.__class__", "0.17.0", "0.19.0", EXECUTOR),
    ("PyExecutor", "drafter", "drafter.__class__", "1.0.0", None, EXECUTOR),
    ("PyExecutor", "guided_decoder", "guided_decoder.__class__", "1.0.0", None, EXECUTOR),
    ("PyExecutor", "kv_manager", "kv_cache_manager.__class__", "0.17.0", None, EXECUTOR),
    ("PyExecutor", "kv_manager_v2", "_is_kv_manager_v2", "1.3.0", None, EXECUTOR),
    ("PyExecutor", "kv_blocks", "kv_cache_manager.blocks_in_primary_pool", "0.20.0", None, CACHE),
    ("PyExecutor", "kv_host_blocks", "kv_cache_manager.blocks_in_secondary_pool", "0.20.0", None, CACHE),
    ("PyExecutor", "kv_block_tokens", "kv_cache_manager.tokens_per_block", "0.17.0", None, CACHE),
    ("PyExecutor", "kv_max_seq_len", "kv_cache_manager.max_seq_len", "0.17.0", None, CACHE),
    ("PyExecutor", "kv_dtype", "kv_cache_manager.dtype", "0.18.0", None, CACHE),
    ("PyExecutor", "kv_layers", "kv_cache_manager.num_local_layers", "0.20.0", None, CACHE),
    ("PyExecutor", "kv_windows", "kv_cache_manager.max_attention_window_vec", "1.0.0", None, CACHE),
    ("PyExecutor", "block_reuse", "kv_cache_manager.enable_block_reuse", "0.20.0", None, CACHE),
    ("PyExecutor", "partial_reuse", "kv_cache_manager.enable_partial_reuse", "1.2.0", None, CACHE),
    ("PyExecutor", "block_reuse_policy", "kv_cache_manager.block_reuse_policy", "1.3.0", None, CACHE_V2),
    ("PyExecutor", "graph_sizes", "model_engine._cuda_graph_batch_sizes", "0.17.0", None, ENGINE),
    ("PyExecutor", "graph_padding", "model_engine._cuda_graph_padding_enabled", "0.17.0", None, ENGINE),
    ("PyExecutor", "graphs_on", "model_engine._run_cuda_graphs", "0.17.0", "1.0.0", ENGINE),
    ("PyExecutor", "prefill_graphs", "model_engine.prefill_cuda_graph_backend", "1.3.0", None, ENGINE),
    ("PyExecutor", "attention", "model_engine.attn_backend", "0.17.0", None, ENGINE),
    ("PyExecutor", "worker_args", "llm_args", "1.2.0", None, EXECUTOR),
)
"""Root, name, dotted path, first and last release, and the file that it was read in.

Never run: no wheel can be had here, so each row was read in public sources of the repository (blobs of 1.0, 1.2 and
main), and its first release is that of the oldest blob that has it. Of several rows of one name the first that leads to
something counts.
"""

CALLS: tuple[tuple[str, str, str, str | None, str | None, str], ...] = (
    ("PyExecutor", "kv_capacity", "get_kv_cache_capacity", "1.3.0", None, EXECUTOR),
)
"""The same for methods that take no argument and only read."""

YAML_FLAGS = ("--config", "--extra_llm_api_options")
LARGEST_YAML_BYTES = 1_000_000


def install() -> None:
    """Called once in every process, before TensorRT-LLM is imported."""
    if os.environ.get(OUT):
        AfterImport(
            {
                "tensorrt_llm.llmapi.llm": watch_llm,
                "tensorrt_llm._torch.pyexecutor.py_executor": watch_executor,
                "tensorrt_llm._torch.pyexecutor.scheduler": watch_scheduler,
                "tensorrt_llm._torch.pyexecutor.scheduler.scheduler": watch_scheduler,
            }
        )


def read(root: str, thing: Any) -> dict[str, Any]:
    """Everything that :data:`ATTRIBUTES` and :data:`CALLS` name of an object of this kind."""
    found: dict[str, Any] = {}
    for owner, name, path, *_ in ATTRIBUTES:
        if owner == root and name not in found:
            value = reach(thing, path)
            if value is not None:
                found[name] = attempt(lambda value=value: value)
    for owner, name, path, *_ in CALLS:
        method = reach(thing, path) if owner == root else None
        if method is not None:
            found[name] = attempt(method)
    return found


def reach(thing: Any, path: str) -> Any:
    """The value at a dotted path; ``None`` when it leads to nothing in this version."""
    for name in path.split("."):
        if thing is None:  # it has a class as well, which says nothing
            return None
        thing = getattr(thing, name, None)
    return thing


# --- the process that makes the LLM: what was asked for, and what became of it ------------------------------------


def watch_llm(module: Any) -> None:
    """Read around the constructor of the class that all others derive from; up to 0.21 that was ``LLM`` itself."""
    cls = getattr(module, "BaseLLM", None) or module.LLM
    cls.__init__ = around_construction(cls.__init__)


def around_construction(real: Any) -> Any:
    """The constructor, with a reading before and after it."""

    @functools.wraps(real)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        write("trtllm-arguments", lambda: arguments(args, kwargs))
        real(self, *args, **kwargs)
        write("trtllm-llm", lambda: llm(self))

    return init


def arguments(args: Any, kwargs: Any) -> dict[str, Any]:
    """The command line, its flags and the YAML files it names; of a script of the user's own, the call."""
    command = serving()
    return {
        "front": "trtllm-serve" if command is not None else "LLM()",
        "argv": without_secrets(sys.argv[1:]),
        "model": attempt(lambda: args[0] if args else kwargs.get("model")),
        "keywords": attempt(lambda: {name: given(value) for name, value in kwargs.items()}),
        "flags": attempt(lambda: flags(command)) if command is not None else [],
        "yaml": [yaml_file(path, flag) for flag, path in yaml_paths(sys.argv[1:])] if command is not None else [],
        "variables": attempt(variables),
        "versions": versions(),
    }


def given(value: Any) -> Any:
    """A keyword as it was written: of a configuration object, only the fields that were set."""
    fields = getattr(value, "model_fields_set", None)
    return {name: given(getattr(value, name, None)) for name in fields} if isinstance(fields, set) else value


def serving() -> Any:
    """The click command that serves, if this process runs it: by its script, or with ``python -m``."""
    for name in ("tensorrt_llm.commands.serve", "__main__"):
        command = getattr(sys.modules.get(name), "serve", None)
        if hasattr(command, "params"):
            return command
    return None


def flags(command: Any) -> list[dict[str, Any]]:
    """Every option with its names and its declared default."""
    return [
        {
            "dest": getattr(option, "name", None),
            "names": list(getattr(option, "opts", ())),
            "default": attempt(lambda option=option: getattr(option, "default", None)),
            "takes": "flag" if getattr(option, "is_flag", False) else "value",
        }
        for option in getattr(command, "params", ())
        if any(str(name).startswith("-") for name in getattr(option, "opts", ()))
    ]


def yaml_paths(words: Any) -> list[tuple[str, str]]:
    """Flags that name a YAML file, with the path."""
    found = []
    for at, word in enumerate(words):
        name, equals, value = str(word).partition("=")
        if name in YAML_FLAGS and (equals or at + 1 < len(words)):
            found.append((name, value if equals else str(words[at + 1])))
    return found


def yaml_file(path: str, flag: str) -> dict[str, Any]:
    """One YAML file, parsed by the library that the engine parses it with."""
    found: dict[str, Any] = {"path": path, "flag": flag}
    try:
        import yaml

        with Path(path).open(encoding="utf-8") as stream:
            found["tree"] = plain(yaml.safe_load(stream.read(LARGEST_YAML_BYTES)))
    except Exception as error:
        found["unreadable"] = f"{type(error).__name__}: {error}"
    return found


def variables() -> dict[str, str]:
    """Variables by which the engine is steered."""
    return {name: value for name, value in os.environ.items() if name.startswith(("TLLM_", "TRTLLM_", "TRT_LLM_"))}


def versions() -> dict[str, Any]:
    """What the engine and the libraries under it say of themselves; what is not imported is left out."""
    found = {"python": sys.version.split()[0]}
    for name in ("tensorrt_llm", "torch", "transformers", "flashinfer"):
        version = getattr(sys.modules.get(name), "__version__", None)
        if version is not None:
            found[name] = str(version)
    return found


def llm(thing: Any) -> dict[str, Any]:
    """The arguments as they were resolved, those that were given, and the defaults of all."""
    given = getattr(thing, "args", None)
    return {
        **read("LLM", thing),
        "set": attempt(lambda: sorted(getattr(given, "model_fields_set", ()))),
        "defaults": attempt(lambda: defaults(type(given))),
        "versions": versions(),
    }


def defaults(cls: Any) -> dict[str, Any]:
    """The declared default of every field; a required one has none."""
    found = {}
    for name, field in getattr(cls, "model_fields", {}).items():
        if not field.is_required():
            found[name] = attempt(lambda field=field: field.get_default(call_default_factory=True))
    return found


# --- a worker: what it really does --------------------------------------------------------------------------------

POLICIES: dict[int, Any] = {}
"""The policy that each capacity scheduler was made with, by its identity: C++ ones do not tell it afterwards."""


def watch_scheduler(module: Any) -> None:
    """Remember the policy that the capacity scheduler in C++ is made with (0.17 to newest)."""
    cls = getattr(module, "BindCapacityScheduler", None)
    if cls is not None and not hasattr(cls.__init__, "__wrapped__"):
        cls.__init__ = remembering_policy(cls.__init__)


def remembering_policy(real: Any) -> Any:
    """The constructor, with a note of its policy."""

    @functools.wraps(real)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        real(self, *args, **kwargs)
        try:
            bound = inspect.signature(real).bind(self, *args, **kwargs)
            bound.apply_defaults()
            POLICIES[id(self)] = plain(bound.arguments.get("scheduler_policy"))
        except Exception as error:
            sys.stderr.write(f"engdiff probe: {type(error).__name__}: {error}\n")

    return init


def watch_executor(module: Any) -> None:
    """Read an executor when its loop is started: everything is built, and no request was seen."""
    module.PyExecutor.start_worker = before_start(module.PyExecutor.start_worker)


def before_start(real: Any) -> Any:
    """The start of the loop, with a reading before it."""

    @functools.wraps(real)
    def start_worker(self: Any, *args: Any, **kwargs: Any) -> Any:
        rank = reach(self, "global_rank")
        rank = reach(self, "dist.rank") if rank is None else rank
        write(f"trtllm-worker-{rank if isinstance(rank, int) else 0}", lambda: worker(self))
        return real(self, *args, **kwargs)

    return start_worker


def worker(executor: Any) -> dict[str, Any]:
    """What this rank decided."""
    found = read("PyExecutor", executor)
    policy = POLICIES.get(id(reach(executor, "scheduler.capacity_scheduler")))
    if policy is not None:
        found.setdefault("policy", policy)
    return {**found, "gpu": attempt(gpu), "versions": versions()}


def gpu() -> dict[str, Any] | None:
    """The device of this rank as torch sees it; bytes."""
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    if cuda is None or not cuda.is_initialized():
        return None
    index = cuda.current_device()
    facts = cuda.get_device_properties(index)
    return {
        "index": index,
        "name": facts.name,
        "bytes": facts.total_memory,
        "capability": f"{facts.major}.{facts.minor}",
        "torch_bytes": cuda.memory_allocated(index),
    }
