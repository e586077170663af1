"""From one start in a log of llama.cpp to the parts of a Capture."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from engdiff.engines.llamacpp import admission, log, machine, memory, stated
from engdiff.engines.llamacpp.facts import Fact, LogFacts, facts_of
from engdiff.logs.starts import Start
from engdiff.logs.statements import Statement
from engdiff.schema.capture import Capture, Graphs, Identity, Instance, Launch, Phase, Process, Rank, Runner, Term
from engdiff.schema.values import Evidence, Known, Unknown, Value

NOT_STATED = "the log does not state it"

STAGES = {
    "build": "configuration",
    "build_info": "configuration",
    "ollama_command": "configuration",
    "system_info": "configuration",
    "loading_model": "load weights",
    "model_file": "load weights",
    "model_info": "load weights",
    "load_mode": "load weights",
    "offloaded": "load weights",
    "model_buffer": "load weights",
    "fit_rule": "profile memory",
    "device_projected": "profile memory",
    "host_projected": "profile memory",
    "context": "size the KV cache",
    "context_value": "size the KV cache",
    "kv_device": "size the KV cache",
    "kv_filtered": "size the KV cache",
    "kv_plan": "size the KV cache",
    "kv_init": "size the KV cache",
    "kv_cache": "size the KV cache",
    "kv_self": "size the KV cache",
    "flash_attention": "profile memory",
    "graph_nodes": "profile memory",
    "warm_up": "warm up",
    "slots": "warm up",
    "slot_context": "warm up",
}
"""Phase of the boot by the last statement. Reserving the compute buffers is a pass over the largest step, as other
engines make it to profile their memory."""

UP = ("ready", "listening", "idle", "processing")
"""Statements that only a server makes that is up."""

STRUCTURED = ("context_value", "model_info", "gguf", "tensor_type", "context", "kv_device", "kv_filtered")
"""Statements that ``native`` has under names of their own."""


@dataclass(frozen=True)
class _Read:
    """One model's start: its statements, the facts in them, and the processes that also spoke."""

    statements: tuple[Statement, ...]
    log: LogFacts
    speaker: str
    others: tuple[str, ...]


def capture(start: Start, base: Capture) -> Capture:
    """``base`` with everything that the log states."""
    read = _read(start)
    words = stated.command(read.statements)
    identity = _identity(read, base.identity)
    return base.model_copy(
        update={
            "identity": identity,
            "launch": _launch(read, base.launch, words),
            "native": _native(read),
            "settings": stated.settings(read.log, words),
            "instances": (_instance(read.log, _totals(identity)),),
            "runner": _runner(read.log),
            "admission": admission.rule(),
            "boot": _boot(read),
            "notes": (*base.notes, *_notes(read)),
        }
    )


def stage(start: Start) -> str:
    """The phase that the start had reached when it ended."""
    if start.ready:
        return "serve"
    read = _read(start)
    return next((STAGES[s.name] for s in reversed(read.statements) if s.name in STAGES), "configuration")


# --- which model ------------------------------------------------------------------------------------------------


def _read(start: Start) -> _Read:
    """The statements of one model: of a router's children the first that has made its context; the router's own."""
    speakers = list(dict.fromkeys(s.said.process for s in start.statements if s.said.process))
    if not speakers:
        return _Read(tuple(start.statements), facts_of(start), "", ())
    reads = {}
    for speaker in speakers:
        said = [s for s in start.statements if s.said.process in ("", speaker)]
        reads[speaker] = (tuple(said), facts_of(start, said))
    chosen = max(speakers, key=lambda speaker: _progress(reads[speaker][1]))
    statements, found = reads[chosen]
    return _Read(statements, found, chosen, tuple(s for s in speakers if s != chosen))


def _progress(found: LogFacts) -> int:
    """How far a model came: read, with a context, with slots."""
    return (found.load is not None) + (found.served is not None) + ("slot_context" in found.own)


# --- identity and launch ----------------------------------------------------------------------------------------


def _identity(read: _Read, identity: Identity) -> Identity:
    own = read.log.own
    version: Value = Unknown(because=NOT_STATED)
    commit: Value = Unknown(because=NOT_STATED)
    if (build := own.get("build")) is not None:
        version = _version(build)
    if (text := own.get("commit")) is not None and text.value != "unknown":
        commit = Known(value=str(text.value), evidence=text.line.evidence)
    return identity.model_copy(
        update={
            "version": version,
            "commit": commit,
            "devices": machine.devices(read.statements, read.log),
            "driver": machine.driver(read.statements),
        }
    )


def _version(build: Fact) -> Value:
    """Builds are known as ``b`` and their number."""
    line = build.line
    if not isinstance(build.value, int) or build.value <= 0:
        return Unknown(because=f"the build does not know its own number (line {line.number})")
    name = f"b{build.value}"
    if name in line.text:
        return Known(value=name, evidence=line.evidence)
    rule = Evidence(source="rule", where=f"b and the number of the build, line {line.number}: {line.text}")
    return Known(value=name, evidence=rule.model_copy(update={"line": line.number, "file": line.file}))


def _launch(read: _Read, launch: Launch, words: stated.Command | None) -> Launch:
    """The model as the log prints it, and the command where a wrapper prints it."""
    path = _model_path(read.log)
    update: dict[str, object] = {"model": path, "model_given": path}
    if words is not None:
        update |= {
            "model": path or words.model,
            "model_given": path or words.model,
            "command": words.words,
            "native_command": words.words,
            "arguments": words.arguments,
            "unknown_because": None,
        }
    return launch.model_copy(update=update)


def _model_path(found: LogFacts) -> str | None:
    """The model's file: as it is loaded, else as a line names it that says that it could not be."""
    loaded = found.own.get("path") or (found.load.path if found.load else None)
    path = loaded or found.own.get("embeddings_path") or found.own.get("failed_path")
    return str(path.value) if path else None


# --- native -----------------------------------------------------------------------------------------------------


def _native(read: _Read) -> dict[str, JsonValue]:
    """Everything as the engine names it; under ``log`` what has no place of its own, as last said."""
    found = read.log
    served, model = found.served, found.load
    native: dict[str, JsonValue] = {
        "context": _plain(served.values) if served else None,
        "model": _plain(found.model),
        "kv_layers": {s["layer"]: s.get("device") for s in read.statements if s.name == "kv_device"},
        "log": _last_said(read.statements),
    }
    if model:
        native |= {"gguf": _plain(model.gguf), "tensor_types": _plain(model.types)}
    return {name: value for name, value in native.items() if value}


def _plain(facts: dict[str, Fact]) -> dict[str, JsonValue]:
    return {name: fact.value for name, fact in facts.items()}


def _last_said(statements: Iterable[Statement]) -> dict[str, JsonValue]:
    """By name, and by what of several a line is about: the groups of the last statement."""
    said: dict[str, JsonValue] = {}
    for statement in statements:
        if statement.name not in STRUCTURED:
            groups = {group: text for group, text in statement.match.groupdict().items() if text is not None}
            said[_full_name(statement)] = dict(groups)
    return said


def _full_name(statement: Statement) -> str:
    """``KV buffer CUDA0``, ``kv_cache of 4096 cells``: with the device, or the cells of the cache."""
    what, cells = statement.get("what"), statement.get("cells")
    device = statement.get("as") or statement.get("device")
    name = f"{what} {statement.name}" if what else statement.name
    name = f"{name} of {cells} cells" if cells else name
    return f"{name} {device}" if device else name


# --- the instance -----------------------------------------------------------------------------------------------


def _totals(identity: Identity) -> dict[str, Value]:
    """The whole memory of each device, by the name that its buffers have."""
    return {str(device.detail.get("as")): device.memory_bytes for device in identity.devices}


def _instance(found: LogFacts, totals: dict[str, Value]) -> Instance:
    """One process does everything; its devices are the ranks."""
    process = Process(
        name="server",
        parent=None,
        threads=Unknown(because=NOT_STATED),
        steps=("http", "tokenise", "schedule", "execute", "detokenise"),
    )
    names = _devices(found)
    ranks = tuple(
        Rank(
            device=device,
            ledger=_ledger(device, found, totals.get(device), only=len(names) == 1),
            pools=memory.pools(device, found),
            graphs=_graphs(device),
        )
        for device in names
    )
    return Instance(processes=(process,), ranks=ranks)


def _devices(found: LogFacts) -> tuple[str, ...]:
    """Where its buffers are; a log without buffers does not say, nor one whose caches have none."""
    lost = (memory.NOWHERE,) if memory.homeless(found) else ()
    if found.model_buffers or found.projector or (found.served and found.served.buffers):
        return (*memory.devices(found), *lost)
    return (memory.NOWHERE,) if lost or found.model.get("file size") or found.model.get("model size") else ()


def _graphs(device: str) -> Graphs:
    because = (
        "llama.cpp's CPU back end captures no graphs"
        if device == memory.HOST
        else "llama.cpp does not state which graphs its back end captures"
    )
    nothing = Unknown(because=because)
    return Graphs(mode=nothing, sizes=nothing, prefill_sizes=nothing, captured=nothing, bytes=nothing, seconds=nothing)


def _ledger(device: str, found: LogFacts, total: Value | None, *, only: bool) -> tuple[Term, ...]:
    """The buffers of a device; without a line for the weights, the model file's size stands in for them."""
    capacity, *uses = memory.ledger(device, found)
    if total is not None and isinstance(capacity.bytes, Unknown):
        capacity = capacity.model_copy(update={"bytes": total})
    terms = (capacity, *uses)
    file = found.model.get("file size") or found.model.get("model size")
    if not only or found.model_buffers or file is None:
        return terms
    size = stated.printed_size(file)
    if size is None:
        return terms
    meaning = "size of the model's file; the log does not show where the weights are"
    return (*terms, Term(name="model file", kind="use", bytes=size, meaning=meaning))


def _runner(found: LogFacts) -> Runner:
    none = Unknown(because="llama.cpp has one runner")
    flash = stated.flash_attention(found)
    backend: Value = Unknown(because="the log does not say whether Flash Attention is on")
    if flash is not None and flash.value in ("enabled", "disabled"):
        value = "flash attention" if flash.value == "enabled" else "plain attention"
        line = flash.evidence.line if flash.evidence else None
        where = f"flash attention {flash.value}" + (f", line {line}" if line else "")
        backend = Known(value=value, evidence=Evidence(source="rule", where=where))
    return Runner(
        name=Known(value="ggml graph", basis="engine rule"), because=none, attention_backend=backend, candidates=none
    )


# --- boot and notes ---------------------------------------------------------------------------------------------


def _boot(read: _Read) -> tuple[Phase, ...]:
    """The times that the log states, and the clock at the beginning of the line that says it is up."""
    own = read.log.own
    phases = []
    if (fitting := own.get("fitting_seconds")) and fitting.size is None:
        value = Known(value=fitting.amount, basis="measured", evidence=fitting.line.evidence)
        phases.append(Phase(name="fit parameters to memory", seconds=value))
    if runner := own.get("load_seconds"):
        seconds = Known(value=runner.amount, basis="measured", evidence=runner.line.evidence)
        phases.append(Phase(name="start to healthy", seconds=seconds, meaning="as ollama counts it"))
    up = next((s for s in read.statements if s.name in ("ready", "listening")), None)
    clock = log.uptime(up.line.text) if up else None
    if up and clock is not None:
        rule = Evidence(source="rule", where=f"minutes.seconds.ms.us at the beginning of line {up.line.number}")
        value = Known(value=clock, basis="measured", evidence=rule)
        phases.append(Phase(name="start to listening", seconds=value, meaning="as the process counts it"))
    return tuple(phases)


def _notes(read: _Read) -> tuple[str, ...]:
    own = read.log.own
    notes = []
    if version := own.get("version"):
        notes.append(f"started by ollama {version.value} (line {version.line.number})")
    if kobold := own.get("kobold"):
        notes.append(f"started by KoboldCpp {kobold.value} (line {kobold.line.number})")
    if read.speaker:
        notes.append(
            f"the model of the child {read.speaker}"
            + (f"; the log also shows {', '.join(read.others)}" if read.others else "")
        )
    if draft := own.get("draft_path"):
        notes.append(f"a draft model is loaded as well: {draft.value} (line {draft.line.number})")
    notes += _other_models(read.log)
    notes += _refused(read.statements)
    notes += _capacity(read.statements)
    return tuple(notes)


def _other_models(found: LogFacts) -> list[str]:
    served = found.load
    others = [load for load in found.loads if load is not served and not load.draft]
    real = [load for load in others if any(not context.dry for context in load.contexts)]
    names = dict.fromkeys(str(load.path.value) for load in real if load.path)
    return [f"the same start loads other models, which are left out: {', '.join(names)}"] if names else []


def _capacity(statements: Sequence[Statement]) -> list[str]:
    """A slot that holds less, or more, than the model was trained for."""
    for statement in reversed(statements):
        if statement.name in ("context_unused", "context_overflow"):
            less = statement.name == "context_unused"
            return [
                f"a sequence holds {statement['context']} tokens, the model was trained for {statement['trained']}"
                f" ({'its full capacity is not used' if less else 'it may overflow'}, line {statement.line.number})"
            ]
    return []


def _refused(statements: Sequence[Statement]) -> list[str]:
    """Memory that a device did not give, where the process went on; what ended it is the failure."""
    last = next((i for i in range(len(statements) - 1, -1, -1) if statements[i].name == "refused"), None)
    if last is None:
        return []
    up = any(s.name in UP for s in statements[:last])
    after = [s.name for s in statements[last:] if s.name not in ("refused", "did_not_fit", *UP)]
    if "died" in after or not (up or after):
        return []
    said = statements[last]
    size = f"{said['refused_mib']} MiB" if said.get("refused_mib") else f"{said['refused_bytes']} bytes"
    where = f" on device {said['index']}" if said.get("index") else ""
    times = sum(s.name == "refused" for s in statements)
    when = "while it served" if up else "while it started"
    return [f"memory was refused {when}: {size}{where} (line {said.line.number}; {times} such)"]
