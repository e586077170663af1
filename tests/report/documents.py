"""Diffs and captures as the reports meet them. Reports read documents only, so none of this is computed."""

from __future__ import annotations

from engdiff.schema.capture import Capture
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
from engdiff.schema.series import Series, SeriesMove, SeriesRow
from engdiff.schema.values import Unknown, Value
from tests import factories as make
from tests.factories import GIB, MIB

OLD = Side(
    label="before/old.json",
    engine="vllm",
    version="0.20.2",
    distribution="vllm",
    source="launch",
    captured_at="2026-12-01T10:00:00+00:00",
    model="meta-llama/Llama-3.1-8B-Instruct",
    started=True,
)
NEW = OLD.model_copy(update={"label": "vllm@0.32.0", "version": "0.32.0"})

POOL = Finding(
    kind="PoolShrank",
    key="kv.pool_bytes",
    area="memory",
    headline="the KV cache shrank: 52 GiB → 46.5 GiB (−10.6 %)",
    old=make.measured(52 * GIB),
    new=make.measured(46.5 * GIB),
    unit="bytes",
    why="It held 208 requests of 2,048 tokens; now 186 requests of 2,048 tokens.",
    evidence=("line 136: Available KV cache memory: 52.00 GiB", "line 171: Available KV cache memory: 46.50 GiB"),
    pin=Pin(
        text="--max-num-batched-tokens 8192",
        style="flags",
        because="it follows from scheduler.max_num_batched_tokens",
    ),
    follows_from=("scheduler.max_num_batched_tokens",),
)
BATCH = Finding(
    kind="DefaultMoved",
    key="scheduler.max_num_batched_tokens",
    area="scheduling",
    headline="the default of scheduler.max_num_batched_tokens moved: 8,192 tokens → 16,384 tokens (×2)",
    old=make.known(8192),
    new=make.known(16384),
    unit="tokens",
    old_origin="default",
    new_origin="default",
    why="Fewer means that long prompts take more steps; more means a larger activation peak and so less KV.",
    since="0.28.0",
    pin=Pin(text="--max-num-batched-tokens 8192", style="flags"),
)
PRIORITY = Finding(
    kind="DerivedMoved",
    key="kernels.ir_op_priority",
    area="kernels",
    headline=(
        "kernels.ir_op_priority is decided differently: {rms_norm: native} → "
        "{rms_norm: native, fused_add_rms_norm: native}"
    ),
    old=make.known({"rms_norm": "native"}),
    new=make.known({"rms_norm": "native", "fused_add_rms_norm": "native"}),
    old_origin="default",
    new_origin="derived",
    why="The first supported one runs, and speed and, slightly, numerics follow from it.",
    pin=Pin(
        text="""--ir-op-priority '{"rms_norm": ["vllm_c", "native"], "fused_add_rms_norm": ["vllm_c", "native"]}'""",
        style="flags",
    ),
)
ADMISSION = Finding(
    kind="AdmissionChanged",
    key="admission.rule",
    area="scheduling",
    headline="the admission rule changed: now only when free KV blocks hold its whole prompt | or <never>",
    old=make.known("a"),
    new=make.known("b"),
    why="It decides who waits and who is thrown out under load.",
    pin=Pin(text=None, because="no flag or variable of this version restores it"),
)
COSMETIC = Finding(
    kind="NativeMoved",
    key="variables.VLLM_USE_RAY_V2_EXECUTOR_BACKEND",
    area="cosmetic",
    headline="variables.VLLM_USE_RAY_V2_EXECUTOR_BACKEND: off → on",
    old=make.known(value=False),
    new=make.known(value=True),
    why="engdiff has no account of what this costs.",
    pin=Pin(text="VLLM_USE_RAY_V2_EXECUTOR_BACKEND=0", style="env"),
    explained=False,
)
HARMLESS = Finding(
    kind="NativeMoved",
    key="variables.VLLM_USE_FLASHINFER_SAMPLER",
    area="cosmetic",
    headline="variables.VLLM_USE_FLASHINFER_SAMPLER: none → on",
    old=make.known(None),
    new=make.known(value=True),
    why="No effect here: FlashInfer runs on GPUs only.",
    pin=Pin(text=None, because="it has no effect here"),
)
PROCESSES = Finding(
    kind="ProcessesChanged",
    key="processes",
    area="cosmetic",
    headline="the engine runs as other processes: engine core (execute) → engine core (schedule), worker (execute)",
    old=make.known(["engine core (execute)"]),
    new=make.known(["engine core (schedule)", "worker (execute)"]),
    why="Another process map costs other host memory and start-up time, and fails in other ways.",
    pin=Pin(text=None, because="no flag or variable of this version restores it"),
)
ASKED = Finding(
    kind="SettingChanged",
    key="kv.block_size",
    area="memory",
    headline="kv.block_size was set differently: 16 tokens → 32 tokens (×2)",
    old=make.known(16),
    new=make.known(32),
    unit="tokens",
    old_origin="default",
    new_origin="user",
    why="Prefix reuse works in whole blocks.",
    pin=Pin(text="--block-size 16", style="flags"),
    asked=True,
)
ACCEPTED = Accepted(
    finding=BATCH.model_copy(
        update={
            "key": "kv.prefix_hash",
            "headline": "the default of kv.prefix_hash moved: sha256 → xxhash",
        }
    ),
    reason="planned: ticket 123",
)
REMAINDER = Waterfall(
    pool="the KV cache",
    old_bytes=52 * GIB,
    new_bytes=round(46.5 * GIB),
    how="remainder",
    steps=(
        Step(name="vLLM may use", old="72 GiB", new="73.6 GiB", bytes=round(1.6 * GIB)),
        Step(name="activation peak", old="4 GiB", new="10.1 GiB", bytes=-round(6.1 * GIB)),
        Step(name="graphs", old="—", new="1 GiB", bytes=-GIB),
    ),
)
PRODUCT = Waterfall(
    pool="the KV cache",
    old_bytes=4 * MIB,
    new_bytes=16 * MIB,
    how="product",
    steps=(Step(name="tokens in each", old="1,024", new="4,096", bytes=12 * MIB),),
)

COMMAND = "vllm serve meta-llama/Llama-3.1-8B-Instruct --max-model-len 2048 --max-num-batched-tokens 8192"

UPGRADE = Diff(
    old=OLD,
    new=NEW,
    findings=(POOL, BATCH, ADMISSION, PRIORITY, COSMETIC, HARMLESS, PROCESSES, ASKED),
    accepted=(ACCEPTED,),
    waterfalls=(REMAINDER,),
    native_only=(
        NativeLeaf(path="config.cache_config.prefix_match_unit", side="new", value=None, area="memory"),
        NativeLeaf(path="config.scheduler_config.gone", side="old", value=[1, 2], area="scheduling"),
    ),
    native_compared=345,
    machine=(Move(name="driver", old="560.1", new="570.1"), Move(name="CPU features", old=None, new="amx_tile")),
    packages=(
        *(Move(name=f"nvidia-example-{n}", old=f"13.{n}", new=f"13.{n + 1}") for n in range(12)),
        Move(name="oss-harmony", old=None, new="0.0.11"),
        Move(name="triton", old="3.6.0", new=None),
    ),
    not_compared=(NotCompared(what="graphs.bytes", because="unknown on the old side: the log does not state it"),),
    warnings_new=(
        "Compiling again due to a load failure from /home/user/.cache/vllm/torch_compile_cache/"
        "d0c49891ff055bf82240fd9bed134b22dade61488c6b43f842bb709c4417b451/rank_0_0/model, reason: 'function' object "
        "has no attribute 'finalize_loading'",
    ),
    warnings_gone=("NIXL is not available",),
    pinned_command=COMMAND,
    prove_command=(
        "engdiff diff before/old.json vllm@0.32.0 --model meta-llama/Llama-3.1-8B-Instruct -- "
        "--max-model-len 2048 --max-num-batched-tokens 8192"
    ),
)

NOTHING = Diff(old=OLD, new=NEW, findings=(), native_compared=345)

REFUSED = Diff(
    old=OLD,
    new=NEW.model_copy(update={"started": False}),
    findings=(
        Finding(
            kind="StartRefused",
            key="start",
            area="startup",
            headline="vllm 0.32.0 does not start: the cache holds no request of 131,072 tokens",
            old=make.known("it started"),
            new=make.known("the cache holds no request of 131,072 tokens"),
            why="Nothing is served.",
            evidence=("ValueError: To serve at least one request with max seq len 131072, 16 GiB is needed",),
            pin=Pin(text=None, because="ask for less: --max-model-len 65536"),
        ),
    ),
    not_compared=(
        NotCompared(what="native configuration", because="one side did not start, so it was never resolved"),
    ),
)

LOG = OLD.model_copy(
    update={
        "label": "prod/boot.log",
        "distribution": None,
        "source": "log",
        "model": None,
        "words_unknown_because": "a log does not state it",
        "read_from": "start 2 of 2 in a log",
    }
)

FROM_A_LOG = Diff(
    old=LOG,
    new=NEW.model_copy(update={"arguments": ("--max-model-len", "2048")}),
    findings=(POOL, BATCH.model_copy(update={"kind": "SettingMoved", "old_origin": None})),
    not_compared=(
        NotCompared(what="56 settings", because="the old side was read from a log, which does not state them"),
        NotCompared(what="machine", because="the old side was read from a log, which does not state it"),
        NotCompared(what="packages", because="the old side was read from a log, which does not state them"),
    ),
)

STILL_REFUSED = Diff(
    old=LOG.model_copy(update={"version": "0.25.1", "label": "before.log", "started": False, "read_from": "a log"}),
    new=LOG.model_copy(update={"version": "0.26.0", "label": "after.log", "started": False, "read_from": "a log"}),
    findings=(
        Finding(
            kind="FailureMoved",
            key="start.needed_bytes",
            area="startup",
            headline="vllm 0.26.0 still does not start; needed moved: 45.79 GiB → 70.79 GiB (+54.6 %)",
            old=make.measured(45.79 * GIB),
            new=make.measured(70.79 * GIB),
            unit="bytes",
            why="The cache holds no request of 262,144 tokens. About 198,000 tokens would fit.",
            evidence=("ValueError: To serve at least one request with max seq len (262144), 70.79 GiB is needed",),
            pin=Pin(text=None, because="ask for less: --max-model-len 198000"),
        ),
    ),
    not_compared=(NotCompared(what="machine", because="neither side states it"),),
)

DIFFS = {
    "upgrade": UPGRADE,
    "nothing": NOTHING,
    "refused": REFUSED,
    "from-a-log": FROM_A_LOG,
    "still-refused": STILL_REFUSED,
}


# --- series -------------------------------------------------------------------------------------------------------


def row(
    finding: Finding, values: tuple[Value, ...], *moves: tuple[int, int], name: str = "", **fields: object
) -> SeriesRow:
    """A row whose moves (before, at) all read as ``finding``."""
    told = tuple(
        SeriesMove(
            at=at,
            before=before,
            kind=finding.kind,
            headline=finding.headline,
            why=finding.why,
            since=finding.since,
            pin=finding.pin,
            asked=finding.asked,
        )
        for before, at in moves
    )
    made = SeriesRow(
        key=finding.key,
        name=name or finding.key,
        area=finding.area,
        unit=finding.unit,
        values=values,
        steps=tuple(at for _, at in moves),
        moves=told,
        pin=finding.pin,
        asked=finding.asked,
        explained=finding.explained,
    )
    return made.model_copy(update=fields)


SILENT = Unknown(because="the log does not state it")


def sizes(*gib: float | None) -> tuple[Value, ...]:
    return tuple(SILENT if size is None else make.measured(size * GIB) for size in gib)


def plains(*values: object) -> tuple[Value, ...]:
    return tuple(SILENT if value is None else make.known(value) for value in values)  # type: ignore[arg-type]


LAYOUT = BATCH.model_copy(
    update={
        "key": "kv.block_size",
        "headline": "kv.block_size is decided differently: 32 tokens → 16 tokens (÷2)",
        "pin": Pin(text="--block-size 32", style="flags"),
    }
)
RELEASES = ("0.20.2", "0.24.0", "0.28.0", "0.32.0")
SIDES = tuple(
    OLD.model_copy(update={"label": f"captures/{version}.json", "version": version})
    if version != "0.24.0"
    else LOG.model_copy(update={"label": "prod/boot.log", "version": version})
    for version in RELEASES
)
UPGRADES = Series(
    sides=SIDES,
    rows=(
        row(POOL, sizes(52, 52, 46.5, 46.5), (1, 2), name="KV cache"),
        row(BATCH, plains(8192, None, 16384, 16384), (0, 2)),
        row(
            ADMISSION,
            plains("when its first piece fits", None, *["when free KV blocks hold its whole prompt"] * 2),
            (0, 2),
        ),
        row(LAYOUT, plains(16, 32, 32, 16), (0, 1), (2, 3), returned=True),
        row(
            PRIORITY,
            plains({"rms_norm": "native"}, None, {"rms_norm": "native"}, {"rms_norm": "native", "gelu": "native"}),
            (2, 3),
        ),
        row(COSMETIC, plains(False, False, False, True), (2, 3)),
        row(HARMLESS, plains(False, None, False, True), (2, 3)),
        row(
            ASKED,
            plains(256, 256, 256, 128),
            (2, 3),
            name="scheduler.max_num_seqs",
            key="scheduler.max_num_seqs",
            unit="",
        ),
    ),
    diffs=(NOTHING, UPGRADE, NOTHING),
    worst=2,
    next_command="engdiff diff prod/boot.log captures/0.28.0.json",
)
STEADY = Series(sides=SIDES, rows=(), diffs=(NOTHING, NOTHING, NOTHING))
MANY = Series(
    sides=tuple(OLD.model_copy(update={"label": f"{n}.json", "version": f"0.{n}.0"}) for n in range(20, 32)),
    rows=(
        row(POOL, sizes(*[52] * 8, None, *[46.5] * 3), (7, 9), name="KV cache"),
        row(BATCH, plains(*[8192] * 4, *[16384] * 8), (3, 4)),
    ),
    diffs=(NOTHING,) * 11,
    worst=9,
    next_command="engdiff diff 27.json 29.json",
)
ENDED = row(
    REFUSED.findings[0],
    plains("it started", "it started", *["the cache holds no request of 131,072 tokens"] * 2),
    (1, 2),
    name="start-up",
)
BROKEN = UPGRADES.model_copy(
    update={"rows": (ENDED, *UPGRADES.rows), "next_command": "engdiff diff prod/boot.log captures/0.28.0.json"}
)

SERIES = {"upgrades": UPGRADES, "steady": STEADY, "many": MANY, "broken": BROKEN}


def forced() -> Capture:
    """vLLM with every part of the page: an overruled setting, an unknown one, warnings, notes."""
    capture = make.both(
        make.with_setting("model.max_model_len", make.setting(1024, "forced", asked=2048)),
        make.unknown_setting("kv.layout"),
        make.with_setting("kernels.ir_op_priority", make.setting({"rms_norm": "native", "gelu": "native"}, "derived")),
        make.with_term("weights", Unknown(because="this version does not report it")),
        make.with_warning("Triton is not installed. " * 12),
        make.with_launch(variables={"VLLM_X": "1"}),
    )(make.vllm())
    return capture.model_copy(update={"notes": ("one package was left out",)})


CAPTURES = {
    "vllm": forced(),
    "llamacpp": make.llamacpp(),
    "failed": make.failed()(make.llamacpp()),
}
