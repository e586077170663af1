"""Builds vLLM's real model class without memory, to read what it would hold. Runs in a simulation, inside the engine.

On torch's ``meta`` device a tensor has a shape and a type and no content, so that the bytes of weights and the geometry
of the KV cache are the engine's own. One rank is built; the process group that it belongs to answers nothing.
"""

from __future__ import annotations

import inspect
import os
from importlib.util import find_spec
from typing import Any

if find_spec("engdiff_pretend_kit"):
    import engdiff_pretend_kit as kit
    import engdiff_vllm_probe as probe
    from engdiff_probe_kit import attempt, tensors
else:
    from engdiff.engines import pretend_kit as kit
    from engdiff.engines.probe_kit import attempt, tensors
    from engdiff.engines.vllm import probe


def facts(config: Any) -> dict[str, Any]:
    """Bytes of the first rank's weights, the shapes of its KV cache, and the attention backends of its layers."""
    from vllm.config import set_current_vllm_config

    with set_current_vllm_config(config):
        join_groups(config.parallel_config)
        model = build(config)
        settle_block_size(config)
        layers = config.compilation_config.static_forward_context
        asked = cache_specs(config, layers)
        specs, block_size = one_page_size(asked, config.cache_config.block_size)
        return {
            "model_class": type(model).__name__,
            "weights": weights(model),
            "block_size": block_size,
            "groups": groups(specs),
            "backends": backends(layers),
            "pool": attempt(lambda: pool(config, asked)),
        }


# --- a process group that is not there --------------------------------------------------------------------------


def join_groups(parallel: Any) -> None:
    """This process as rank 0 of all the groups that the configuration asks for; no other rank exists."""
    import torch.distributed as dist
    from vllm.distributed import parallel_state

    ranks = parallel.world_size
    backend = "gloo" if ranks == 1 else "fake"
    if ranks == 1:
        dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{kit.free_port()}", rank=0, world_size=1)
    else:
        from torch.testing._internal.distributed.fake_pg import FakeStore

        dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=ranks)
        new_group = dist.new_group
        dist.new_group = lambda *a, **k: new_group(*a, **{**k, "backend": "fake"})
        kit.note(f"a process group of {ranks} ranks: one exists, and nothing is sent")
    kit.pretend_streams()
    without_communicators(parallel_state, backend)
    if hasattr(parallel_state, "in_the_same_node_as"):
        parallel_state.in_the_same_node_as = lambda *a, **k: [True] * ranks
        kit.note("all ranks are in one node")
    parallel_state.init_distributed_environment(
        world_size=ranks, rank=0, local_rank=0, distributed_init_method="env://", backend=backend
    )
    parallel_state.initialize_model_parallel(
        tensor_model_parallel_size=parallel.tensor_parallel_size,
        pipeline_model_parallel_size=parallel.pipeline_parallel_size,
    )


def without_communicators(parallel_state: Any, backend: str) -> None:
    """Groups without NCCL and shared memory: a rank that is alone has nobody to talk to."""
    group = parallel_state.GroupCoordinator
    original = group.__init__
    wanted = {
        "use_device_communicator": False,
        "use_message_queue_broadcaster": False,
        "torch_distributed_backend": backend,
    }
    signature = inspect.signature(original)

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        bound = signature.bind(self, *args, **kwargs)
        bound.arguments.update({name: value for name, value in wanted.items() if name in signature.parameters})
        original(*bound.args, **bound.kwargs)

    group.__init__ = init


# --- the model -------------------------------------------------------------------------------------------------


def build(config: Any) -> Any:
    """The model, with tensors that have no content."""
    import torch
    from vllm.model_executor.model_loader.utils import initialize_model

    wanted = {"vllm_config": config, "model_config": config.model_config}
    taken = {name: wanted[name] for name in inspect.signature(initialize_model).parameters if name in wanted}
    before = torch.get_default_dtype()
    torch.set_default_dtype(config.model_config.dtype)
    try:
        with torch.device("meta"), everywhere_meta():
            return initialize_model(**taken)
    finally:
        torch.set_default_dtype(before)


def everywhere_meta() -> Any:
    """Tensors that a layer asks for on the GPU by name have no content either."""
    from torch.overrides import TorchFunctionMode

    class OnMeta(TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            asked = dict(kwargs or {})
            wanted = asked.get("device")
            if isinstance(wanted, int) or str(wanted).startswith("cuda"):
                asked["device"] = "meta"
            return func(*args, **asked)

    return OnMeta()


def weights(model: Any) -> Any:
    """Bytes and count of the rank's parameters and buffers as they lie before loading, and their element types."""
    return tensors((*model.parameters(), *model.buffers()))


# --- the KV cache ----------------------------------------------------------------------------------------------


def settle_block_size(config: Any) -> None:
    """From 0.17 on the worker's platform settles the size of a block once the attention backends are known."""
    from vllm.platforms import current_platform

    if any("update_block_size_for_backend" in vars(cls) for cls in type(current_platform).__mro__):
        current_platform.update_block_size_for_backend(config)


def cache_specs(config: Any, layers: Any) -> dict[str, Any]:
    """What each layer asks of the KV cache, by layer."""
    asked = {name: layer.get_kv_cache_spec(config) for name, layer in layers.items() if has_spec(layer)}
    return {name: spec for name, spec in asked.items() if spec is not None}


def one_page_size(specs: dict[str, Any], block_size: int) -> tuple[dict[str, Any], int]:
    """Layers of several kinds with pages of one size, and the block size that follows, as the engine core makes them.

    ``unify_kv_cache_spec_page_size``, from 0.11 on; where it cannot, the engine pads.
    """
    unify = getattr(planning(), "unify_kv_cache_spec_page_size", None)
    if unify is None or len({spec.page_size_bytes for spec in specs.values()}) < 2:
        return specs, block_size
    try:
        unified = dict(unify(specs))
    except (NotImplementedError, AssertionError):
        return specs, block_size
    grown = {spec.block_size for name, spec in unified.items() if spec.block_size != specs[name].block_size}
    return unified, grown.pop() if len(grown) == 1 else block_size


def pool(config: Any, specs: dict[str, Any]) -> Any:
    """The pool that the engine core makes of a size that was set outright; without one only a device can tell.

    ``get_kv_cache_configs`` from 0.11 on, which 0.33 gives its groups of all ranks; before it ``get_kv_cache_config``.
    """
    size = getattr(config.cache_config, "kv_cache_memory_bytes", None)
    if size is None or not specs:
        return None
    settle_layout(config, specs)
    plan = planning()
    if hasattr(plan, "get_global_kv_cache_groups"):
        groups = plan.get_global_kv_cache_groups(config, [specs])
        made = plan.get_kv_cache_configs(config, [specs], [size], groups)[0]
    elif hasattr(plan, "get_kv_cache_configs"):
        made = plan.get_kv_cache_configs(config, [specs], [size])[0]
    else:
        made = plan.get_kv_cache_config(config, specs, size)
    return probe.pool(config, made)


def settle_layout(config: Any, specs: dict[str, Any]) -> None:
    """From 0.30 on the engine core settles the layout of the cache from what its workers' backends support.

    ``WorkerBase.get_supported_kv_cache_layouts`` in vllm/v1/worker/worker_base.py; ``EngineCore`` in
    vllm/v1/engine/core.py.
    """
    from vllm.v1.attention.backends import utils
    from vllm.v1.worker.worker_base import WorkerBase

    if hasattr(utils, "resolve_kv_cache_layout"):
        worker = object.__new__(WorkerBase)
        worker.vllm_config = config
        utils.resolve_kv_cache_layout(config, [worker.get_supported_kv_cache_layouts()], list(specs.values()))


def planning() -> Any:
    """Where vLLM divides memory into blocks: vllm/v1/core/kv_cache_utils.py up to 0.32, then kv_cache_planning.py."""
    try:
        from vllm.v1.core import kv_cache_planning
    except ImportError:
        from vllm.v1.core import kv_cache_utils

        return kv_cache_utils
    return kv_cache_planning


def has_spec(layer: Any) -> bool:
    """Whether the layer itself tells what it needs; up to 0.11 the model runner did."""
    return hasattr(layer, "get_kv_cache_spec")


def groups(specs: dict[str, Any]) -> list[dict[str, Any]]:
    """Layers of one kind, with the bytes of a block of one layer."""
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for spec in specs.values():
        window = getattr(spec, "sliding_window", None)
        key = (type(spec).__name__, spec.block_size, spec.page_size_bytes, window)
        group = found.setdefault(
            key,
            {
                "spec": type(spec).__name__,
                "layers": 0,
                "block_size": spec.block_size,
                "page_size_bytes": spec.page_size_bytes,
                "fields": {"sliding_window": window},
            },
        )
        group["layers"] += 1
    return list(found.values())


def backends(layers: Any) -> list[str]:
    """Names of the attention backends that the layers chose."""
    chosen = [getattr(layer, "attn_backend", None) for layer in layers.values()]
    return sorted({backend.get_name() for backend in chosen if backend is not None})


os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
os.environ.setdefault("MASTER_PORT", str(kit.free_port()))
