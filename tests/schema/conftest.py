"""A capture, a diff and a series that use every field of their models: the golden files of the newest schema."""

from __future__ import annotations

import pytest

from engdiff.schema.budget import Budget, Cell, Change, Guess, StartCheck
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
    Library,
    LogStart,
    Phase,
    Pool,
    Process,
    Rank,
    Reading,
    Runner,
    Setting,
    Simulated,
    Term,
)
from engdiff.schema.diff import (
    Accepted,
    Across,
    Behaviour,
    Beside,
    Diff,
    Finding,
    Meanings,
    Move,
    NativeLeaf,
    NotCompared,
    OneSided,
    OtherMeaning,
    Pin,
    Side,
    Step,
    Waterfall,
)
from engdiff.schema.explanation import Explanation, InCapture, OfEngine, Spelling, Told
from engdiff.schema.history import Account, History, Left, Moved, Span
from engdiff.schema.series import Series, SeriesMove, SeriesRow
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
        unknown_because="the log does not state it",
    )
    setting = Setting(
        configured=Known(value=2048, evidence=Evidence(source="command", where="--max-model-len")),
        resolved=known(2048, "VllmConfig.model_config.max_model_len"),
        effective=Unknown(because="nothing deeper reports it"),
        origin="user",
        native="model_config.max_model_len",
        because="as asked — “×1”",
    )
    line = Evidence(source="log", where="Available KV cache memory: 40.00 GiB", line=17, file="node-0.log")
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
            numbers={"needed_bytes": known(16 * GIB), "available_bytes": Unknown(because="the line is cut")},
            would_fit="about 65,536 tokens would fit",
        ),
        run_summary={"requests": known(12)},
        simulated=Simulated(
            device="h100-80gb:8",
            wheel="vllm-0.32.0-cp38-abi3-manylinux_2_28_x86_64.whl",
            sha256="0" * 64,
            stand_ins=("torch.version.cuda: 13.0",),
            libraries={"torch": Library(asked="==2.13.0", answered="2.13.0+cpu")},
        ),
        reading=Reading(
            files=("node-0.log",),
            lines=412,
            recognised="9 kinds of its lines",
            starts=(
                LogStart(first_line=1, last_line=200, ended="failed", file="node-0.log", source="vllm-1"),
                LogStart(first_line=201, last_line=412, ended="ready"),
            ),
            chosen=1,
        ),
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
        words_unknown_because="the log does not state it",
        read_from="start 2 of 2 in a log",
    )
    unknown = old.model_copy(update={"label": "new.json", "version": "0.32.0", "distribution": None, "model": None})
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
        meanings=Meanings(old="one thing", new="another", comparable=False, instead="in bytes: 1 B, 2 B"),
    )
    return Diff(
        old=old,
        new=unknown,
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
        behaviours=(
            Behaviour(
                key="memory.profile_formula",
                area="memory",
                since="0.27.0",
                says="The peak is counted in another way.",
                applies_to="MLA models",
                pin=pin,
                source="vllm/utils/mem_utils.py 0.26.0, 0.27.0",
            ),
        ),
        pinned_command="vllm serve tiny --max-model-len 2048",
        prove_command="engdiff diff old.json vllm@0.32.0 -- --max-model-len 2048",
        across=Across(
            old_title="SGLang",
            new_title="vLLM",
            compared=9,
            same=4,
            capacity=(Beside(name="tokens", old=known(1), new=known(2), unit="tokens", meaning="on one rank"),),
            ledger=(
                Beside(
                    name="weights",
                    old=known(1),
                    new=Unknown(because="counted with others"),
                    unit="bytes",
                    old_as="model",
                    new_as="consumed",
                ),
            ),
            ledger_of="SGLang: cuda:0; vLLM: cuda:0",
            decisions=(Beside(name="preemption", old=known("retract"), new=known("recompute")),),
            one_sided=(
                OneSided(
                    what="kv.watermark", side="new", value=known(1), unit="blocks", by_user=True, why="A reserve."
                ),
                OneSided(what="--alias x", side="old", by_user=True, counterpart="--served-model-name"),
            ),
            other_meanings=(
                OtherMeaning(name="tokens", meanings=Meanings(old="slots", new="requests", comparable=False)),
            ),
        ),
    )


@pytest.fixture(scope="session")
def full_series(full_diff: Diff) -> Series:
    finding = full_diff.findings[0]
    move = SeriesMove(
        at=2,
        before=0,
        kind=finding.kind,
        headline=finding.headline,
        why=finding.why,
        since=finding.since,
        pin=finding.pin,
        asked=True,
    )
    row = SeriesRow(
        key=finding.key,
        name="model.max_model_len",
        area=finding.area,
        unit="tokens",
        values=(known(1024), Unknown(because="not reported"), known(2048)),
        steps=(2,),
        moves=(move,),
        pin=finding.pin,
        returned=True,
        asked=True,
        explained=False,
    )
    return Series(
        sides=(full_diff.old, full_diff.new, full_diff.old),
        rows=(row,),
        diffs=(full_diff, full_diff),
        worst=2,
        next_command="engdiff diff old.json new.json",
    )


SPAN = Span(first="0.20.0", last="0.22.0", releases=3, value=known(0.92), origin="default", because="a rule")


@pytest.fixture(scope="session")
def full_history() -> History:
    """A History with every field filled."""
    account = Account(since="0.20.0", kind="default", summary="It grew.", matters="More KV.", source="cache.py 0.20.0")
    return History(
        engine="vllm",
        key="kv.gpu_memory_utilization",
        unit="fraction",
        device="h100-80gb:2",
        model="llama-3.1-70b",
        arguments=("--tensor-parallel-size", "2"),
        spans=(SPAN,),
        moves=(
            Moved(
                before="0.19.1",
                since="0.20.0",
                headline="0.9 → 0.92",
                accounts=(account,),
                pin=Pin(text="--gpu-memory-utilization 0.9", style="flags", because="in this order"),
            ),
        ),
        accounts=(account,),
        without=(Left(version="0.10.0", because="the model is not known to it"),),
        notes=("static defaults",),
    )


@pytest.fixture(scope="session")
def full_explanation() -> Explanation:
    """An Explanation with every field filled."""
    return Explanation(
        key="kv.gpu_memory_utilization",
        area="memory",
        unit="fraction",
        meaning="The share of device memory.",
        why="The pool follows from it.",
        effects={"memory": "The pool grows."},
        depends_on=("kv.configured_bytes",),
        here=InCapture(
            engine="vllm",
            version="0.32.0",
            value=known(0.92),
            origin="default",
            configured=known(0.9),
            because=("a rule",),
            unknown_because="not asked",
        ),
        engines=(
            OfEngine(
                engine="vllm",
                title="vLLM",
                spellings=(
                    Spelling(first="0.10.0", last="0.33.0", flag="--x", variable="VLLM_X", native="cache_config.x"),
                ),
                means="of total memory",
                facts=(Told(says="It is of total memory.", source="gpu_worker.py 0.32.0"),),
                device="h100-80gb",
                model="llama-3.1-8b",
                defaults=(SPAN,),
            ),
        ),
    )


@pytest.fixture(scope="session")
def full_budget(full_capture: Capture) -> Budget:
    """A Budget with every field filled."""
    size = Known(value=2**30, low=2**29, high=2**31, basis="fitted")
    return Budget(
        capture=full_capture,
        guesses=(Guess(name="--gpu", value="h100-80gb", because="the usual one"),),
        kept_of_token={"full": 163840},
        checks=(
            StartCheck(
                name="memory for the cache",
                verdict="starts",
                margin_bytes=size,
                message="No available memory for the cache blocks.",
                source="vllm/v1/core/kv_cache_utils.py",
            ),
        ),
        verdict="within the bounds",
        longest=size,
        table=(
            Cell(
                settings={"kv.gpu_memory_utilization": 0.9},
                pool_bytes=size,
                tokens=size,
                concurrency=size,
                verdict="is refused",
            ),
        ),
        changes=(
            Change(setting="kv.dtype", flag="--kv-cache-dtype", value="fp8", was="auto", costs="numerics change"),
        ),
    )
