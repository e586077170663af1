"""What llama.cpp's start-up log states (b7376 to b11549), each fact with its line.

The lines are read at verbosity 4: from about b9294 on the memory lines are not printed at the default of 3.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from pydantic import JsonValue

PREFIX = re.compile(r"^(?:\d+\.\d\d\.\d{3}\.\d{3} (?P<level>[DIWE]) )?")
"""minutes.seconds.ms.us and a level, from about b9294 on; nothing before."""

_CONTEXT = re.compile(
    r"^llama_context: (?P<name>n_\w+|causal_attn|flash_attn|kv_unified|freq_base|freq_scale)\s*= (?P<value>\S+)$"
)
_BUFFER = re.compile(
    r"^\w+:\s+(?P<device>\S+)\s+(?P<what>model|output|KV|RS|compute) buffer size\s*=\s+(?P<mib>\d+\.?\d*) MiB"
)
_KV = re.compile(
    r"^llama_kv_cache\w*: size =\s*(?P<mib>\d+\.?\d*) MiB \(\s*(?P<cells>\d+) cells,\s*(?P<layers>\d+) layers,"
    r"\s*(?P<seqs>\d+)(?:/\s*(?P<streams>\d+))? seqs\),"
    r" K \((?P<k>\w+)\):\s*(?P<k_mib>\d+\.?\d*) MiB, V \((?P<v>\w+)\):\s*(?P<v_mib>\d+\.?\d*) MiB"
)
_MODEL = re.compile(r"^print_info: (?P<name>[\w .]+?)\s*= (?P<value>.+)$")
_FACTS = tuple(
    (name, re.compile(pattern))
    for name, pattern in {
        "threads": r"system_info: n_threads = (\d+)",
        "threads_batch": r"n_threads_batch = (\d+)\)",
        "cpu_line": r"system_info: .*?\| CPU : (.+)$",
        "flash_attention": r"Flash Attention (?:was auto, set to )?(enabled|disabled)",
        "slots": r"initializing(?: slots)?, n_slots = (\d+)",
        "slot_context": r"slot .*new slot,? n_ctx(?:_slot)? = (\d+)",
        "http_threads": r"using (\d+) threads for HTTP server",
        "prompt_cache_mib": r"prompt cache is enabled, size limit: (\d+) MiB",
        "prompt_cache_off": r"(prompt cache is disabled)",
        "checkpoints": r"context checkpoints enabled, max = (\d+)",
        "fit_context": r"context size unset.* -> using (\d+) for \d+ sequences",
        "fit_rule": r"(context size unset.* -> using \d+ for \d+ sequences)",
        "host_projected_mib": r"projected to use (\d+) MiB of host memory",
        "host_total_mib": r"MiB of host memory vs\. (\d+) MiB of total host memory",
        "load_mode": r"loading model tensors, this can take a while\.\.\. \((.+)\)",
        "graph_nodes": r"graph:? nodes\s+= (\d+)",
        "fitting_seconds": r"fitting params to free memory took (\d+\.?\d*) seconds",
    }.items()
)


@dataclass(frozen=True)
class Line:
    """One log line without its prefix; ``number`` counts from 1."""

    number: int
    text: str
    level: str | None


@dataclass(frozen=True)
class Fact:
    """One stated value and the line that states it."""

    value: JsonValue
    line: Line

    @property
    def amount(self) -> float:
        """The value of a fact whose pattern captures digits."""
        return float(str(self.value))


@dataclass
class Context:
    """One llama_context: the served model's, a draft model's, or a dry run's (whose KV buffers are 0 MiB)."""

    values: dict[str, Fact] = field(default_factory=dict)
    buffers: list[tuple[str, str, Fact]] = field(default_factory=list)
    kv: list[tuple[re.Match[str], Line]] = field(default_factory=list)

    @property
    def dry(self) -> bool:
        """Whether nothing was allocated for its KV cache."""
        sizes = [fact.value for _, what, fact in self.buffers if what == "KV"]
        return not sizes or all(size == 0 for size in sizes)


@dataclass
class LogFacts:
    """Everything read from one log."""

    facts: dict[str, Fact] = field(default_factory=dict)
    model: dict[str, Fact] = field(default_factory=dict)
    model_buffers: list[tuple[str, Fact]] = field(default_factory=list)
    contexts: list[Context] = field(default_factory=list)
    warnings: list[Line] = field(default_factory=list)

    @property
    def served(self) -> Context | None:
        """The context that serves: the first that is not a dry run."""
        real = [c for c in self.contexts if not c.dry]
        return next(iter(real or self.contexts), None)


def lines(log: str) -> Iterator[Line]:
    """The log's lines without prefixes."""
    for number, raw in enumerate(log.splitlines(), start=1):
        prefix = PREFIX.match(raw)
        assert prefix is not None, "every part of the prefix is optional"
        yield Line(number, raw[prefix.end() :].rstrip(), prefix["level"])


def parse(log: str) -> LogFacts:
    """All facts of a log; of several starts or dry runs the later statement holds."""
    found = LogFacts()
    for line in lines(log):
        if line.level in ("W", "E"):
            found.warnings.append(line)
        if line.text.startswith("llama_context: constructing llama_context"):
            found.contexts.append(Context())
        elif line.text.startswith("load_tensors: loading model tensors") and not any(not c.dry for c in found.contexts):
            found.model_buffers.clear()
        _context_line(line, found)
        _plain_line(line, found)
    return found


def _context_line(line: Line, found: LogFacts) -> None:
    buffer = _BUFFER.match(line.text)
    if buffer and buffer["what"] == "model":
        found.model_buffers.append((buffer["device"], Fact(float(buffer["mib"]), line)))
    if not found.contexts:
        return
    context = found.contexts[-1]
    if match := _CONTEXT.match(line.text):
        context.values[match["name"]] = Fact(number(match["value"]), line)
    elif buffer and buffer["what"] != "model":
        context.buffers.append((buffer["device"], buffer["what"], Fact(float(buffer["mib"]), line)))
    elif match := _KV.match(line.text):
        context.kv.append((match, line))


def _plain_line(line: Line, found: LogFacts) -> None:
    if match := _MODEL.match(line.text):
        found.model[match["name"].strip()] = Fact(number(match["value"]), line)
        return
    for name, pattern in _FACTS:
        if match := pattern.search(line.text):
            found.facts[name] = Fact(number(match[1]), line)


def number(text: str) -> JsonValue:
    """The text as int, float or bool where it is one."""
    text = text.strip()
    for convert in (int, float):
        try:
            return convert(text)
        except ValueError:
            continue
    return {"true": True, "false": False}.get(text, text)
