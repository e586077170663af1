"""Small synthetic captures of both engines, and changes to apply to them. Nothing here was measured."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from pydantic import JsonValue

from engdiff.schema.capture import (
    Admission,
    Capture,
    Device,
    EngineWarning,
    Environment,
    Factor,
    Failure,
    Graphs,
    Group,
    Host,
    Identity,
    Instance,
    Launch,
    Origin,
    Phase,
    Pool,
    Process,
    Rank,
    Runner,
    Setting,
    Term,
)
from engdiff.schema.values import Basis, Evidence, Known, Unknown, Value

GIB = 2**30
MIB = 2**20
VLLM = "0.32.0"
LLAMA = "2026.9.11063"

Change = Callable[[Capture], Capture]


def known(value: JsonValue, basis: Basis = "exact") -> Known:
    return Known(value=value, basis=basis)


def measured(value: float) -> Known:
    return Known(value=value, basis="measured")


def setting(value: JsonValue, origin: Origin | None = "default", *, asked: JsonValue = None, word: str = "") -> Setting:
    """``asked`` is what the user wrote, ``word`` the flag or variable it was written as."""
    configured = None
    if asked is not None:
        configured = Known(value=asked, evidence=Evidence(source="command", where=word or "--flag"))
    return Setting(
        configured=configured,
        resolved=known(value),
        effective=Unknown(because="nothing deeper reports it"),
        origin=origin,
    )


def host() -> Host:
    return Host(
        hostname="node-1",
        os="Linux",
        arch="x86_64",
        kernel="6.1.0",
        glibc=known("2.36"),
        cpu=known("Example CPU"),
        cpu_count=16,
        cpu_features=("avx2", "avx512f"),
        memory_bytes=known(64 * GIB),
    )


def identity(engine: str, version: str, distribution: str, device: Device, packages: dict[str, str]) -> Identity:
    return Identity(
        engine=engine,
        version=known(version),
        commit=Unknown(because="the package does not name its commit"),
        source="launch",
        captured_at="2026-12-01T10:00:00+00:00",
        engdiff_version="0.1.0",
        host=host(),
        devices=(device,),
        driver=known("570.1") if device.kind == "gpu" else Unknown(because="no GPU was found"),
        environment=Environment(
            managed=True,
            python="3.12.1",
            interpreter="/opt/engine/bin/python",
            distribution=distribution,
            distribution_because="this machine has what it needs",
            packages={distribution: version, **packages},
        ),
    )


def no_graphs() -> Graphs:
    nothing = Unknown(because="no graphs are captured")
    return Graphs(mode=nothing, sizes=nothing, prefill_sizes=nothing, captured=nothing, bytes=nothing, seconds=nothing)


# --- vLLM -------------------------------------------------------------------------------------------------------

VLLM_SETTINGS: dict[str, Setting] = {
    "model.max_model_len": setting(2048, "user", asked=2048, word="--max-model-len"),
    "model.dtype": setting("bfloat16", "derived"),
    "kv.block_size": setting(16),
    "kv.prefix_caching": setting(value=True),
    "kv.gpu_memory_utilization": setting(0.9),
    "scheduler.max_num_batched_tokens": setting(8192),
    "scheduler.max_num_seqs": setting(256),
    "scheduler.async_scheduling": setting(value=True, origin="derived"),
    "scheduler.reserve_full_prompt": setting(value=True),
    "kernels.ir_op_priority": setting({"rms_norm": ["native"]}, "derived"),
}

VLLM_FLAGS: dict[str, JsonValue] = {
    "max_model_len": {"names": ["--max-model-len"], "takes": "value"},
    "max_num_seqs": {"names": ["--max-num-seqs"], "takes": "value"},
    "max_num_batched_tokens": {"names": ["--max-num-batched-tokens"], "takes": "value"},
    "block_size": {"names": ["--block-size"], "takes": "value"},
    "gpu_memory_utilization": {"names": ["--gpu-memory-utilization"], "takes": "value"},
    "ir_op_priority": {"names": ["--ir-op-priority"], "takes": "value"},
    "example_option": {"names": ["--example-option"], "takes": "value"},
    "example_switch": {"names": ["--example-switch", "--no-example-switch"], "takes": "switch"},
}


def vllm(version: str = VLLM, **settings: Setting) -> Capture:
    """vLLM on one GPU: the pool is what remains of its limit."""
    return Capture(
        identity=identity(
            "vllm",
            version,
            "vllm",
            Device(kind="gpu", name="Example GPU", memory_bytes=known(80 * GIB)),
            {"torch": "2.13.0", "transformers": "5.19.0"},
        ),
        launch=Launch(
            model="/models/tiny",
            model_given="tiny",
            arguments=("--max-model-len", "2048"),
            command=("/opt/engine/bin/python", "-m", "vllm"),
            native_command=("vllm", "serve", "/models/tiny", "--max-model-len", "2048"),
            variables={},
            added_by_engdiff={"PYTHONPATH": "so that vLLM finds the probe as a plugin"},
        ),
        native={
            "config": {"example_config": {"example_option": "old", "example_switch": True}, "instance_id": "abc"},
            "flags": VLLM_FLAGS,
            "variables": {"VLLM_EXAMPLE": "1"},
        },
        settings={**VLLM_SETTINGS, **settings},
        instances=(Instance(processes=vllm_processes(), ranks=(vllm_rank(),)),),
        runner=Runner(
            name=known("V2"),
            because=known("the model is dense"),
            attention_backend=known("FLASH_ATTN"),
            candidates=Unknown(because="not said"),
        ),
        admission=Admission(rule=known("when its whole prompt fits"), preemption=known("recompute"), settings=()),
        boot=(Phase(name="start to healthy", seconds=measured(41.2), meaning="all of it"),),
    )


def vllm_processes() -> tuple[Process, ...]:
    return (
        Process(name="front end", parent=None, threads=known(10), steps=("http", "tokenise", "detokenise")),
        Process(name="engine core", parent="front end", threads=known(15), steps=("schedule", "execute")),
    )


def vllm_rank(limit: int = 72 * GIB, weights: int = 16 * GIB, peak: int = 4 * GIB) -> Rank:
    pool = limit - weights - peak
    name = "vLLM may use"
    return Rank(
        device="cuda:0",
        ledger=(
            Term(name="device memory", kind="capacity", bytes=known(80 * GIB), meaning="all of the device"),
            Term(name=name, kind="limit", bytes=known(limit), draws_on="device memory", meaning="device x utilisation"),
            Term(name="weights", kind="use", bytes=measured(weights), draws_on=name, meaning="parameters"),
            Term(name="activation peak", kind="use", bytes=measured(peak), draws_on=name, meaning="largest step"),
            Term(name="KV cache", kind="remainder", bytes=measured(pool), draws_on=name, meaning="what is left"),
        ),
        pools=(vllm_pool(pool),),
        graphs=no_graphs(),
    )


def vllm_pool(size: int) -> Pool:
    tokens = size // (128 * 1024)
    return Pool(
        name="KV cache",
        bytes=Known(value=size, low=size * 0.995, high=size * 1.005, basis="measured"),
        blocks=measured(tokens // 16),
        block_tokens=known(16),
        tokens=measured(tokens),
        max_concurrency=measured(tokens / 2048),
        concurrency_at_tokens=known(2048),
        groups=(
            Group(kind="full", layers=known(32), block_tokens=known(16), bytes_per_block=known(2 * MIB), detail={}),
        ),
    )


# --- llama.cpp --------------------------------------------------------------------------------------------------


def llamacpp(version: str = LLAMA, *, slots: int = 4, cells: int = 1024, per_token: int = 1024) -> Capture:
    """llama-server on a CPU: the pool is a product of what was asked for."""
    settings = {
        "model.context_total": setting(slots * cells, "derived"),
        "model.max_model_len": setting(cells, "derived"),
        "kv.unified": setting(value=False),
        "kv.dtype": setting("f16"),
        "scheduler.max_num_seqs": setting(slots, "user", asked=slots, word="-np"),
        "scheduler.max_num_batched_tokens": setting(2048),
        "server.timeout_seconds": setting(600),
    }
    return Capture(
        identity=identity(
            "llamacpp",
            version,
            "xllamacpp",
            Device(kind="cpu", name="Example CPU", memory_bytes=known(64 * GIB)),
            {"numpy": "2.3.0"},
        ),
        launch=Launch(
            model="/models/tiny.gguf",
            model_given="tiny",
            arguments=("-np", str(slots)),
            command=("/opt/engine/bin/python", "-m", "server"),
            native_command=("llama-server", "-m", "/models/tiny.gguf", "-np", str(slots)),
            variables={},
        ),
        native={"params": {"n_ctx": slots * cells, "n_predict": -1}},
        settings=settings,
        instances=(
            Instance(
                processes=(Process(name="server", parent=None, threads=known(8), steps=("http", "execute")),),
                ranks=(llama_rank(slots, cells, per_token),),
            ),
        ),
        runner=Runner(
            name=known("ggml graph"),
            because=Unknown(because="llama.cpp has one runner"),
            attention_backend=known("flash attention"),
            candidates=Unknown(because="not said"),
        ),
        admission=Admission(rule=known("a free slot"), preemption=known("none"), settings=()),
        boot=(),
    )


def llama_rank(slots: int, cells: int, per_token: int) -> Rank:
    size = slots * cells * per_token
    return Rank(
        device="host",
        ledger=(
            Term(name="memory", kind="capacity", bytes=known(64 * GIB), meaning="all memory of the device"),
            Term(name="weights", kind="use", bytes=measured(5 * MIB), draws_on="memory", meaning="weights"),
            Term(name="KV cache", kind="use", bytes=measured(size), draws_on="memory", meaning="keys and values"),
        ),
        pools=(llama_pool(slots, cells, per_token),),
        graphs=no_graphs(),
    )


def llama_pool(slots: int, cells: int, per_token: int) -> Pool:
    size = slots * cells * per_token
    return Pool(
        name="KV cache",
        bytes=Known(value=size, low=size - 5243.0, high=size + 5243.0, basis="measured"),
        blocks=Unknown(because="llama.cpp allocates its cache in single cells, not in blocks"),
        block_tokens=known(1),
        tokens=known(slots * cells),
        max_concurrency=known(slots),
        concurrency_at_tokens=known(cells),
        factors=(
            Factor(name="buffers", value=known(slots), setting="scheduler.max_num_seqs"),
            Factor(name="tokens in each", value=known(cells), setting="model.context_total"),
            Factor(name="bytes per token", value=known(per_token), setting="kv.dtype"),
        ),
    )


# --- changes ----------------------------------------------------------------------------------------------------


def both(*changes: Change) -> Change:
    """One change after the other."""

    def apply(capture: Capture) -> Capture:
        for change in changes:
            capture = change(capture)
        return capture

    return apply


def with_setting(key: str, value: Setting) -> Change:
    return lambda capture: capture.model_copy(update={"settings": {**capture.settings, key: value}})


def without_setting(key: str) -> Change:
    return lambda capture: capture.model_copy(
        update={"settings": {k: v for k, v in capture.settings.items() if k != key}}
    )


def unknown_setting(key: str, because: str = "the endpoint did not answer") -> Change:
    return with_setting(
        key, Setting(resolved=Unknown(because=because), effective=Unknown(because=because), origin=None)
    )


def with_native(path: str, value: JsonValue) -> Change:
    """Set a leaf of the native tree."""
    names = path.split(".")

    def put(tree: dict[str, Any], at: int) -> dict[str, Any]:
        name = names[at]
        return {**tree, name: value if at + 1 == len(names) else put(dict(tree.get(name) or {}), at + 1)}

    return lambda capture: capture.model_copy(update={"native": put(capture.native, 0)})


def with_rank(rank: Rank) -> Change:
    return _instance(ranks=(rank,))


def with_pool(**fields: Value) -> Change:
    """Other fields of the one pool; the ledger stays."""

    def apply(capture: Capture) -> Capture:
        rank = capture.instances[0].ranks[0]
        pool = rank.pools[0].model_copy(update=fields)
        return with_rank(rank.model_copy(update={"pools": (pool,)}))(capture)

    return apply


def with_term(name: str, size: Value) -> Change:
    """Other bytes of one ledger line; the pool stays."""

    def apply(capture: Capture) -> Capture:
        rank = capture.instances[0].ranks[0]
        terms = tuple(t.model_copy(update={"bytes": size}) if t.name == name else t for t in rank.ledger)
        return with_rank(rank.model_copy(update={"ledger": terms}))(capture)

    return apply


def with_processes(*processes: Process) -> Change:
    return _instance(processes=processes)


def _instance(**fields: object) -> Change:
    return lambda capture: capture.model_copy(
        update={"instances": (capture.instances[0].model_copy(update=fields), *capture.instances[1:])}
    )


def with_runner(**fields: Value) -> Change:
    return lambda capture: capture.model_copy(update={"runner": capture.runner.model_copy(update=fields)})


def with_admission(**fields: Value) -> Change:
    return lambda capture: capture.model_copy(update={"admission": capture.admission.model_copy(update=fields)})


def with_launch(**fields: object) -> Change:
    return lambda capture: capture.model_copy(update={"launch": capture.launch.model_copy(update=fields)})


def with_identity(**fields: object) -> Change:
    return lambda capture: capture.model_copy(update={"identity": capture.identity.model_copy(update=fields)})


def with_environment(**fields: object) -> Change:
    return lambda capture: with_identity(environment=capture.identity.environment.model_copy(update=fields))(capture)


def with_warning(text: str, level: Literal["warning", "error"] = "warning", line: int = 7) -> Change:
    return lambda capture: capture.model_copy(
        update={"warnings": (*capture.warnings, EngineWarning(level=level, text=text, line=line))}
    )


def failed(cause: str | None = "out of memory: the KV cache does not fit") -> Change:
    """A start that ended before anything was sized."""
    return lambda capture: capture.model_copy(
        update={
            "failure": Failure(
                stage="start",
                exit="code 1",
                cause=cause,
                advice="ask for less: --max-model-len 1024",
                last_words=("loading weights", "ValueError: no memory for the cache"),
                log="/tmp/engine.log",
            ),
            "instances": (),
        }
    )
