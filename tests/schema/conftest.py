"""A capture and a diff that use every field of their models; the golden files of the newest schema are these."""

from __future__ import annotations

import pytest

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
    Phase,
    Pool,
    Process,
    Rank,
    Runner,
    Setting,
    Term,
)
from engdiff.schema.diff import (
    Accepted,
    Diff,
    Finding,
    Move,
    NativeLeaf,
    NotCompared,
    Pin,
    Side,
    Step,
    Waterfall,
)
from engdiff.schema.values import Evidence, Known, Unknown

GIB = 2**30


def known(value: object, where: str = "VllmConfig") -> Known:
    return Known.model_validate({"value": value, "evidence": Evidence(source="probe", where=where)})


@pytest.fixture(scope="session")
def full_capture() -> Capture:
    host = Host(
        hostname="node-1",
        os="Linux",
        arch="x86_64",
        kernel="6.1.0",
        glibc=known("2.36", "operating system"),
        cpu=known("Example CPU", "operating system"),
        cpu_count=8,
        cpu_features=("avx2", "avx512f"),
        memory_bytes=known(64 * GIB, "operating system"),
    )
    environment = Environment(
        managed=True,
        python="3.12.1",
        interpreter="/opt/engine/bin/python",
        distribution="vllm",
        distribution_because="a GPU is here",
        packages={"torch": "2.13.0", "vllm": "0.32.0"},
        notes=("one package was left out",),
    )
    identity = Identity(
        engine="vllm",
        version=known("0.32.0", "vllm"),
        commit=Unknown(because="the package does not name its commit"),
        source="launch",
        captured_at="2026-12-02T14:52:48+00:00",
        engdiff_version="0.1.0",
        host=host,
        devices=(Device(kind="gpu", name="Example GPU", memory_bytes=known(80 * GIB), detail={"index": 0}),),
        driver=known("570.1", "nvidia-smi"),
        environment=environment,
    )
    launch = Launch(
        model="/models/tiny",
        model_given="tiny",
        arguments=("--max-model-len", "2048"),
        command=("python", "-m", "server"),
        native_command=("vllm", "serve", "/models/tiny"),
        variables={"HF_TOKEN": "[redacted]"},
        added_by_engdiff={"PYTHONPATH": "so that vLLM finds the probe as a plugin"},
        image="vllm/vllm-openai:v0.32.0",
    )
    setting = Setting(
        configured=Known(value=2048, evidence=Evidence(source="command", where="--max-model-len")),
        resolved=known(2048, "VllmConfig.model_config.max_model_len"),
        effective=Unknown(because="nothing deeper reports it"),
        origin="user",
        native="model_config.max_model_len",
        because="as asked — “×1”",
    )
    line = Evidence(source="log", where="Available KV cache memory: 40.00 GiB", line=17)
    measured = Known(value=40 * GIB, low=39.995 * GIB, high=40.005 * GIB, basis="measured", evidence=line)
    pool = Pool(
        name="KV cache",
        bytes=measured,
        blocks=known(1000),
        block_tokens=known(16),
        tokens=known(16000),
        max_concurrency=known(7.8125),
        concurrency_at_tokens=known(2048),
        factors=(Factor(name="blocks", value=known(1000), setting="kv.block_size"),),
        groups=(
            Group(
                kind="full",
                layers=known(4),
                block_tokens=known(16),
                bytes_per_block=known(131072),
                detail={"spec": "FullAttentionSpec"},
            ),
        ),
    )
    graphs = Graphs(
        mode=known("FULL"),
        sizes=known([1, 2, 4]),
        prefill_sizes=Unknown(because="one list for both"),
        captured=known(6),
        bytes=known(GIB),
        seconds=known(3.5),
    )
    limit = Term(
        name="vLLM may use",
        kind="limit",
        bytes=known(72 * GIB),
        draws_on="device memory",
        meaning="memory x utilisation",
    )
    rank = Rank(
        tp=1,
        pp=1,
        dp=1,
        ep=1,
        device="cuda:0",
        ledger=(Term(name="device memory", kind="capacity", bytes=known(80 * GIB)), limit),
        pools=(pool,),
        graphs=graphs,
    )
    process = Process(name="engine core", parent="front end", threads=known(12), steps=("schedule", "execute"))
    return Capture(
        identity=identity,
        launch=launch,
        native={"config": {"a": [1, 2.5, True, None, "text"]}},
        settings={"model.max_model_len": setting},
        instances=(Instance(role="serve", node=1, processes=(process,), ranks=(rank,)),),
        runner=Runner(
            name=known("V1"),
            because=known("the engine's own words"),
            attention_backend=known("FLASH_ATTN"),
            candidates=Unknown(because="not said"),
        ),
        admission=Admission(rule=known("first come"), preemption=known("recompute"), settings=("kv.block_size",)),
        boot=(Phase(name="load weights", seconds=known(1.25), meaning="as vLLM times it"),),
        warnings=(EngineWarning(level="warning", text="slow", line=3, times=2),),
        failure=Failure(
            stage="start",
            exit="code 1",
            cause="out of memory",
            advice="ask for less",
            last_words=("line one", "line two"),
            log="/logs/engine.log",
        ),
        run_summary={"requests": known(12)},
        notes=("a note",),
    )


@pytest.fixture(scope="session")
def full_diff() -> Diff:
    old = Side(
        label="old.json",
        engine="vllm",
        version="0.20.2",
        distribution="vllm",
        source="launch",
        captured_at="2026-12-02T14:51:00+00:00",
        model="tiny",
        started=True,
        arguments=("--max-model-len", "1024"),
        variables={"VLLM_USE_V1": "1"},
    )
    pin = Pin(text="--max-model-len 2048", style="flags", because="it follows from another")
    finding = Finding(
        kind="DefaultMoved",
        key="model.max_model_len",
        area="memory",
        headline="The default moved.",
        old=known(1024),
        new=Unknown(because="not reported"),
        unit="tokens",
        old_origin="default",
        new_origin="derived",
        why="More memory for each request.",
        since="0.30.0",
        evidence=("VllmConfig.model_config.max_model_len",),
        pin=pin,
        asked=True,
        explained=False,
        follows_from=("model.context_total",),
    )
    return Diff(
        old=old,
        new=old.model_copy(update={"label": "new.json", "version": "0.32.0"}),
        findings=(finding,),
        accepted=(Accepted(finding=finding, reason="we asked for it"),),
        waterfalls=(
            Waterfall(
                pool="KV cache",
                old_bytes=100,
                new_bytes=80,
                how="remainder",
                steps=(Step(name="weights", old="10 B", new="30 B", bytes=-20),),
            ),
        ),
        native_only=(NativeLeaf(path="config.a", side="new", value={"b": 1}, area="kernels"),),
        native_compared=321,
        machine=(Move(name="kernel", old="6.1", new="6.8"),),
        packages=(Move(name="torch", old="2.12", new=None),),
        not_compared=(NotCompared(what="graphs", because="one side has none"),),
        warnings_new=("slow",),
        warnings_gone=("slower",),
        pinned_command="vllm serve tiny --max-model-len 2048",
        prove_command="engdiff diff old.json vllm@0.32.0 -- --max-model-len 2048",
    )
