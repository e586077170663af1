"""How TensorRT-LLM accounts for memory, read from its lines.

PyTorch backend: a small KV cache is allocated, dummy requests run, and available = (total - peak + small cache) x
fraction (tensorrt_llm/_torch/pyexecutor/_util.py 0.18 to newest); then the cache is allocated anew, so the first
"Allocated ... paged KV cache" of a start is not the one that serves. TensorRT backend: tokens = fraction x what is free
after weights and buffers (cpp/tensorrt_llm/batch_manager/kvCacheManager.cpp 0.9 to 1.1). All ranks take the smallest
number of tokens (allreduce with MIN). The lines of the C++ runtime name no rank: several equal ones are several ranks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from engdiff.engines.trtllm import log
from engdiff.logs.starts import Start
from engdiff.logs.statements import Line, Statement
from engdiff.logs.values import amount, decimal, evidence
from engdiff.schema.capture import Group, Pool, Term, TermKind
from engdiff.schema.values import Evidence, Known, Unknown, Value, number
from engdiff.units import GIB

ALLOCATIONS = ("kv_allocated", "kv_bytes", "kv_quota")
PROFILED = ("profile", "estimated_kv")
ESTIMATING = ("estimation_pass",)
"""Written before the small cache of the profiling pass is allocated."""
OWN = (
    *("weights_torch", "weights_outside", "activations", "outside_torch", "torch_limit", "graph"),
    *PROFILED,
    *ESTIMATING,
)
"""Statements of the Python side, which name their rank when there are several."""

SHARED = (
    *ALLOCATIONS,
    "kv_tokens",
    "window",
    "tokens_per_block",
    "primary_blocks",
    "secondary_blocks",
    "memory_at_kv",
    "engine_size",
    "execution_context",
    "runtime_buffers",
    "decoder_buffers",
    "tensorrt_memory",
    "component_total",
    "component_free",
    "v2_scheduler",
)
NAMES = (*OWN, *SHARED)

DEVICE = "device memory"
AVAILABLE = "available for the KV cache"
NO_LINE = Unknown(because="no line of the log states it")
ONLY_PROFILING = Unknown(because="the log states only the small cache of the profiling pass")


@dataclass
class Said:
    """What one rank said of its memory, in the order of the log: its own lines, and those that name no rank.

    ``marks``: where any rank says that the profiling pass begins or ends; later versions let one rank say so for all.
    """

    statements: list[Statement] = field(default_factory=list)
    marks: tuple[Statement, ...] = ()

    def last(self, *names: str) -> Statement | None:
        """The last statement of these names."""
        return next((s for s in reversed(self.statements) if s.name in names), None)

    def after_profiling(self) -> tuple[list[Statement], bool]:
        """What was said after the profiling pass, and whether one was seen. Without one: everything."""
        for index, statement in enumerate(self.statements):
            if statement.name in PROFILED:
                return self.statements[index:], True
        end = next((s.line for s in self.marks if s.name in PROFILED), None)
        if end is None or any(s.line.file != end.file for s in self.statements):
            return self.statements, False
        return [s for s in self.statements if s.line.number > end.number], True

    def only_estimates(self) -> bool:
        """Whether the log breaks off in the profiling pass, whose end is not stated."""
        return bool(self.marks) and all(s.name in ESTIMATING for s in self.marks)


def by_rank(start: Start) -> dict[str, Said]:
    """By speaker, in the order of the ranks; one without a name when the log names none."""
    statements = list(start.all(*NAMES))
    marks = tuple(s for s in statements if s.name in (*PROFILED, *ESTIMATING))
    named = sorted({s.speaker for s in statements if s.speaker}, key=rank_index)
    return {
        speaker: Said([s for s in statements if s.speaker in ("", speaker)], marks)
        for speaker in (named or ([""] if statements else []))
    }


def rank_index(speaker: str) -> int:
    """The number in ``RANK n``: of all ranks, whatever they split."""
    digits = re.search(r"\d+", speaker)
    return int(digits[0]) if digits else 0


# --- pools ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Allocation:
    """The lines about one allocated cache. ``windows``: the last line of each window size."""

    size: Statement | None
    tokens: Statement | None
    windows: tuple[Statement, ...] = ()
    others: tuple[Statement, ...] = ()
    """Allocations of other ranks, or of other caches, with other numbers."""


def allocation(said: Said) -> Allocation:
    """The allocation that serves: the smallest after the profiling pass, or of the last ones with as many tokens."""
    if said.only_estimates():
        return Allocation(None, None)
    later, profiled = said.after_profiling()
    sizes = [s for s in later if s.name in ALLOCATIONS]
    final = sizes if profiled else _same_tokens(sizes)
    smallest = min(final, key=_tokens_and_size, default=None)
    others = tuple(s for s in final if smallest and _printed(s) != _printed(smallest))
    windows = _windows(said, later, sizes, final, profiled=profiled)
    tokens = smallest if smallest and smallest.name == "kv_allocated" else said.last("kv_tokens")
    return Allocation(smallest, tokens, windows, others)


def _same_tokens(sizes: Sequence[Statement]) -> list[Statement]:
    """The last ones that state the same tokens; of those that state none, the same bytes."""
    keys = [_printed(s)[-1:] if s.get("tokens") else _printed(s) for s in sizes]
    first = next((i + 1 for i in reversed(range(len(sizes))) if keys[i] != keys[-1]), 0)
    return list(sizes[first:])


def _printed(statement: Statement) -> tuple[str | None, ...]:
    return tuple(statement.get(group) for group in ("size_gib", "size_bytes", "tokens"))


def _tokens_and_size(statement: Statement) -> tuple[float, float]:
    size = number(amount(statement, "size_gib") or amount(statement, "size_bytes"))
    return float(statement.get("tokens") or 0), size or 0.0


def _windows(
    said: Said, later: Sequence[Statement], sizes: Sequence[Statement], final: Sequence[Statement], *, profiled: bool
) -> tuple[Statement, ...]:
    """The last line of each window size that belongs to the final allocation: those after the one before it.

    Windows of one cache state the same longest sequence; another one is of another pass.
    """
    begin = 0
    for index, statement in enumerate(later):
        if statement in sizes and statement not in final:
            begin = index + 1
    stated = [s for s in later[begin:] if s.name == "window"]
    if not stated and not profiled:
        stated = [s for s in said.statements if s.name == "window"][-1:]
    longest = stated[-1].get("max_sequence_length") if stated else None
    same = [s for s in stated if s.get("max_sequence_length") == longest]
    return tuple({s.get("window"): s for s in same}.values())


def pools(said: Said, context: Known | None, block: Known | None) -> tuple[Pool, ...]:
    """The rank's pool. ``context``: tokens of the longest request; ``block``: tokens of a block, where set."""
    found = allocation(said)
    size, tokens = pool_bytes(said), _pool_tokens(said, found)
    block_tokens = _block_tokens(said, found) or block
    blocks = _blocks(said, found, tokens, block_tokens)
    if not any(isinstance(value, Known) for value in (size, tokens, blocks)) and not found.windows:
        return ()
    concurrency, at = _concurrency(found, blocks, tokens, context)
    return (
        Pool(
            name="KV cache",
            bytes=size,
            blocks=blocks,
            block_tokens=block_tokens or NO_LINE,
            tokens=tokens,
            max_concurrency=concurrency,
            concurrency_at_tokens=at,
            groups=_groups(found, size, block_tokens),
        ),
    )


def pool_bytes(said: Said) -> Value:
    """Bytes of the cache that serves; those of the quota where the second cache manager writes no allocation."""
    size = allocation(said).size
    if size is not None:
        return amount(size, "size_gib") or amount(size, "size_bytes") or NO_LINE
    estimated = said.last("estimated_kv")
    quota = amount(estimated, "size_gib") if estimated else None
    if quota and said.last("v2_scheduler"):
        return _by_rule(quota, "the estimate, which KVCacheManagerV2 takes as its quota")
    return ONLY_PROFILING if said.last(*ALLOCATIONS) else NO_LINE


def _pool_tokens(said: Said, found: Allocation) -> Value:
    if found.tokens is not None:
        return amount(found.tokens, "tokens", basis="exact") or NO_LINE
    return ONLY_PROFILING if said.last(*ALLOCATIONS) else NO_LINE


def _block_tokens(said: Said, found: Allocation) -> Known | None:
    window = next((w for w in found.windows if w.get("tokens_per_block")), None)
    if window:
        return amount(window, "tokens_per_block", basis="exact")
    if stated := said.last("tokens_per_block"):
        return amount(stated, "tokens", basis="exact")
    scheduler = said.last("v2_scheduler")
    return amount(scheduler, "tokens_per_block", basis="exact") if scheduler else None


def block_tokens(said: Said) -> Known | None:
    """Tokens of a block, which the profiling pass does not change."""
    windows = tuple(s for s in said.statements if s.name == "window")
    return _block_tokens(said, Allocation(None, None, windows))


def _blocks(said: Said, found: Allocation, tokens: Value, block_tokens: Known | None) -> Value:
    """As stated, or the sum over the windows, or tokens / tokens of a block."""
    stated = [b for w in found.windows if (b := amount(w, "primary_blocks", basis="exact"))]
    if len(stated) == 1:
        return stated[0]
    if stated:
        value = sum(int(number(b) or 0) for b in stated)
        return Known(value=value, basis="engine rule", evidence=_rule("sum over the windows", *stated))
    if line := said.last("primary_blocks"):
        return amount(line, "blocks", basis="exact") or NO_LINE
    count, size = number(tokens), number(block_tokens)
    if count is None or not size or not isinstance(tokens, Known):
        return NO_LINE
    where = "tokens / tokens of a block, rounded up"
    return Known(value=int(-(-count // size)), basis="engine rule", evidence=_rule(where, tokens))


def _concurrency(found: Allocation, blocks: Value, tokens: Value, context: Known | None) -> tuple[Value, Value]:
    """How many requests of the longest kind fit, with the tokens of one."""
    at: Value = context or Unknown(because="the log does not state the longest request")
    window = found.windows[0] if len(found.windows) == 1 else None
    each = amount(window, "blocks_per_sequence", basis="exact") if window else None
    count, need = number(blocks), number(each)
    if count is not None and need and each and isinstance(blocks, Known):
        where = _rule("blocks / blocks of a sequence", blocks, each)
        return Known(value=round(count / need, 2), basis="engine rule", evidence=where), at
    total, longest = number(tokens), number(context)
    if total is not None and longest and context and isinstance(tokens, Known):
        where = _rule("tokens / tokens of the longest request", tokens, context)
        return Known(value=round(total / longest, 2), basis="engine rule", evidence=where), at
    return Unknown(because="TensorRT-LLM does not log it, and what it follows from is not stated"), at


def _groups(found: Allocation, size: Value, block_tokens: Known | None) -> tuple[Group, ...]:
    """One for each window size, from the largest down."""
    windows = sorted((w for w in found.windows if w.get("window")), key=lambda w: -int(w["window"]))
    return tuple(_group(w, windows, size, block_tokens) for w in windows)


def _group(window: Statement, windows: Sequence[Statement], size: Value, block_tokens: Known | None) -> Group:
    tokens = int(window["window"])
    longest = max(int(windows[0]["window"]), int(window.get("max_sequence_length") or 0))
    names = ("window", "primary_blocks", "secondary_blocks", "blocks_per_sequence", "max_sequence_length")
    return Group(
        kind="sliding window" if tokens < longest else "full",
        layers=Unknown(because="TensorRT-LLM does not log which layers have which window"),
        block_tokens=amount(window, "tokens_per_block", basis="exact") or block_tokens or NO_LINE,
        bytes_per_block=_bytes_per_block(window, windows, size),
        detail={name: int(printed) for name in names if (printed := window.get(name))},
    )


def _bytes_per_block(window: Statement, windows: Sequence[Statement], size: Value) -> Value:
    blocks = number(amount(window, "primary_blocks"))
    whole = number(size)
    if len(windows) > 1:
        return Unknown(because="the log states the bytes of all windows together")
    if not blocks or whole is None or not isinstance(size, Known):
        return NO_LINE
    return Known(
        value=round(whole / blocks),
        low=None if size.low is None else size.low / blocks,
        high=None if size.high is None else size.high / blocks,
        basis="engine rule",
        evidence=_rule("bytes / blocks", size),
    )


# --- ledger -----------------------------------------------------------------------------------------------------


def ledger(said: Said, components: Sequence[Component]) -> tuple[Term, ...]:
    """The rank's memory as its lines state it; a term that no line states is left out."""
    terms = [
        _term(DEVICE, "capacity", device_bytes(said), None, "all memory of the device"),
        *_weights(said),
        _term("activation peak", "use", _size(said, "activations"), DEVICE, "largest dummy step, profiled"),
        _term("outside torch", "use", _size(said, "outside_torch"), DEVICE, "communication libraries, graphs, context"),
        _term("execution context", "use", _size(said, "execution_context"), DEVICE, "activations of a TensorRT engine"),
        _term("runtime buffers", "use", _size(said, "runtime_buffers"), DEVICE, "inputs and outputs of a step"),
        _term("decoder", "use", _size(said, "decoder_buffers"), DEVICE, "buffers of sampling and beam search"),
        *(_component_term(c) for c in components),
        _term(AVAILABLE, "limit", _available(said), DEVICE, _meaning_of_available(said)),
        _term("KV cache", "remainder", pool_bytes(said), AVAILABLE, "keys and values of all layers, in whole blocks"),
        _term("torch may use", "limit", _size(said, "torch_limit", "limit_gib"), DEVICE, "cap of torch's allocator"),
    ]
    return tuple(term for term in terms if term is not None)


def _weights(said: Said) -> list[Term | None]:
    return [
        _term("weights", "use", _size(said, "weights_torch"), DEVICE, "allocated in torch before the dummy requests"),
        _term("weights", "use", _size(said, "engine_size", "size_mib"), DEVICE, "size of the TensorRT engine"),
    ]


def _term(name: str, kind: TermKind, value: Value | None, draws_on: str | None, meaning: str) -> Term | None:
    if not isinstance(value, Known):
        return None
    return Term(name=name, kind=kind, bytes=value, draws_on=draws_on, meaning=meaning)


SIZES = ("size_gib", "size_mib", "size_kib", "size_bytes")


def _size(said: Said, name: str, *groups: str) -> Known | None:
    statement = said.last(name)
    if statement is None:
        return None
    return next((found for group in (groups or SIZES) if (found := amount(statement, group))), None)


def device_bytes(said: Said) -> Known | None:
    """The whole memory of the rank's device, whichever line states it."""
    return (
        _size(said, "profile", "total_gib")
        or _size(said, "memory_at_kv", "total_gib")
        or _size(said, "component_total", "total_gib")
    )


def _available(said: Said) -> Known | None:
    """What the KV cache may take (PyTorch), or what was free when it was sized (TensorRT)."""
    return (
        _size(said, "profile", "available_gib")
        or _size(said, "memory_at_kv", "available_gib")
        or _size(said, "estimated_kv", "size_gib")
    )


def _meaning_of_available(said: Said) -> str:
    if said.last("profile"):
        return "(device memory - profiled peak + small cache of the profiling pass) x fraction"
    if said.last("memory_at_kv"):
        return "free when the cache is sized; the fraction of it becomes KV cache"
    return "as estimated"


# --- the table of a failed start --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Component:
    """What was created before the failure: free memory before and after it, as printed, in GiB."""

    name: str
    before: str
    after: str
    line: Line

    @property
    def term(self) -> str:
        """A name that does not change with the version that prints it."""
        return COMPONENT_NAMES.get(self.name, self.name)

    @property
    def used(self) -> Known | None:
        """Before - after, with the bounds of both roundings; ``None`` where it gave memory back."""
        before, after = decimal(self.before), decimal(self.after)
        if before is None or after is None or before < after:
            return None
        taken = float(before - after) * GIB
        return Known(
            value=round(taken),
            low=taken - 0.01 * GIB,
            high=taken + 0.01 * GIB,
            basis="engine rule",
            evidence=Evidence(
                source="rule",
                where=f"free before - free after, line {self.line.number}",
                line=self.line.number,
                file=self.line.file,
            ),
        )


COMPONENT_NAMES = {
    "Model": "model",
    "Draft model for speculative decoding": "draft model",
    "draft_model": "draft model",
    "Sampler": "sampler",
    "Drafter": "drafter",
    "Guided Decoder": "guided decoder",
    "guided_decoder": "guided decoder",
    "Speculative decoding resources": "speculative decoding",
    "spec_resource_manager": "speculative decoding",
    "Initial KV cache (temporary for KV cache size estimation)": "KV cache of the profiling pass",
    "Initial KV Cache (temporary for KV cache size estimation)": "KV cache of the profiling pass",
    "_no_capture_init_kv_cache": "KV cache of the profiling pass",
    "Additional executor resources (temporary for KV cache size estimation)": "executor of the profiling pass",
    "_no_capture_init_extra_resources": "executor of the profiling pass",
    "Model resources created during usage": "model, when used",
    "model_extra": "model, when used",
    "Additional executor resources": "executor",
    "executor_extra": "executor",
    "KV cache": "KV cache as allocated",
    "kv_cache": "KV cache as allocated",
}
"""Words (1.0 to 1.2) and members of an enumeration (from 1.2 on) for the same components."""

COMPONENT = re.compile(r"^(?P<name>[A-Za-z_][\w ()-]{1,90}): (?P<before>\d{1,6}\.\d\d) / (?P<after>\d{1,6}\.\d\d)$")
LONGEST_TABLE = 40


def components(start: Start) -> tuple[Component, ...]:
    """The rows of the last table of a failed start, on lines of their own or joined with bars."""
    failed = start.last_of("component_failed")
    if failed is None:
        return ()
    number_of_failed = failed.line.number
    lines = [
        line
        for line in (failed.line, *start.tail)
        if line.number >= number_of_failed and line.number <= number_of_failed + LONGEST_TABLE
    ]
    found: dict[str, Component] = {}
    for line in lines:
        for part in log.said(line.text).text.split("|"):
            if match := COMPONENT.match(part.strip()):
                found.setdefault(match["name"], Component(match["name"], match["before"], match["after"], line))
    return tuple(found.values())


def _component_term(component: Component) -> Term | None:
    return _term(component.term, "use", component.used, DEVICE, "free memory before it was created, less that after")


# --- graphs -----------------------------------------------------------------------------------------------------


def graph_lines(start: Start, said: Said) -> tuple[Statement, ...]:
    """Lines of the last capture: the profiling pass captures as well."""
    begins = start.last_of("graphs_begin")
    lines = [s for s in said.statements if s.name == "graph"]
    later, profiled = said.after_profiling()
    if profiled and (after := [s for s in later if s.name == "graph"]):
        return tuple(after)
    if begins is not None and (after := [s for s in lines if s.line.number > begins.line.number]):
        return tuple(after)
    return tuple(lines)


def graph_sizes(start: Start, lines: Sequence[Statement]) -> Known | None:
    """Batch sizes of the captured graphs; ``None`` where the log has not as many lines as it says there are graphs."""
    sizes = sorted({int(s["batch_size"]) for s in lines})
    begins = start.last_of("graphs_begin")
    if begins is None or len(sizes) != int(begins["count"]):
        return None
    first, last = lines[0].line, lines[-1].line
    where = f"one graph for each line of {first.number} to {last.number} that warms one up"
    return Known(
        value=list(sizes),
        basis="engine rule",
        evidence=Evidence(source="rule", where=where, line=first.number, file=first.file),
    )


def largest_graph(lines: Iterable[Statement]) -> Known | None:
    """The largest captured batch size, citing its line."""
    largest = max(lines, key=lambda s: int(s["batch_size"]), default=None)
    return amount(largest, "batch_size", basis="exact") if largest else None


# --- shared -----------------------------------------------------------------------------------------------------


def _rule(words: str, *parts: Known) -> Evidence:
    lines = sorted({p.evidence.line for p in parts if p.evidence and p.evidence.line})
    first = next((p.evidence for p in parts if p.evidence and p.evidence.line), None)
    where = f"{words}, line {' and '.join(map(str, lines))}" if lines else words
    return Evidence(source="rule", where=where, line=lines[0] if lines else None, file=first.file if first else None)


def _by_rule(value: Known, words: str) -> Known:
    return value.model_copy(update={"basis": "engine rule", "evidence": _rule(words, value)})


def sentence(statement: Statement, group: str, value: object) -> Known:
    """What a sentence means, citing it."""
    where, line = statement.cited(group)
    return Known(value=value, basis="engine rule", evidence=evidence(where, line))  # type: ignore[arg-type]
