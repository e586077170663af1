"""SGLang and TensorRT-LLM beside the engines of the factories. Nothing here was measured."""

from __future__ import annotations

from engdiff.schema.capture import (
    Admission,
    Capture,
    Device,
    Graphs,
    Group,
    Instance,
    Launch,
    Pool,
    Process,
    Rank,
    Runner,
    Term,
)
from engdiff.schema.values import Known, Unknown, Value
from tests import factories as make
from tests.diff.parts_of_sides import from_log
from tests.factories import GIB

SILENT = Unknown(because="the log does not state it")
TOKEN_BYTES = 128 * 1024

SGLANG_WORDS = (
    "--mem-fraction-static",
    "0.83",
    "--max-running-requests",
    "512",
    "--watchdog-timeout",
    "600",
    "--served-model-name",
    "prod",
)


def sglang(version: str = "0.5.12") -> Capture:
    """SGLang on one GPU, launched: the pool is what the weights leave of the static share."""
    pool = 48 * GIB
    share = make.setting(0.83, "user", asked=0.83, word="--mem-fraction-static")
    running = make.setting(512, "user", asked=512, word="--max-running-requests")
    return Capture(
        identity=make.identity("sglang", version, "sglang", _gpu(make.known(80 * GIB)), {"torch": "2.11.0"}),
        launch=Launch(
            model="/models/tiny",
            model_given="tiny",
            arguments=SGLANG_WORDS,
            command=("/opt/engine/bin/python", "-m", "sglang"),
            native_command=("sglang", "serve", "/models/tiny", *SGLANG_WORDS),
            variables={"SGLANG_EXAMPLE": "1"},
        ),
        native={"server_args": {"watchdog_timeout": 600}},
        settings={
            "model.max_model_len": make.setting(4096, "derived"),
            "model.dtype": make.setting("bfloat16", "derived"),
            "kv.block_size": make.setting(1),
            "kv.dtype": make.setting("auto"),
            "kv.gpu_memory_utilization": share,
            "kv.prefix_caching": make.setting(value=True),
            "scheduler.max_num_batched_tokens": make.setting(8192),
            "scheduler.max_num_seqs": running,
            "scheduler.async_scheduling": make.setting(value=True),
            "model.quantization": make.setting(None),
            "load.warmup": make.setting(value=True),
            "parallel.dp": make.setting(1),
        },
        instances=(
            Instance(
                processes=(
                    Process(name="tokenizer", parent=None, threads=make.known(4), steps=("http", "tokenise")),
                    Process(name="scheduler", parent="tokenizer", threads=make.known(9), steps=("schedule", "execute")),
                    Process(name="detokenizer", parent="tokenizer", threads=make.known(2), steps=("detokenise",)),
                ),
                ranks=(
                    Rank(
                        device="cuda:0",
                        ledger=(
                            Term(name="free before loading", kind="capacity", bytes=make.measured(78 * GIB)),
                            _term("static share", "limit", 64 * GIB, "free before loading"),
                            _term("weights", "use", 16 * GIB, "static share"),
                            _term("KV cache", "remainder", pool, "static share"),
                            _term("graphs", "use", 2 * GIB, "free before loading"),
                            _term("prefill graphs", "use", GIB, "free before loading"),
                            _term("left free", "remainder", 11 * GIB, "free before loading"),
                        ),
                        pools=(token_pool(pool, 4096, block=1),),
                        graphs=_graphs("full", [1, 2, 4, 8]),
                    ),
                ),
            ),
        ),
        runner=_runner("fa3"),
        admission=Admission(
            rule=make.known("while free and evictable KV tokens hold its prompt and its answer"),
            preemption=make.known("retract"),
            settings=(),
        ),
        boot=(),
    )


def trtllm() -> Capture:
    """TensorRT-LLM on one GPU, read from a log: its cache is a share of what is free after the peak."""
    pool = 40 * GIB
    capture = Capture(
        identity=make.identity("trtllm", "1.1.0", "tensorrt-llm", _gpu(SILENT), {}),
        launch=Launch(model=None, model_given=None, arguments=(), command=(), native_command=(), variables={}),
        native={},
        settings={
            "model.max_model_len": make.setting(2048, None),
            "kv.block_size": make.setting(32, None),
            "kv.gpu_memory_utilization": make.setting(0.9, None),
            "kv.prefix_caching": make.setting(value=True, origin=None),
            "scheduler.capacity_policy": make.setting("GUARANTEED_NO_EVICT", None),
            "scheduler.max_num_batched_tokens": make.setting(4096, None),
            "scheduler.max_num_seqs": make.setting(128, None),
        },
        instances=(
            Instance(
                processes=(),
                ranks=(
                    Rank(
                        device="GPU",
                        ledger=(
                            Term(name="device memory", kind="capacity", bytes=make.measured(80 * GIB)),
                            _term("weights", "use", 16 * GIB, "device memory"),
                            _term("activation peak", "use", 2 * GIB, "device memory"),
                            _term("outside torch", "use", 3 * GIB, "device memory"),
                            _term("sampler", "use", GIB, "device memory"),
                            _term("available for the KV cache", "limit", pool, "device memory"),
                            _term("KV cache", "remainder", pool, "available for the KV cache"),
                            _term("torch may use", "limit", 60 * GIB, "device memory"),
                        ),
                        pools=(token_pool(pool, 2048, block=32),),
                        graphs=_graphs("decode", [1, 2, 4, 8]),
                    ),
                ),
            ),
        ),
        runner=_runner("TRTLLM"),
        admission=Admission(
            rule=make.known("GUARANTEED_NO_EVICT: when prompt and longest answer are free"),
            preemption=make.known("never"),
            settings=(),
        ),
        boot=(),
    )
    return from_log(capture)


def token_pool(size: int, length: int, *, block: int) -> Pool:
    """A pool of one kind of layers, in which every token takes the same bytes."""
    tokens = size // TOKEN_BYTES
    return Pool(
        name="KV cache",
        bytes=make.measured(size),
        blocks=make.known(tokens // block),
        block_tokens=make.known(block),
        tokens=make.known(tokens),
        max_concurrency=Known(value=round(tokens / length, 2), basis="engine rule"),
        concurrency_at_tokens=make.known(length),
        groups=(
            Group(
                kind="full",
                layers=make.known(32),
                block_tokens=make.known(block),
                bytes_per_block=make.known(TOKEN_BYTES * block),
            ),
        ),
    )


def _gpu(memory: Value) -> Device:
    return Device(kind="gpu", name="Example GPU", memory_bytes=memory)


def _term(name: str, kind: str, size: int, source: str) -> Term:
    return Term(name=name, kind=kind, bytes=make.measured(size), draws_on=source)  # type: ignore[arg-type]


def _graphs(mode: str, sizes: list[int]) -> Graphs:
    return make.no_graphs().model_copy(update={"mode": make.known(mode), "sizes": make.known([*sizes])})


def _runner(attention: str) -> Runner:
    return Runner(
        name=Unknown(because="it has one model runner"),
        because=Unknown(because="it has one model runner"),
        attention_backend=make.known(attention),
        candidates=Unknown(because="not said"),
    )
