"""From what a start of llama.cpp stated to facts: models, contexts, caches and buffers, each with its line.

One process may load several models and make several contexts: a dry run that fits parameters to free memory (from
b7551; its caches have 0 MiB), the served model, a draft model. The served one is found here, once.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from pydantic import JsonValue

from engdiff.engines.llamacpp.log import FORMAT, said
from engdiff.logs.reader import Reader
from engdiff.logs.starts import Start
from engdiff.logs.statements import Statement
from engdiff.logs.values import UNITS, amount
from engdiff.schema.capture import EngineWarning
from engdiff.schema.values import Evidence, Known

SINGLE = (
    "build",
    "build_info",
    "version_line",
    "ollama_version",
    "loading_model",
    "kobold_model",
    "kobold_embeddings",
    "kobold_version",
    "system_info",
    "threads_batch",
    "cpu_line",
    "http_threads",
    "json_threads",
    "ollama_model",
    "ollama_failed",
    "failed_model",
    "fit_rule",
    "host_projected",
    "device_projected",
    "fitting_seconds",
    "slots",
    "slot_context",
    "slots_unified",
    "prompt_cache",
    "prompt_cache_off",
    "checkpoints",
    "runner_started",
    "load_time",
    "draft",
    "ollama_load",
)
"""Statements whose groups are facts by the group's own name; of repetitions the last holds."""


WORDS = ("commit", "path", "draft_path", "failed_path", "embeddings_path", "version", "kobold")
"""Groups that are never numbers, also where they look like one: ``708e179`` is a commit."""


@dataclass(frozen=True)
class Line:
    """A line of the log without its prefix; ``number`` counts from 1."""

    number: int
    text: str
    file: str | None = None

    @property
    def evidence(self) -> Evidence:
        """Its citation."""
        return Evidence(source="log", where=self.text, line=self.number, file=self.file)


@dataclass(frozen=True)
class Fact:
    """One stated value and the line that states it; ``size`` is the value in bytes where it is a printed size."""

    value: JsonValue
    line: Line
    size: Known | None = None

    @property
    def amount(self) -> float:
        """The value of a fact whose pattern captures digits."""
        return float(str(self.value))


@dataclass
class Cache:
    """One cache of a context: what was planned, the buffers it got, and the line that sums it up."""

    plan: Statement | None = None
    init: Statement | None = None
    buffers: list[tuple[str, Fact]] = field(default_factory=list)
    size: Statement | None = None
    layers: list[Statement] = field(default_factory=list)

    @property
    def kind(self) -> str:
        """As the plan calls it (``non-SWA``, ``SWA``); empty when there is one cache only."""
        return self.plan["kind"].strip() if self.plan else ""


@dataclass
class Context:
    """One llama_context: the served model's, a draft model's, or a dry run's (whose KV buffers are 0 MiB)."""

    values: dict[str, Fact] = field(default_factory=dict)
    buffers: list[tuple[str, str, Fact]] = field(default_factory=list)
    caches: list[Cache] = field(default_factory=list)
    states: list[Statement] = field(default_factory=list)
    facts: dict[str, Fact] = field(default_factory=dict)

    @property
    def dry(self) -> bool:
        """Whether nothing was allocated for its caches."""
        sizes = [fact.value for _, what, fact in self.buffers if what in ("KV", "RS")]
        return not sizes or all(size == 0 for size in sizes)


@dataclass
class Load:
    """One model read from a file, and the contexts made of it."""

    path: Fact | None = None
    draft: bool = False
    model: dict[str, Fact] = field(default_factory=dict)
    gguf: dict[str, Fact] = field(default_factory=dict)
    types: dict[str, Fact] = field(default_factory=dict)
    buffers: list[tuple[str, Fact]] = field(default_factory=list)
    contexts: list[Context] = field(default_factory=list)
    facts: dict[str, Fact] = field(default_factory=dict)


@dataclass
class LogFacts:
    """Everything read from one start."""

    own: dict[str, Fact] = field(default_factory=dict)
    loads: list[Load] = field(default_factory=list)
    totals: dict[str, Fact] = field(default_factory=dict)
    projector: list[tuple[str, Fact]] = field(default_factory=list)
    warnings: tuple[EngineWarning, ...] = ()

    @property
    def contexts(self) -> list[Context]:
        """Every context, in the order of the log."""
        return [context for load in self.loads for context in load.contexts]

    @property
    def load(self) -> Load | None:
        """The model that serves: the first with a context that is no dry run, else the last that was really read."""
        mains = [load for load in self.loads if not load.draft]
        real = [load for load in mains if any(not c.dry for c in load.contexts)]
        if real:
            return real[0]
        read = [load for load in mains if load.buffers] or [load for load in mains if load.contexts or load.model]
        return next(iter((read or mains)[-1:]), None)

    @property
    def served(self) -> Context | None:
        """The context that serves: the first that is not a dry run."""
        contexts = self.load.contexts if self.load else []
        return next(iter([c for c in contexts if not c.dry] or contexts), None)

    @property
    def model(self) -> dict[str, Fact]:
        """What is said about the model that serves."""
        return self.load.model if self.load else {}

    @property
    def model_buffers(self) -> list[tuple[str, Fact]]:
        """Its weights, by device."""
        return self.load.buffers if self.load else []

    @property
    def facts(self) -> dict[str, Fact]:
        """What the server, the served model and its context state once each."""
        served = self.served
        return {**self.own, **(self.load.facts if self.load else {}), **(served.facts if served else {})}


def number(text: str) -> JsonValue:
    """The text as int, float or bool where it is one; what is no finite number stays text."""
    text = text.strip()
    for convert in (int, float):
        try:
            found = convert(text)
        except ValueError:
            continue
        return found if math.isfinite(found) else text
    return {"true": True, "false": False}.get(text, text)


def cited(statement: Statement, group: str) -> Line:
    """The line in which a group stands, without its prefix."""
    text, line = statement.cited(group)
    return Line(line.number, said(text).text.rstrip(), line.file)


def fact(statement: Statement, group: str) -> Fact:
    """A group as a fact; a printed size has its bytes."""
    line = cited(statement, group)
    size = None
    if group.rsplit("_", 1)[-1] in UNITS and (known := amount(statement, group)):
        size = known.model_copy(update={"evidence": line.evidence})
    text = statement[group]
    return Fact(text.strip() if group in WORDS else number(text), line, size)


def sized(statement: Statement) -> Fact | None:
    """The size that a statement gives, in whichever unit it was printed."""
    group = next((g for g in ("size_mib", "size_gib", "size_kib", "size_bytes") if statement.get(g) is not None), None)
    found = fact(statement, group) if group else None
    return found if found is not None and found.size is not None else None


_ABSURD = re.compile(r"[\d.,]{19,}")
"""No number of an engine has so many digits; what has is damaged, and nothing is taken from its line."""


@lru_cache(maxsize=8)
def parse(log: str) -> LogFacts:
    """All facts of the log of one launch; of several starts the last that came up holds."""
    start = start_of(log)
    return facts_of(start) if start else LogFacts()


def start_of(log: str) -> Start | None:
    """The last start that came up, else the last one; ``None`` when there is none."""
    heard = Reader({"llamacpp": FORMAT}).hear(io.BytesIO(log.encode(errors="replace")))
    starts = [start for speech in heard.speeches.values() for start in speech.starts]
    return next((start for start in reversed(starts) if start.ready), starts[-1] if starts else None)


def facts_of(start: Start, statements: Iterable[Statement] | None = None) -> LogFacts:
    """The facts of a start, or of some of its statements."""
    gathered = _Gathered()
    for statement in start.statements if statements is None else statements:
        gathered.take(statement)
    gathered.found.warnings = tuple(start.warnings)
    return gathered.found


class _Gathered:
    """Facts as they grow, statement by statement."""

    def __init__(self) -> None:
        self.found = LogFacts()
        self._next_is_draft = False
        self._kind = "CUDA"
        self._takes: Mapping[str, Callable[[Statement], None]] = {
            "model_file": self._model_file,
            "draft": self._draft,
            "model_info": lambda s: self._named(self._load.model, s, "name", "value"),
            "gguf": lambda s: self._named(self._load.gguf, s, "key", "value"),
            "tensor_type": lambda s: self._named(self._load.types, s, "type", "tensors"),
            "load_mode": self._load_mode,
            "offloaded": lambda s: self._groups(self._load.facts, s),
            "model_buffer": self._model_buffer,
            "ollama_weights": self._model_buffer,
            "context": lambda s: self._load.contexts.append(Context()),  # noqa: ARG005 - it only says so
            "context_value": self._context_value,
            "buffer": self._buffer,
            "state_buffer": self._buffer,
            "projector_buffer": self._projector_buffer,
            "ollama_kv": self._buffer,
            "ollama_graph": self._buffer,
            "kv_plan": self._kv_plan,
            "kv_init": self._kv_init,
            "kv_layer": lambda s: self._cache().layers.append(s),
            "kv_cache": self._kv_size,
            "kv_self": self._kv_size,
            "rs_cache": lambda s: self._context.states.append(s),
            "flash_attention": lambda s: self._groups(self._context.facts, s),
            "graph_nodes": lambda s: self._groups(self._context.facts, s),
            "graph_splits": lambda s: self._groups(self._context.facts, s),
            "pipeline": lambda s: self._groups(self._context.facts, s),
        }

    def take(self, statement: Statement) -> None:
        """Take in one more."""
        if any(_ABSURD.fullmatch(text or "") for text in statement.match.groups()):
            return
        take = self._takes.get(statement.name)
        if take:
            take(statement)
        else:
            if statement.name in SINGLE:
                self._groups(self.found.own, statement)
            self._total(statement)

    @property
    def _load(self) -> Load:
        if not self.found.loads:
            self.found.loads.append(Load())
        return self.found.loads[-1]

    @property
    def _context(self) -> Context:
        if not self._load.contexts:
            self._load.contexts.append(Context())
        return self._load.contexts[-1]

    def _cache(self) -> Cache:
        """The cache that is being made: a new one when the last was summed up."""
        caches = self._context.caches
        if not caches or caches[-1].size is not None:
            caches.append(Cache())
        return caches[-1]

    def _groups(self, into: dict[str, Fact], statement: Statement) -> None:
        for group, text in statement.match.groupdict().items():
            if text is not None:
                into[group] = fact(statement, group)

    def _named(self, into: dict[str, Fact], statement: Statement, name: str, value: str) -> None:
        into[statement[name].strip()] = fact(statement, value)

    def _model_file(self, statement: Statement) -> None:
        self.found.loads.append(Load(path=fact(statement, "path"), draft=self._next_is_draft))
        self._next_is_draft = False

    def _draft(self, statement: Statement) -> None:
        """The next file is a draft model's."""
        self._next_is_draft = True
        self._groups(self.found.own, statement)

    def _load_mode(self, statement: Statement) -> None:
        """Tensors are loaded now: buffers that a dry run planned before are none."""
        load = self._load
        if load.buffers and all(context.dry for context in load.contexts):
            load.buffers.clear()
        self._groups(load.facts, statement)

    def _model_buffer(self, statement: Statement) -> None:
        if size := sized(statement):
            self._load.buffers.append((statement["device"], size))

    def _context_value(self, statement: Statement) -> None:
        """A value; one that begins the list (older builds do not announce a context) begins another context."""
        name = statement["name"]
        context = self._context
        if name in ("n_seq_max", "n_ctx") and name in context.values:
            context = Context()
            self._load.contexts.append(context)
        context.values[name] = fact(statement, "value")

    def _buffer(self, statement: Statement) -> None:
        size = sized(statement)
        if size is None:
            return
        what = {"ollama_kv": "KV", "ollama_graph": "compute"}.get(statement.name) or statement["what"]
        self._context.buffers.append((statement["device"], what, size))
        if what == "KV":
            self._cache().buffers.append((statement["device"], size))

    def _projector_buffer(self, statement: Statement) -> None:
        if size := sized(statement):
            self.found.projector.append((statement["device"], size))

    def _kv_plan(self, statement: Statement) -> None:
        self._context.caches.append(Cache(plan=statement))

    def _kv_init(self, statement: Statement) -> None:
        self._cache().init = statement

    def _kv_size(self, statement: Statement) -> None:
        self._cache().size = statement

    def _total(self, statement: Statement) -> None:
        """The whole memory of a device, where a line states it."""
        if statement.name == "backend_init":
            self._kind = statement["kind"]
        if statement.get("total_mib") is not None and (name := device_name(statement, self._kind)):
            self.found.totals[name] = fact(statement, "total_mib")


def device_name(statement: Statement, kind: str) -> str | None:
    """The device as buffers name it: ``CUDA0``. ``kind`` is what the back end called the devices that it counts."""
    index = statement.get("index")
    if index is None:
        return statement.get("as") or statement.get("device")
    if statement.name == "vulkan_device":
        return f"Vulkan{index}"
    return f"{'ROCm' if (statement.get('capability') or '').startswith('gfx') else kind}{index}"
