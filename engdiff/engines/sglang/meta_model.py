"""Builds SGLang's real model class without memory, to read what it would hold. Runs in a simulation, inside the engine.

On torch's ``meta`` device a tensor has a shape and a type and no content, so that the bytes of weights are the engine's
own, and so are the bytes of a token in the KV cache. One rank is built; its process group answers nothing.
"""

from __future__ import annotations

import dataclasses
import inspect
import os
from contextlib import contextmanager, suppress
from copy import copy
from importlib import import_module
from importlib.util import find_spec
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

if find_spec("engdiff_pretend_kit"):
    import engdiff_pretend_kit as kit
    import engdiff_sglang_probe as probe
    from engdiff_probe_kit import attempt, tensors
else:
    from engdiff.engines import pretend_kit as kit
    from engdiff.engines.probe_kit import attempt, tensors
    from engdiff.engines.sglang import probe

if TYPE_CHECKING:
    from collections.abc import Iterator


BINDINGS = ("cuda",)
"""What kernels import while a model is built. Before, Transformers must not find them: it would use them."""


def facts(server_args: Any, model_config: Any) -> dict[str, Any]:
    """Bytes of the first rank's weights, and of one token's keys and values in its layers, by kind of layer."""
    kit.StandInPackages(dict.fromkeys(BINDINGS, "0"))
    runner = bare_runner(server_args, model_config)
    publish(runner)
    nothing_is_sent(runner.tp_size * runner.pp_size)
    import_models(model_config)
    with everywhere_meta():
        join_groups(runner)
        settle_kernels(server_args, model_config)
        runner.model = build(model_config)
        return {
            "model_class": type(runner.model).__name__,
            "weights": weights(runner.model),
            **cache(runner),
        }


# --- a process group that is not there --------------------------------------------------------------------------


def nothing_is_sent(ranks: int) -> None:
    """Process groups of torch's fake back end, on which SGLang's own set-up is run: no other rank exists."""
    import torch.distributed as dist
    from sglang.srt.distributed import parallel_state
    from torch.testing._internal.distributed.fake_pg import FakeStore

    init_group, new_group = dist.init_process_group, dist.new_group

    def initialised(*args: Any, **kwargs: Any) -> None:
        init_group("fake", store=FakeStore(), rank=0, world_size=ranks)

    def grouped(ranks: Any = None, *args: Any, **kwargs: Any) -> Any:
        return new_group(ranks, backend="fake")

    dist.init_process_group, dist.new_group = initialised, grouped
    kit.note(f"a process group of {ranks} ranks: one exists, and nothing is sent")
    kit.pretend_streams()
    without_communicators(parallel_state.GroupCoordinator)


def without_communicators(group: Any) -> None:
    """Groups without NCCL and shared memory: a rank that is alone has nobody to talk to.

    Each kind is asked for by a parameter ``use_...`` (distributed/parallel_state.py 0.4.6-0.5.23).
    """
    original = group.__init__
    signature = inspect.signature(original)
    unwanted = {name: False for name in signature.parameters if name.startswith("use_")}

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        bound = signature.bind(self, *args, **kwargs)
        bound.arguments.update(unwanted)
        original(*bound.args, **bound.kwargs)

    group.__init__ = init


def join_groups(runner: Any) -> None:
    """This process as rank 0 of all groups, set up by SGLang itself.

    The scheduler does it from 0.5.21 on (distributed/bootstrap.py), the model runner before
    (``ModelRunner.init_torch_distributed``).
    """
    bootstrap = module("sglang.srt.distributed.bootstrap")
    start = getattr(bootstrap, "init_parallel_runtime", None)
    if start is None:
        measure_nothing()
        runner.init_torch_distributed()
        return
    start(server_args=runner.server_args, device="cuda", dist_port=runner.dist_port)
    bootstrap.init_layer_runtime(model_config=runner.model_config)
    runner.pp_group = import_module("sglang.srt.distributed.parallel_state").get_pp_group()


def module(name: str) -> Any:
    """A module of SGLang, or ``None`` where this release has none of that name."""
    package = name.rpartition(".")[0]
    return import_module(name) if find_spec(package) and find_spec(name) else None


# --- what a scheduler's process does before it loads a model ------------------------------------------------------


def publish(runner: Any) -> None:
    """The arguments where the layers look for them: a context of the process, a global object, a dictionary."""
    server_args = runner.server_args
    context = module("sglang.srt.runtime_context")
    if hasattr(context, "SpawnRanks"):
        context.publish(server_args, role="scheduler", ranks=context.SpawnRanks(world_rank=0, dp_rank=None, gpu_id=0))
        return
    import sglang.srt.server_args as arguments

    if hasattr(arguments, "set_global_server_args_for_scheduler"):
        arguments.set_global_server_args_for_scheduler(server_args)
    else:
        fill_dictionary(runner)


def fill_dictionary(runner: Any) -> None:
    """Up to 0.5.2 the model runner copies arguments by name (``ModelRunner.__init__``)."""
    from sglang.srt.managers import schedule_batch

    typed = module("sglang.srt.layers.moe.utils")
    known = schedule_batch.global_server_args_dict
    for name in getattr(schedule_batch, "GLOBAL_SERVER_ARGS_KEYS", tuple(known)):
        if hasattr(runner.server_args, name):
            value = getattr(runner.server_args, name)
            kind = getattr(typed, TYPED.get(name, ""), None)
            known[name] = kind(value) if kind else value
    known["use_mla_backend"] = runner.use_mla_backend
    known["speculative_algorithm"] = runner.spec_algorithm


TYPED = {"moe_a2a_backend": "MoeA2ABackend", "deepep_mode": "DeepEPMode"}
"""Of these the layers of 0.4.10 ask methods (managers/schedule_batch.py, layers/moe/utils.py)."""


def settle_kernels(server_args: Any, config: Any) -> None:
    """Back ends of experts and of matrix products, as the scheduler settles them before it loads the model.

    ``init_moe_gemm_config`` in managers/scheduler.py from 0.5.9 on, ``init_moe_config`` from 0.5.2 on.
    """
    from sglang.srt.managers.scheduler import Scheduler

    settle = getattr(Scheduler, "init_moe_gemm_config", None) or getattr(Scheduler, "init_moe_config", None)
    if settle:
        settle(SimpleNamespace(server_args=server_args, model_config=config))


def uses_mla(config: Any) -> bool:
    """Whether the cache holds one latent vector for keys and values."""
    from sglang.srt.configs.model_config import AttentionArch

    return bool(config.attention_arch == AttentionArch.MLA)


def bare_runner(server_args: Any, config: Any) -> Any:
    """A model runner that was never built: it holds what setting up groups and sizing the cache look at."""
    from sglang.srt.model_executor import model_runner
    from sglang.srt.speculative.spec_info import SpeculativeAlgorithm

    settled = probe.resolved(server_args)
    held = {
        "server_args": server_args,
        "model_config": config,
        "ps": placement(settled),
        "tp_size": settled["tp_size"],
        "tp_rank": 0,
        "pp_size": settled.get("pp_size") or 1,
        "pp_rank": 0,
        "dp_size": settled.get("dp_size") or 1,
        "attn_cp_size": settled.get("attn_cp_size") or 1,
        "dcp_size": settled.get("dcp_size") or 1,
        "moe_ep_size": settled.get("ep_size") or 1,
        "moe_dp_size": settled.get("moe_dp_size") or 1,
        "gpu_id": 0,
        "device": "cuda",
        "dist_port": kit.free_port(),
        "dtype": config.dtype,
        "page_size": settled.get("page_size") or 1,
        "mem_fraction_static": settled.get("mem_fraction_static"),
        "is_draft_worker": False,
        "draft_attention_backend": None,
        "draft_model_idx": None,
        "_linear_attn_registry_cache": getattr(model_runner, "_UNSET", None),
        "forward_stream": None,
        "req_to_token_pool": None,
        "token_to_kv_pool_allocator": None,
        "memory_pool_config": None,
        "handle_max_mamba_cache": lambda rest: rest,
        "use_mla_backend": uses_mla(config),
        "is_hybrid_swa": getattr(config, "is_hybrid_swa", False),
        "is_hybrid_swa_compress": getattr(config, "is_hybrid_swa_compress", False),
        "sliding_window_size": getattr(config, "sliding_window_size", None),
        "spec_algorithm": SpeculativeAlgorithm.from_string(settled.get("speculative_algorithm")),
    }
    runner = object.__new__(model_runner.ModelRunner)
    hold(runner, held)
    return runner


def hold(runner: Any, held: dict[str, Any]) -> None:
    """Give a bare runner its attributes; what this release computes from others stays computed."""
    cls = type(runner)
    runner.__dict__.update({k: v for k, v in held.items() if not isinstance(getattr(cls, k, None), property)})


def placement(settled: dict[str, Any]) -> Any:
    """Rank 0 in SGLang's own words: a class in 0.5.15-0.5.20 (distributed/parallel_state_wrapper.py), else ``None``."""
    wrapper = module("sglang.srt.distributed.parallel_state_wrapper")
    if wrapper is None:
        return None
    replicas = (settled.get("dp_size") or 1) if settled.get("enable_dp_attention") else 1
    context = settled.get("attn_cp_size") or 1
    sizes = {
        "tp_size": settled["tp_size"],
        "pp_size": settled.get("pp_size") or 1,
        "dp_size": settled.get("dp_size") or 1,
        "attn_tp_size": settled["tp_size"] // replicas // context,
        "attn_cp_size": context,
        "attn_dcp_size": settled.get("dcp_size") or 1,
        "attn_dp_size": replicas,
        "moe_ep_size": settled.get("ep_size") or 1,
        "moe_dp_size": settled.get("moe_dp_size") or 1,
    }
    return wrapper.ParallelState(
        **{one.name: sizes.get(one.name, 0) for one in dataclasses.fields(wrapper.ParallelState)}
    )


# --- the model -------------------------------------------------------------------------------------------------


def import_models(config: Any) -> None:
    """The modules of all models, with content in what they compute: one that fails is passed over by SGLang."""
    from sglang.srt.model_loader.utils import get_model_architecture

    get_model_architecture(config)


def build(config: Any) -> Any:
    """The model as the default loader makes it before it reads weights, with tensors that have no content."""
    import torch
    from sglang.srt.configs.load_config import LoadConfig
    from sglang.srt.model_loader import loader

    load = LoadConfig()
    before = torch.get_default_dtype()
    torch.set_default_dtype(config.dtype)
    try:
        with torch.device("meta"):
            return loader._initialize_model(config, load, *quantization(loader, config, load))
    finally:
        torch.set_default_dtype(before)


def quantization(loader: Any, config: Any, load: Any) -> tuple[Any, ...]:
    """The quantisation's configuration where the caller finds it (from 0.5.12 or before on), else nothing."""
    if "quant_config" not in inspect.signature(loader._initialize_model).parameters:
        return ()
    return (call_with(loader._get_quantization_config, {"model_config": config, "load_config": load}),)


def call_with(function: Any, known: dict[str, Any]) -> Any:
    """The function with those of its parameters that are known."""
    return function(**{k: v for k, v in known.items() if k in inspect.signature(function).parameters})


@contextmanager
def everywhere_meta() -> Iterator[None]:
    """Tensors that are asked for on the GPU by name have no content either."""
    import torch
    from torch.overrides import TorchFunctionMode

    def on_gpu(asked: Any) -> bool:
        return isinstance(asked, (str, torch.device)) and str(asked).startswith("cuda")

    class OnMeta(TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            asked = dict(kwargs or {})
            if isinstance(asked.get("device"), int) or on_gpu(asked.get("device")):
                asked["device"] = "meta"
            if func is torch.Tensor.cuda:
                return args[0].to("meta")
            if func is torch.Tensor.to:
                args = tuple("meta" if on_gpu(one) else one for one in args)
            return func(*args, **asked)

    with OnMeta():
        yield


def weights(model: Any) -> Any:
    """Bytes and count of the rank's parameters and buffers as they lie before loading, and their element types."""
    return tensors((*model.parameters(), *model.buffers()))


# --- a token in the KV cache --------------------------------------------------------------------------------------


def cache(runner: Any) -> dict[str, Any]:
    """What one token takes, or why this release cannot tell it here: the weights are known all the same."""
    found = attempt(lambda: token(runner))
    return {"token_bytes": found} if "unreadable" in found else found


def token(runner: Any) -> dict[str, Any]:
    """Bytes of one token's keys and values in all layers of a kind on this rank, and how many layers that are.

    Where layers of two kinds were counted as one, their kind is ``all``.
    """
    settle_layers(runner)
    settle_window(runner)
    sized = configurator(runner)
    if sized is not None:
        return by_kind(sized, runner)
    config = runner.model_config
    mixed = getattr(config, "is_hybrid", None) or getattr(config, "is_hybrid_swa", None)
    return of_kind("all" if mixed else "full", cell_size(runner), full_layers(runner))


def of_kind(kind: str, size: int, layers: int) -> dict[str, Any]:
    """One kind of layers."""
    return {"token_bytes": {kind: size}, "layers": {kind: layers}}


def full_layers(runner: Any) -> int:
    """Layers that hold keys and values where some hold a state instead, else all of this rank's."""
    holder = getattr(runner, "kv_cache_configurator", runner)
    mine = getattr(runner, "layer_info", runner)
    hybrid = getattr(holder, "mambaish_config", None)
    if getattr(runner, "is_hybrid_gdn", False):  # 0.5.2
        hybrid = runner.model_config.hf_config
    ids = getattr(hybrid, "full_attention_layer_ids", None)
    return mine.num_effective_layers if ids is None else sum(mine.start_layer <= i < mine.end_layer for i in ids)


def settle_layers(runner: Any) -> None:
    """Which layers are this rank's, as ``ModelRunner.initialize`` settles it once the model is there."""
    setup = module("sglang.srt.model_executor.model_runner_components.layer_setup")
    config, model = runner.model_config, runner.model
    if setup is not None:
        known = {
            "model": model,
            "model_config": config,
            "is_draft_worker": False,
            "draft_model_idx": None,
            "spec_algorithm": runner.spec_algorithm,
        }
        runner.layer_info = call_with(setup.resolve_layer_indices, known)
        return
    count = max(config.num_hidden_layers, getattr(config, "num_attention_layers", None) or 0)
    runner.start_layer = getattr(model, "start_layer", 0)
    runner.end_layer = getattr(model, "end_layer", count)
    runner.num_effective_layers = runner.end_layer - runner.start_layer


def settle_window(runner: Any) -> None:
    """The sliding window that the model itself tells (``ModelRunner.load_model``)."""
    tells = getattr(runner.model, "get_attention_sliding_window_size", None)
    if tells:
        runner.sliding_window_size = tells()


def configurator(runner: Any) -> Any:
    """What sizes the pools from 0.5.11 on (model_executor/pool_configurator.py); ``None`` before."""
    pools = module("sglang.srt.model_executor.pool_configurator")
    if pools is None:
        return None
    runner.configure_kv_cache_dtype()
    if not hasattr(runner, "init_kv_cache_configurator"):
        return pools.create_memory_pool_configurator(runner)
    runner.init_spec_aux_hidden_state()
    runner.init_kv_cache_configurator()
    return pools.create_memory_pool_configurator(runner.kv_cache_configurator)


def by_kind(sized: Any, runner: Any) -> dict[str, Any]:
    """What a configurator holds: one size, or one for each of the two kinds of layers; others are left out."""
    if hasattr(sized, "_swa_per_token"):
        layers = {"full": sized._full_layers_num, "sliding window": sized._swa_layers_num}
        sizes = {"full": sized._full_per_token, "sliding window": sized._swa_per_token}
        return {"token_bytes": {kind: sizes[kind] * count for kind, count in layers.items()}, "layers": layers}
    if type(sized).__name__ != "DefaultPoolConfigurator":
        return {"token_bytes": {}}
    return of_kind("full", sized._cell_size, full_layers(runner))


BUDGET_GIB = 2.0**40
"""So much memory that the tokens which it holds tell the bytes of one exactly."""


def measure_nothing() -> None:
    """What is free is not measured: the model runner finds the budget, in GiB as it counts."""
    for name in ("model_runner", "model_runner_kv_cache_mixin"):
        asking = module(f"sglang.srt.model_executor.{name}")
        if hasattr(asking, "get_available_gpu_memory"):
            asking.get_available_gpu_memory = lambda *a, **k: BUDGET_GIB


class Counted(Exception):
    """The tokens are counted, and nothing is to be allocated."""


def cell_size(runner: Any) -> int:
    """Up to 0.5.10 the size of a token is a local of ``profile_max_num_token``: it is asked how many fit.

    ``init_memory_pool`` settles the type of the cache before it asks (model_executor/model_runner.py 0.4.6-0.5.6).
    """
    if getattr(runner, "is_hybrid_gdn", False):  # 0.5.2 takes the states off first: none, so that all is for tokens
        runner.server_args = copy(runner.server_args)
        runner.server_args.max_mamba_cache_size = 0
    count = runner.profile_max_num_token
    found: list[int] = []

    def counting(total: Any) -> int:
        found.append(count(total))
        raise Counted

    runner.profile_max_num_token = counting
    if hasattr(runner, "configure_kv_cache_dtype"):
        runner.configure_kv_cache_dtype()
    with suppress(Counted):
        runner.init_memory_pool(0)
    return round(BUDGET_GIB * 2**30 / found[0])


os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
os.environ.setdefault("MASTER_PORT", str(kit.free_port()))
