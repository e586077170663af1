"""Runs inside vLLM's own processes as a general plugin: reads what was resolved, changes nothing.

Standard library and vLLM only; this file is copied beside a ``.dist-info`` folder and put on ``PYTHONPATH``
(:mod:`engdiff.engines.vllm.launch`). vLLM calls :func:`register` in every process (vllm/plugins/__init__.py,
``load_general_plugins``). The front end writes ``arguments.json``; each engine core writes ``core-N.json``
when it enters its busy loop, that is, when the boot is over and before the first request.
A value that cannot be read is written as ``{"unreadable": why}``; no exception ever leaves this file.
"""

from __future__ import annotations

import argparse
import dataclasses
import enum
import functools
import json
import multiprocessing
import os
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

OUT = "ENGDIFF_PROBE_OUT"
DEEPEST = 12


def register() -> None:
    """The entry point: called once in every vLLM process."""
    if not os.environ.get(OUT):
        return
    if is_front_end():
        write("arguments", arguments)
    core = sys.modules.get("vllm.v1.engine.core")
    for cls in vars(core).values() if core else ():
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


def write(name: Any, read: Any) -> None:
    """Run ``read`` and write its result as ``name.json``, atomically."""
    started = time.time()
    try:
        data = read()
    except Exception as error:
        data = {"unreadable": f"{type(error).__name__}: {error}"}
    data.update(pid=os.getpid(), at=started, seconds=time.time() - started)
    target = Path(os.environ[OUT]) / f"{name}.json"
    try:
        partial = target.with_suffix(f".{os.getpid()}.partial")
        partial.write_text(json.dumps(data), encoding="utf-8")
        partial.replace(target)
    except OSError as error:
        sys.stderr.write(f"engdiff probe: {target}: {error}\n")


def attempt(read: Any) -> Any:
    """The result of ``read()`` as plain data, or why it cannot be read."""
    try:
        return plain(read())
    except Exception as error:
        return {"unreadable": f"{type(error).__name__}: {error}"}


# --- the front end: what the user asked for, and the flags this version has -------------------------------------


def arguments() -> Any:
    """The parsed command line, which words were explicit, and every flag with its declared default."""
    parser = front_end_parser()
    actions = [a for a in parser._actions if a.dest != argparse.SUPPRESS]
    flags = [
        {
            "dest": a.dest,
            "names": list(a.option_strings),
            "default": attempt(lambda a=a: a.default),
            "choices": attempt(lambda a=a: sorted(map(str, a.choices)) if a.choices else None),
            "takes": takes(a),
        }
        for a in actions
    ]
    for action in parser._actions:
        action.default = argparse.SUPPRESS
    parser._defaults.clear()
    explicit = vars(parser.parse_args(sys.argv[1:]))
    return {"argv": without_secrets(sys.argv[1:]), "explicit": plain(explicit), "flags": flags}


SECRET = re.compile(
    r"(^|[-_])(api[-_]?keys?|token|secret|password|credentials?|(access|private)[-_]key)$", re.IGNORECASE
)
HIDDEN = "[redacted]"


def without_secrets(words: Any) -> Any:
    """The command line without the values of secret flags: what is written here may stay in somebody's pod."""
    out: list[str] = []
    hide = False
    for word in words:
        name, equals, _ = word.partition("=")
        if hide and not word.startswith("-"):
            out.append(HIDDEN)
            continue
        secret = bool(word.startswith("-") and SECRET.search(name.strip("-")))
        hide = secret and not equals
        out.append(f"{name}={HIDDEN}" if secret and equals else word)
    return out


def takes(action: Any) -> Any:
    """How a flag is written: ``switch`` (--x / --no-x), ``flag`` (--x alone), ``list`` or ``value``."""
    if isinstance(action, argparse.BooleanOptionalAction) or any(n.startswith("--no-") for n in action.option_strings):
        return "switch"
    if action.nargs == 0:
        return "flag"
    return "list" if action.nargs in ("+", "*") else "value"


def front_end_parser() -> Any:
    """VLLM's own parser; the module that builds it moved in 0.3x."""
    from vllm.utils.argparse_utils import FlexibleArgumentParser

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
    "watermark_blocks",
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
    found = {}
    config = getattr(core.scheduler, "kv_cache_config", None)
    if config is not None:
        found["num_blocks"] = attempt(lambda: config.num_blocks)
        found["tensor_bytes"] = attempt(lambda: sum(t.size for t in config.kv_cache_tensors))
        found["groups"] = [attempt(lambda group=group: kv_group(group)) for group in config.kv_cache_groups]
        found["max_concurrency"] = attempt(lambda: max_concurrency(core.vllm_config, config))
    found["available_bytes"] = attempt(lambda: core.available_gpu_memory_for_kv_cache)
    return found


def max_concurrency(vllm_config: Any, kv_cache_config: Any) -> Any:
    """VLLM's own figure (vllm/v1/core/kv_cache_utils.py)."""
    from vllm.v1.core.kv_cache_utils import get_max_concurrency_for_kv_cache_config

    return get_max_concurrency_for_kv_cache_config(vllm_config, kv_cache_config)


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
        "parallel": attempt(lambda: {n: getattr(inner.parallel_config, n) for n in ("rank", "data_parallel_rank")}),
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
    seen = {p.data_ptr() or id(p): p for p in model.parameters()}
    by_type: dict[str, int] = {}
    for parameter in seen.values():
        kind = str(parameter.dtype).removeprefix("torch.")
        by_type[kind] = by_type.get(kind, 0) + parameter.numel() * parameter.element_size()
    return {"bytes": sum(by_type.values()), "count": sum(p.numel() for p in seen.values()), "by_type": by_type}


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


# --- any object as plain data ----------------------------------------------------------------------------------


def plain(value: Any, depth: int = 0) -> Any:
    """JSON data for any configuration object, generically: fields differ from version to version."""
    if isinstance(value, enum.Enum):
        return value.name
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else str(value)
    if depth > DEEPEST:
        return f"<{type(value).__name__}>"
    if isinstance(value, type) or callable(value):
        return qualified(value)
    if isinstance(value, Path):
        return str(value)
    return plain_container(value, depth)


def plain_container(value: Any, depth: Any) -> Any:
    """Mappings, sequences and objects with fields; the rest by name, never by address."""
    if isinstance(value, dict):
        return {name: hidden(name, v, depth) for name, v in ((key_of(k), v) for k, v in value.items())}
    if isinstance(value, list | tuple):
        return [plain(v, depth + 1) for v in value]
    if isinstance(value, set | frozenset):
        return sorted((plain(v, depth + 1) for v in value), key=str)
    fields = fields_of(value)
    if fields is not None:
        return {name: hidden(name, v, depth) for name, v in fields.items()}
    text = str(value)
    return f"<{type(value).__name__}>" if " at 0x" in text else text


def key_of(key: Any) -> str:
    """A mapping's key as JSON has it."""
    return str(key.name if isinstance(key, enum.Enum) else key)


def hidden(name: Any, value: Any, depth: Any) -> Any:
    """The value as plain data, or that it is a secret: by the name that it goes under."""
    holds_text = isinstance(value, str | bytes) or (isinstance(value, list) and value)
    return (
        HIDDEN if holds_text and SECRET.search(str(name)) and not TOKENS.search(str(name)) else plain(value, depth + 1)
    )


TOKENS = re.compile(r"(bos|eos|pad|unk|cls|sep|mask|image|video|audio|stop|start|end|special)_token$", re.IGNORECASE)


def fields_of(value: Any) -> Any:
    """The fields of a configuration object; ``None`` when it is not one."""
    if hasattr(value, "to_dict") and type(value).__module__.startswith("transformers"):
        return value.to_dict()
    if dataclasses.is_dataclass(value):
        return {f.name: getattr(value, f.name, None) for f in dataclasses.fields(value)}
    if hasattr(type(value), "model_fields"):
        return {name: getattr(value, name, None) for name in type(value).model_fields}
    if type(value).__module__.startswith("vllm") and hasattr(value, "__dict__"):
        return {k: v for k, v in vars(value).items() if not k.startswith("__")}
    return None


def qualified(value: Any) -> Any:
    """``module.name`` of a class or function."""
    name = getattr(value, "__qualname__", None)
    return f"{getattr(value, '__module__', '?')}.{name}" if name else f"<{type(value).__name__}>"
