"""Capture: what an engine decided. See the fields of :class:`Capture` for the map."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, JsonValue

from engdiff.schema.values import Evidence, Frozen, Known, Unknown, Value

CAPTURE_SCHEMA = 2

Origin = Literal["user", "default", "derived", "forced"]
"""user: the user wrote it and it holds. default: nobody wrote it, the declared default holds.
derived: nobody wrote it, the engine computed it. forced: the user wrote something else."""

TermKind = Literal["capacity", "limit", "use", "remainder"]

Step = Literal["http", "tokenise", "schedule", "execute", "detokenise"]


class Device(Frozen):
    """A device that the engine runs on: ``kind`` is cpu or gpu, memory in bytes."""

    kind: Literal["cpu", "gpu"]
    name: str
    memory_bytes: Value
    detail: dict[str, JsonValue] = Field(default_factory=dict)


class Host(Frozen):
    """The machine: what can make the same build behave differently."""

    hostname: str
    os: str
    arch: str
    kernel: str
    glibc: Value
    cpu: Value
    cpu_count: int
    cpu_features: tuple[str, ...]
    memory_bytes: Value


class Environment(Frozen):
    """The interpreter the engine ran in, and everything installed there (kernel packages are configuration too)."""

    managed: bool
    python: str
    interpreter: str
    distribution: str
    distribution_because: str
    packages: dict[str, str]
    notes: tuple[str, ...] = ()


class Identity(Frozen):
    """Who decided, where, and how engdiff came to know."""

    engine: str
    version: Value
    commit: Value
    source: Literal["launch", "attach", "log", "simulate", "profile", "budget"]
    captured_at: str
    engdiff_version: str
    host: Host | Unknown
    devices: tuple[Device, ...]
    driver: Value
    environment: Environment | Unknown


class Launch(Frozen):
    """What the user asked for, redacted. ``arguments``: words after ``--``; ``variables``: those the engine reads.

    ``unknown_because``: why words and variables are not known here; they are empty then, and so may the model be.
    """

    model: str | None
    model_given: str | None
    arguments: tuple[str, ...]
    command: tuple[str, ...]
    native_command: tuple[str, ...]
    variables: dict[str, str]
    added_by_engdiff: dict[str, str] = Field(default_factory=dict)
    image: str | None = None
    unknown_because: str | None = None


class Setting(Frozen):
    """One canonical setting in its three layers. ``configured`` is ``None`` when the user said nothing.

    resolved: what the engine's configuration code made of it. effective: what the worker really did.
    """

    configured: Known | None = None
    resolved: Value
    effective: Value
    origin: Origin | None
    native: str | None = None
    because: str | None = None

    @property
    def final(self) -> Known | Unknown:
        """The deepest layer that is known: effective, else resolved, else what the user wrote."""
        if isinstance(self.effective, Known):
            return self.effective
        return self.configured if self.configured and isinstance(self.resolved, Unknown) else self.resolved


class Term(Frozen):
    """One line of a memory ledger, in bytes. ``draws_on`` names the capacity or limit it is taken out of."""

    name: str
    kind: TermKind
    bytes: Value
    draws_on: str | None = None
    meaning: str = ""


class Factor(Frozen):
    """One number of the product that makes a pool's size; ``setting`` is the canonical key that moves it."""

    name: str
    value: Value
    setting: str | None = None


class Group(Frozen):
    """Layers whose cache has one shape. ``bytes_per_block`` covers all the layers of the group."""

    kind: Literal["full", "sliding window", "chunked", "mla", "state", "cross", "other"]
    layers: Value
    block_tokens: Value
    bytes_per_block: Value
    detail: dict[str, JsonValue] = Field(default_factory=dict)


class Pool(Frozen):
    """One cache pool. ``factors``, when given, multiply to ``bytes``."""

    name: str
    bytes: Value
    blocks: Value
    block_tokens: Value
    tokens: Value
    max_concurrency: Value
    concurrency_at_tokens: Value
    factors: tuple[Factor, ...] = ()
    groups: tuple[Group, ...] = ()


class Graphs(Frozen):
    """Captured graphs: mode, batch sizes in tokens, bytes and seconds they cost."""

    mode: Value
    sizes: Value
    prefill_sizes: Value
    captured: Value
    bytes: Value
    seconds: Value


class Rank(Frozen):
    """One worker of an instance."""

    tp: int = 0
    pp: int = 0
    dp: int = 0
    ep: int = 0
    device: str
    ledger: tuple[Term, ...]
    pools: tuple[Pool, ...]
    graphs: Graphs


class Process(Frozen):
    """One operating-system process of the engine and the steps of a request that it owns."""

    name: str
    parent: str | None
    threads: Value
    steps: tuple[Step, ...]


class Instance(Frozen):
    """One engine instance: serve, or one half of a prefill/decode pair."""

    role: Literal["serve", "prefill", "decode"] = "serve"
    node: int = 0
    processes: tuple[Process, ...]
    ranks: tuple[Rank, ...]


class Runner(Frozen):
    """Which model runner executes, and the engine's own reason."""

    name: Value
    because: Value
    attention_backend: Value
    candidates: Value


class Admission(Frozen):
    """How requests are let in and thrown out, in the engine's own rule."""

    rule: Value
    preemption: Value
    settings: tuple[str, ...]


class Phase(Frozen):
    """One phase of the boot, in seconds. ``meaning`` says what is included."""

    name: str
    seconds: Value
    meaning: str = ""


class EngineWarning(Frozen):
    """A line that the engine itself marked as a warning or an error; ``text`` without prefix, times and ids."""

    level: Literal["warning", "error"]
    text: str
    line: int
    times: int = 1


class Failure(Frozen):
    """How a start-up ended, when it did not end well.

    ``stage`` is the phase of the boot that failed; ``numbers`` are those of the message, named with their unit
    (``needed_bytes``); ``would_fit`` says what would have fitted, where the message or the ledger tells.
    """

    stage: str
    exit: str
    cause: str | None
    advice: str
    last_words: tuple[str, ...]
    log: str
    numbers: dict[str, Value] = Field(default_factory=dict)
    would_fit: str | None = None


class LogStart(Frozen):
    """One start of the engine in a log: its lines, and how it ended."""

    first_line: int
    last_line: int
    ended: Literal["ready", "failed", "breaks off"]
    file: str | None = None
    source: str = ""


class Reading(Frozen):
    """What was read to make this capture: the files and lines of a log, and which of its starts this one is."""

    files: tuple[str, ...]
    lines: int
    recognised: str
    starts: tuple[LogStart, ...]
    chosen: int


class Library(Frozen):
    """What an engine asks for (``==2.11.0``), and what answered in a simulation; ``None``: it is not installed."""

    asked: str
    answered: str | None


class Simulated(Frozen):
    """What stood in for a machine when an engine's configuration code was run without it.

    ``device``: the pretended GPU and its count (``h100-80gb:8``); ``None``: this machine as it is. ``wheel`` and
    ``sha256``: what the engine's code was read from. ``stand_ins``: every answer that is neither the engine's nor a
    fact of the GPU. ``libraries``: what the release asks for, and what answered.
    """

    device: str | None
    wheel: str | None
    sha256: str | None
    stand_ins: tuple[str, ...]
    libraries: dict[str, Library]


class Capture(Frozen):
    """What one engine, started one way on one machine, decided."""

    document: Literal["capture"] = "capture"
    schema_version: int = CAPTURE_SCHEMA
    identity: Identity
    launch: Launch
    native: dict[str, JsonValue]
    settings: dict[str, Setting]
    instances: tuple[Instance, ...]
    runner: Runner
    admission: Admission
    boot: tuple[Phase, ...]
    warnings: tuple[EngineWarning, ...] = ()
    failure: Failure | None = None
    run_summary: dict[str, Value] = Field(default_factory=dict)
    reading: Reading | None = None
    simulated: Simulated | None = None
    notes: tuple[str, ...] = ()

    @property
    def first_pool(self) -> Pool | None:
        """The first pool of the first rank that has one: ranks of one instance size theirs alike."""
        firsts = (rank for instance in self.instances for rank in instance.ranks[:1])
        return next((pool for rank in firsts for pool in rank.pools), None)


__all__ = ["CAPTURE_SCHEMA", "Capture", "Evidence", "Known", "Unknown", "Value"]
