"""Runs inside SGLang's own processes: reads what was resolved and what the scheduler holds, and changes nothing.

Standard library and SGLang only; :mod:`engdiff.engines.site_hook` brings it into every process. The front end writes
``arguments.json`` once its arguments are resolved; each scheduler writes ``scheduler-dpN-ppN-tpN.json`` when it was
built, that is, when the pool is allocated and graphs are captured, and before the first request.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import multiprocessing
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

if find_spec("engdiff_probe_kit"):
    from engdiff_probe_kit import (
        HIDDEN,
        OUT,
        AfterImport,
        attempt,
        class_of,
        explicit_of,
        first,
        flags_of,
        hidden,
        plain,
        tensors,
        without_secrets,
        write,
    )
else:
    from engdiff.engines.probe_kit import (
        HIDDEN,
        OUT,
        AfterImport,
        attempt,
        class_of,
        explicit_of,
        first,
        flags_of,
        hidden,
        plain,
        tensors,
        without_secrets,
        write,
    )

SUPPORT = "engdiff_sglang_support"


def install() -> None:
    """Called once in every process, before SGLang is imported."""
    if find_spec(SUPPORT):
        __import__(SUPPORT).install()
    if os.environ.get(OUT):
        AfterImport(
            {
                "sglang.srt.server_args": watch_arguments,
                "sglang.srt.managers.scheduler": watch_scheduler,
            }
        )


# --- the front end: what the user asked for, and what became of it ----------------------------------------------


@dataclasses.dataclass
class Seen:
    """What this process has seen of the arguments so far."""

    argv: list[str] = dataclasses.field(default_factory=list)
    parsers: list[argparse.ArgumentParser] = dataclasses.field(default_factory=list)
    rules: list[tuple[str, str]] = dataclasses.field(default_factory=list)


SEEN = Seen()


def watch_arguments(module: Any) -> None:
    """Follow the arguments from the command line to what was made of them."""
    cls = module.ServerArgs
    if "__post_init__" in vars(cls):
        cls.__post_init__ = naming_rules(cls.__post_init__)
    module.prepare_server_args = remembering_parser(module.prepare_server_args, late=hasattr(cls, "resolve_once"))
    if hasattr(cls, "resolve_once"):
        cls.resolve_once = telling_once(cls.resolve_once)


def naming_rules(real: Any) -> Any:
    """Remember which function set which field while the arguments resolve themselves (up to 0.5.18)."""

    @functools.wraps(real)
    def post_init(self: Any, *args: Any, **kwargs: Any) -> Any:
        with recording(self):
            return real(self, *args, **kwargs)

    return post_init


@contextmanager
def recording(arguments: Any) -> Iterator[None]:
    """Every assignment to a field of this object, with the function that made it."""
    cls = type(arguments)
    own = vars(cls).get("__setattr__")
    assign = own or object.__setattr__

    def setattr_(self: Any, name: Any, value: Any) -> None:
        if self is arguments:
            SEEN.rules.append((name, sys._getframe(1).f_code.co_name))
        assign(self, name, value)

    setattr(cls, "__setattr__", setattr_)  # noqa: B010
    try:
        yield
    finally:
        if own is None:
            del cls.__setattr__
        else:
            setattr(cls, "__setattr__", own)  # noqa: B010


def remembering_parser(real: Any, *, late: bool) -> Any:
    """Remember the parser and the words that it was really given: a file of arguments was merged into them by then."""

    @functools.wraps(real)
    def prepare_server_args(argv: list[str], *args: Any, **kwargs: Any) -> Any:
        parse_args = argparse.ArgumentParser.parse_args

        def remember(parser: argparse.ArgumentParser, words: Any = None, namespace: Any = None) -> Any:
            SEEN.parsers.append(parser)
            SEEN.argv = list(words if words is not None else sys.argv[1:])
            return parse_args(parser, words, namespace)

        argparse.ArgumentParser.parse_args = remember  # type: ignore[method-assign, assignment]
        try:
            made = real(argv, *args, **kwargs)
        finally:
            argparse.ArgumentParser.parse_args = parse_args  # type: ignore[method-assign]
        if not late:
            tell(made)
        return made

    return prepare_server_args


def telling_once(real: Any) -> Any:
    """From 0.5.20 on resolution is a step of its own, which later callers repeat without effect."""

    @functools.wraps(real)
    def resolve_once(self: Any, *args: Any, **kwargs: Any) -> Any:
        done = real(self, *args, **kwargs)
        if SEEN.parsers:
            tell(self)
        return done

    return resolve_once


def tell(made: Any) -> None:
    """Write what the front end knows, from its own process only."""
    if multiprocessing.parent_process() is None:
        write("arguments", lambda: arguments(made))


def arguments(made: Any) -> dict[str, Any]:
    """The command line, which fields were explicit, every flag by its field, and what each field became."""
    fields = declared(made)
    flags = flags_of(SEEN.parsers[0])
    names = {flag["dest"]: field_of(flag, fields) for flag in flags}
    explicit = explicit_of(SEEN.parsers.pop(), SEEN.argv)
    SEEN.parsers.clear()
    return {
        "argv": without_secrets(SEEN.argv),
        "explicit": {names.get(dest, dest): hidden(dest, value) for dest, value in explicit.items()},
        "flags": by_field(flags, names),
        "declared": fields,
        "resolved": resolved(made),
        "rules": rules(made),
        "versions": attempt(versions),
    }


def by_field(flags: list[dict[str, Any]], names: dict[str, str]) -> dict[str, Any]:
    """Every flag by its field; of several that set one, that of its name, with the names of all."""
    found: dict[str, Any] = {}
    for flag in flags:
        field = names[flag["dest"]]
        other = found.get(field)
        main, alias = (other, flag) if other and other["dest"] == field else (flag, other)
        found[field] = {**main, "names": [*main["names"], *(alias["names"] if alias else ())]}
    return found


def field_of(flag: dict[str, Any], fields: Any) -> str:
    """The field that a flag sets: by its destination, else by one of its names."""
    names: tuple[str, ...] = (flag["dest"], *(name.lstrip("-").replace("-", "_") for name in flag["names"]))
    return next((name for name in names if name in fields), names[0])


def declared(made: Any) -> dict[str, Any]:
    """Every field with its declared default: of a dataclass, and from 0.5.21 on of a msgspec struct."""
    if dataclasses.is_dataclass(made):
        fields: Any = dataclasses.fields(made)
        nothing: Any = dataclasses.MISSING
    else:
        import msgspec

        fields, nothing = msgspec.structs.fields(type(made)), msgspec.NODEFAULT
    return {f.name: attempt(lambda f=f: default_of(f, nothing)) for f in fields}


def default_of(field: Any, nothing: Any) -> Any:
    """The declared default of one field; ``None`` where it must be given."""
    if field.default is not nothing:
        return field.default
    return field.default_factory() if field.default_factory is not nothing else None


def resolved(made: Any) -> dict[str, Any]:
    """Every field as it stands; from 0.5.20 on the attributes stay as written, and a method gives what was resolved."""
    if hasattr(made, "resolved_dict"):
        values = made.resolved_dict()
    else:
        values = {f.name: getattr(made, f.name, None) for f in dataclasses.fields(made)}
    return {name: hidden(name, value) for name, value in values.items()}


def rules(made: Any) -> list[dict[str, Any]]:
    """Which rule set which field, in order; a later one holds."""
    stash = getattr(made, "_resolved_overrides", None) or ()
    declared = [{"rule": str(rule), "fields": sorted(values)} for rule, values in stash]
    return [{"rule": rule, "fields": [name]} for name, rule in SEEN.rules if not name.startswith("_")] + declared


def versions() -> dict[str, Any]:
    """What the engine says of itself and of the libraries it runs on."""
    import sglang
    import torch

    return {
        "sglang": getattr(sglang, "__version__", None),
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "hip": torch.version.hip,
        "python": sys.version.split()[0],
    }


# --- a scheduler: what it holds ---------------------------------------------------------------------------------


def watch_scheduler(module: Any) -> None:
    """Look at each scheduler once it was built."""
    cls = module.Scheduler
    real = cls.__init__

    @functools.wraps(real)
    def built(self: Any, *args: Any, **kwargs: Any) -> None:
        real(self, *args, **kwargs)
        write(own_name(f"scheduler-{rank_name(self)}"), lambda: scheduler(self))

    cls.__init__ = built


def own_name(name: str) -> str:
    """A name that no other process has taken: some versions do not tell a scheduler which replica it is."""
    taken = os.path.exists(f"{os.environ[OUT]}/{name}.json")  # noqa: PTH110
    return f"{name}-{os.getpid()}" if taken else name


RANKS = {
    "dp": ("dp_rank", "ps.dp_rank", "attn_dp_rank", "ps.attn_dp_rank"),
    "pp": ("pp_rank", "ps.pp_rank"),
    "tp": ("tp_rank", "ps.tp_rank"),
    "ep": ("moe_ep_rank", "ps.moe_ep_rank"),
}


PARALLEL = {"dp": ("dp_rank", "attn_dp_rank"), "pp": ("pp_rank",), "tp": ("tp_rank",), "ep": ("moe_ep_rank",)}
"""From 0.5.21 on a context of the process knows the ranks, and no scheduler does."""


def rank_of(held: Any) -> dict[str, int]:
    """The place of this scheduler in the grid; 0 where a version has no such place."""
    found = {name: first(held, *paths) for name, paths in RANKS.items()}
    context = sys.modules.get("sglang.srt.runtime_context")
    if found["tp"] is None and hasattr(context, "get_parallel"):
        parallel = context.get_parallel()  # type: ignore[union-attr]
        found = {name: attempt(lambda names=names: first(parallel, *names)) for name, names in PARALLEL.items()}
    return {name: value if isinstance(value, int) else 0 for name, value in found.items()}


def rank_name(held: Any) -> str:
    """``dp0-pp0-tp0``."""
    rank: dict[str, int] = rank_of(held)
    return f"dp{rank['dp']}-pp{rank['pp']}-tp{rank['tp']}"


SCHEDULER = {
    "max_total_num_tokens": ("max_total_num_tokens",),
    "full_tokens": ("full_tokens_per_layer",),
    "swa_tokens": ("swa_tokens_per_layer",),
    "max_running_requests": ("max_running_requests",),
    "max_req_len": ("max_req_len",),
    "max_prefill_tokens": ("max_prefill_tokens",),
    "chunked_prefill_size": ("chunked_prefill_size",),
    "mixed_chunk": ("is_mixed_chunk",),
    "schedule_policy": ("policy.policy", "schedule_policy"),
    "overlap": ("enable_overlap",),
    "page_size": ("page_size",),
    "hierarchical_cache": ("enable_hierarchical_cache",),
    "new_token_ratio_init": ("init_new_token_ratio", "new_token_ratio_tracker.init"),
    "new_token_ratio_min": ("min_new_token_ratio", "new_token_ratio_tracker.min"),
    "new_token_ratio_decay": ("new_token_ratio_decay", "new_token_ratio_tracker.decay"),
    "tree_components": ("tree_cache.tree_components",),
    "gpu_id": ("gpu_id", "ps.gpu_id"),
}
"""Values that the scheduler holds, by every path under which a version keeps them."""

SCHEDULER_CLASSES = {
    "tree_cache": ("tree_cache",),
    "eviction": ("tree_cache.eviction_strategy", "tree_cache.tree_core.eviction_strategy"),
    "grammar": ("grammar_backend", "grammar_manager.grammar_backend"),
    "draft_worker": ("draft_worker",),
}
"""Of these only the class is of interest."""

WORKER = ("tp_worker.worker", "tp_worker")
RUNNER = ("model_runner", "_model_runner")
"""The worker, which 0.4 and 0.5 wrap for overlap scheduling, and its model runner."""

MODEL_RUNNER = {
    "attention_backend": ("server_args.attention_backend",),
    "prefill_attention_backend": ("prefill_attention_backend_str",),
    "decode_attention_backend": ("decode_attention_backend_str",),
    "sampling_backend": ("server_args.sampling_backend",),
    "kv_cache_dtype": ("kv_cache_dtype",),
    "dtype": ("dtype",),
    "mem_fraction_static": ("mem_fraction_static",),
    "pre_model_load_gib": ("pre_model_load_memory",),
    "weight_load_gib": ("weight_load_mem_usage",),
    "graph_gib": ("graph_mem_usage",),
    "graph_gib_by_phase": ("graph_memory_usage",),
    "sliding_window": ("sliding_window_size",),
    "context_len": ("model_config.context_len",),
    "request_slots": ("req_to_token_pool.size",),
    "capture_bs": (
        "decode_cuda_graph_runner.capture_bs",
        "graph_runner.capture_bs",
        "cuda_graph_runner.capture_bs",
    ),
    "prefill_capture": (
        "prefill_cuda_graph_runner.capture_num_tokens",
        "piecewise_cuda_graph_runner.capture_num_tokens",
    ),
}
"""Values that the model runner holds, by every path under which a version keeps them; sizes in GiB."""

MODEL_RUNNER_CLASSES = {
    "model": ("model",),
    "attention": ("attn_backend",),
    "attention_prefill": ("attn_backend.prefill_backend",),
    "attention_decode": ("attn_backend.decode_backend",),
    "kv_allocator": ("token_to_kv_pool_allocator",),
    "request_pool": ("req_to_token_pool",),
    "graph_runner": ("decode_cuda_graph_runner", "graph_runner", "cuda_graph_runner"),
    "prefill_graph_runner": ("prefill_cuda_graph_runner", "piecewise_cuda_graph_runner"),
    "lora": ("lora_manager.lora_backend",),
}

POOLS = {
    "full": ("token_to_kv_pool.full_kv_pool", "token_to_kv_pool"),
    "sliding window": ("token_to_kv_pool.swa_kv_pool",),
    "state": ("req_to_token_pool.mamba_pool", "token_to_kv_pool.mamba_pool"),
}
"""Pools of a model runner by kind: one inside another where a model has layers of two kinds."""

POOL = ("size", "page_size", "layer_num", "head_num", "head_dim", "v_head_dim", "kv_lora_rank", "qk_rope_head_dim")


def scheduler(held: Any) -> dict[str, Any]:
    """Everything that is settled once a scheduler was built."""
    runner = first(first(held, *WORKER), *RUNNER)
    return {
        "rank": rank_of(held),
        "scheduler": facts(held, SCHEDULER),
        "classes": {**classes(held, SCHEDULER_CLASSES), **classes(runner, MODEL_RUNNER_CLASSES)},
        "runner_class": class_of(runner),
        "runner": facts(runner, MODEL_RUNNER),
        "speculative": attempt(lambda: getattr(held, "spec_algorithm", None)),
        "pools": pools(runner),
        "weights": attempt(lambda: weights(runner)),
        "server_args": attempt(lambda: resolved(held.server_args)),
        "variables": variables(),
        "threads": attempt(lambda: __import__("torch").get_num_threads()),
        "substituted": attempt(substituted),
        "device": attempt(lambda: str(getattr(runner, "device", None))),
    }


def facts(thing: Any, table: dict[str, tuple[str, ...]]) -> dict[str, Any]:
    """Every value of a table that this version has."""
    found = {name: attempt(lambda paths=paths: first(thing, *paths)) for name, paths in table.items()}
    return {name: value for name, value in found.items() if value is not None}


def classes(thing: Any, table: dict[str, tuple[str, ...]]) -> dict[str, Any]:
    """The class of everything in a table that this version has."""
    found = {name: class_of(first(thing, *paths)) for name, paths in table.items()}
    return {name: value for name, value in found.items() if value is not None}


def pools(runner: Any) -> dict[str, Any]:
    """The cache pools of a model runner, by kind of layers."""
    found = {kind: first(runner, *paths) for kind, paths in POOLS.items()}
    return {kind: attempt(lambda pool=pool: pool_facts(pool)) for kind, pool in found.items() if pool is not None}


def pool_facts(pool: Any) -> dict[str, Any]:
    """One pool: its class, shape and bytes as the engine counts them."""
    found: dict[str, Any] = {name: plain(getattr(pool, name)) for name in POOL if getattr(pool, name, None) is not None}
    for name in ("dtype", "store_dtype"):
        found[name] = str(getattr(pool, name, None)).removeprefix("torch.")
    return {**found, "class": class_of(pool), "bytes": attempt(lambda: pool_bytes(pool))}


def pool_bytes(pool: Any) -> int | None:
    """Keys and values together; ``None`` where a version does not count them."""
    count: Callable[[], Any] | None = getattr(pool, "get_kv_size_bytes", None)
    if count is None:
        return None
    said = count()
    return int(sum(said)) if isinstance(said, tuple) else int(said)


def weights(runner: Any) -> Any:
    """Bytes and count of the parameters that this rank holds, and their element types."""
    return tensors(runner.model.parameters())


def variables() -> dict[str, Any]:
    """Every environment variable that this version declares, as it reads it."""
    envs = getattr(sys.modules.get("sglang.srt.environ"), "envs", None)
    found: dict[str, Any] = {}
    for name in dir(type(envs)) if envs is not None else ():
        if name.startswith(("SGLANG_", "SGL_")):
            field = getattr(envs, name)
            value = attempt(field.get)
            found[name] = HIDDEN if getattr(field, "secret", False) and value else hidden(name, value)
    return found


def substituted() -> list[str]:
    """Modules that a stand-in was given for, where engdiff brought any."""
    support = sys.modules.get(SUPPORT)
    return list(support.substituted()) if support else []
