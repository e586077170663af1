"""How SGLang accounts for memory, read from the lines of one rank.

The static share is a fraction of what was free before the weights were loaded, not of the device: pool = free after
loading - free before loading x (1 - mem_fraction_static) (model_executor/model_runner.py 0.2.15-0.5.6,
``profile_max_num_token``; mem_cache/kv_cache_configurator.py 0.5.23). The least of all ranks sizes every rank's pool.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from engdiff.logs.statements import Statement
from engdiff.logs.values import amount
from engdiff.schema.capture import Graphs, Group, Pool, Term
from engdiff.schema.values import Evidence, Known, Unknown, Value, number

NAMES = (
    "distributed end",
    "distributed memory",
    "weights begin",
    "weights end",
    "kv pool",
    "kv pool after capture",
    "draft kv pool after capture",
    "sliding window tokens",
    "sliding window pool",
    "mamba pool",
    "memory pool end",
    "graphs begin",
    "graphs end",
    "capacity",
)
"""Statements about one rank's memory."""

FREE = "free before loading"
STATIC = "static share"
LEFT = "left free"
NO_LINE = "no line of the log states it"

SAME = 0.05
"""How far two ranks' weights may lie apart, as a share, when the log does not say which rank speaks."""


@dataclass
class Captured:
    """One capture of graphs: what of, its first and its last line."""

    what: str
    begin: Statement | None = None
    end: Statement | None = None

    @property
    def kind(self) -> str:
        """``decode``, ``prefill`` or ``draft``."""
        return graph_kind(self.what)


@dataclass
class RankSaid:
    """What one rank said of its memory, sorted: the model that is served, and the one that drafts ahead of it."""

    began: Statement | None = None
    weights: Statement | None = None
    draft_weights: Statement | None = None
    distributed: Statement | None = None
    pools: list[Statement] = field(default_factory=list)
    draft_pools: list[Statement] = field(default_factory=list)
    mamba: Statement | None = None
    window: Statement | None = None
    graphs: list[Captured] = field(default_factory=list)
    left: tuple[Statement, str] | None = None
    """The last line that states what was free, and when that was."""
    capacity: Statement | None = None
    available: dict[str, str] = field(default_factory=dict)
    """What was free, as printed, by when."""


WHEN = {
    "weights begin": "before loading",
    "weights end": "after loading",
    "memory pool end": "after the pools",
    "kv pool after capture": "after the pools",
    "graphs begin": "before the graphs",
    "graphs end": "after the graphs",
    "capacity": "when all was allocated",
}


def sort(statements: Sequence[Statement]) -> RankSaid:
    """One rank's statements, in the order of the log.

    The draft worker writes the same lines as the main one, after it: its weights are the second, its pools those
    after the first ``Memory pool end``.
    """
    rank = RankSaid()
    pools_ended = False
    for statement in statements:
        name = statement.name
        if name in ("kv pool", "kv pool after capture"):
            _take_pool(rank, statement, pools_ended=pools_ended)
        elif name == "draft kv pool after capture":
            rank.draft_pools.append(statement)
        elif name == "weights end":
            _take_weights(rank, statement)
        elif name in ("graphs begin", "graphs end"):
            _take_graphs(rank, statement)
        else:
            _take_other(rank, statement)
        pools_ended = pools_ended or name == "memory pool end"
        _take_available(rank, statement, pools_ended=pools_ended)
    return rank


def _take_other(rank: RankSaid, statement: Statement) -> None:
    match statement.name:
        case "weights begin":
            rank.began = rank.began or statement
        case "distributed end" | "distributed memory" if statement.get("used_gib") is not None:
            rank.distributed = rank.distributed or statement
        case "mamba pool":
            rank.mamba = rank.mamba or statement
        case "sliding window tokens" | "sliding window pool":
            rank.window = rank.window or statement
        case "capacity":
            rank.capacity = statement


def _take_weights(rank: RankSaid, statement: Statement) -> None:
    main = rank.weights
    if main is None:
        rank.weights = statement
    elif not _another_ranks(main, statement):
        rank.draft_weights = statement


def _another_ranks(main: Statement, other: Statement) -> bool:
    """Whether a second line without a rank is another rank's rather than the draft worker's."""
    if main.speaker or main.get("architecture") != other.get("architecture"):
        return False
    first, second = number(amount(main, "used_gib")), number(amount(other, "used_gib"))
    return first is None or second is None or abs(first - second) <= SAME * max(first, second)


def _take_pool(rank: RankSaid, statement: Statement, *, pools_ended: bool) -> None:
    said = _facts(statement)
    if any(_facts(known) == said for known in (*rank.pools, *rank.draft_pools)):
        return
    if statement.name == "kv pool after capture":
        rank.pools = [statement]
        return
    tokens = statement.get("tokens")
    same_tokens = tokens is not None and any(known.get("tokens") == tokens for known in rank.pools)
    drafts = pools_ended and bool(rank.pools)
    drafts = drafts or (same_tokens and rank.window is None and statement.get("label") is None)
    (rank.draft_pools if drafts else rank.pools).append(statement)


def _facts(statement: Statement) -> tuple[str | None, ...]:
    return tuple(statement.get(group) for group in ("label", "tokens", "k_gib", "v_gib", "kv_gib"))


def graph_kind(what: str) -> str:
    """Which graphs a line is about: those of the draft model, of prompts, or of decoding."""
    words = what.lower().split()
    if "draft" in words:
        return "draft"
    return "prefill" if "prefill" in words or "piecewise" in words else "decode"


def _take_graphs(rank: RankSaid, statement: Statement) -> None:
    what = (statement.get("what") or "").strip()
    same = [capture for capture in rank.graphs if capture.what == what]
    if same and same[-1].end is not None and (not statement.speaker or graph_kind(what) != "draft"):
        return  # another rank's: only draft models of several layers capture the same thing again
    if statement.name == "graphs begin":
        if not same or same[-1].end is not None:
            rank.graphs.append(Captured(what, begin=statement))
    elif same and same[-1].end is None:
        same[-1].end = statement
    else:
        rank.graphs.append(Captured(what, end=statement))


def _take_available(rank: RankSaid, statement: Statement, *, pools_ended: bool) -> None:
    printed = statement.get("available_gib")
    if printed is None:
        return
    when = WHEN[statement.name]
    if statement.name == "weights end" and (rank.draft_weights is statement or pools_ended):
        when = "after loading the draft model"
    elif statement.name.startswith("graphs"):
        when = f"{when} ({graph_kind(statement.get('what') or '')})"
    rank.available.setdefault(when, printed)
    if statement.name not in ("weights begin", "weights end"):
        rank.left = (statement, when)


# --- ledger -----------------------------------------------------------------------------------------------------


def ledger(rank: RankSaid, fraction: Known | None, *, of_cpu: bool = False) -> tuple[Term, ...]:
    """The rank's memory as its lines state it; a term that no line states is left out.

    ``of_cpu``: what is free is the machine's memory, which other processes take and give back meanwhile: a difference
    of two such lines is no size of anything.
    """
    before = _before(rank)
    share = _static(before, fraction)
    source = STATIC if share else FREE
    uses = _uses(rank, source)
    terms: list[Term | None] = [
        _use("communication", _used(rank.distributed), None, "taken before what is free before loading is measured"),
        Term(name=FREE, kind="capacity", bytes=before, meaning="free on the device before the weights are loaded"),
        share,
        *uses,
    ]
    pool = kv_bytes(rank)
    if isinstance(pool, Known):
        what = "keys and values of all layers"
        terms.append(Term(name="KV cache", kind="remainder", bytes=pool, draws_on=source, meaning=what))
    terms += [_graph_term(rank, kind, name) for kind, name in GRAPH_TERMS]
    left = amount(rank.left[0], "available_gib") if rank.left else None
    if left and rank.left:
        terms.append(_left(left, rank.left[1]))
    stated = tuple(t for t in terms if t is not None)
    return tuple(t for t in stated if t.name != "weights") if of_cpu else _balanced(stated)


GRAPH_TERMS = (("decode", "graphs"), ("prefill", "prefill graphs"), ("draft", "draft graphs"))


def _left(left: Known, when: str) -> Term:
    return Term(name=LEFT, kind="remainder", bytes=left, draws_on=FREE, meaning=f"free on the device {when}")


def _use(name: str, value: Known | None, source: str | None, meaning: str) -> Term | None:
    return None if value is None else Term(name=name, kind="use", bytes=value, draws_on=source, meaning=meaning)


def _used(statement: Statement | None) -> Known | None:
    return None if statement is None else amount(statement, "used_gib")


def _uses(rank: RankSaid, source: str) -> list[Term | None]:
    draft_pool = pool_bytes(rank.draft_pools)
    return [
        _use("weights", _used(rank.weights), source, "what loading the model took"),
        _use("draft weights", _used(rank.draft_weights), source, "what loading the draft model took"),
        _use("Mamba state", mamba_bytes(rank.mamba), source, "states of the layers without keys and values"),
        _use(
            "draft KV cache",
            draft_pool if isinstance(draft_pool, Known) else None,
            source,
            "keys and values of the draft model",
        ),
    ]


def _before(rank: RankSaid) -> Value:
    """As printed, or what was free after loading and what loading took."""
    if rank.began and (stated := amount(rank.began, "available_gib")):
        return stated
    if rank.weights:
        after, used = amount(rank.weights, "available_gib"), amount(rank.weights, "used_gib")
        if after and used:
            return total([after, used], "avail mem + mem usage after loading")
    return Unknown(because=NO_LINE)


def _static(before: Value, fraction: Known | None) -> Term | None:
    share, size = number(fraction), number(before)
    if share is None or size is None or not isinstance(before, Known) or not 0 < share <= 1:
        return None
    value = Known(
        value=round(size * share),
        low=None if before.low is None else before.low * share,
        high=None if before.high is None else before.high * share,
        basis="engine rule",
        evidence=Evidence(source="rule", where=f"{FREE} x mem_fraction_static{_place(before)}"),
    )
    return Term(name=STATIC, kind="limit", bytes=value, draws_on=FREE, meaning="free before loading x the fraction")


def _place(value: Known) -> str:
    return f", line {value.evidence.line}" if value.evidence and value.evidence.line else ""


def total(parts: Sequence[Known], words: str) -> Known:
    """The sum of printed sizes, with the bounds of all their roundings."""
    lines = sorted({part.evidence.line for part in parts if part.evidence and part.evidence.line})
    where = f"{words}, line {' and '.join(map(str, lines))}" if lines else words
    bounds = [(part.low, part.high) for part in parts]
    whole = all(low is not None and high is not None for low, high in bounds)
    line, file = (parts[0].evidence.line, parts[0].evidence.file) if parts[0].evidence else (None, None)
    return Known(
        value=sum(int(number(part) or 0) for part in parts),
        low=sum(low or 0.0 for low, _ in bounds) if whole else None,
        high=sum(high or 0.0 for _, high in bounds) if whole else None,
        basis="engine rule",
        evidence=Evidence(source="rule", where=where, line=line, file=file),
    )


def _graph_term(rank: RankSaid, kind: str, name: str) -> Term | None:
    value = graph_bytes(rank, kind)
    return _use(name, value if isinstance(value, Known) else None, FREE, "what capturing took")


def _balanced(terms: tuple[Term, ...]) -> tuple[Term, ...]:
    """The ledger with what its lines do not explain, when enough is known to say so."""
    by_name = {term.name: term for term in terms}
    whole, left = number(by_name[FREE].bytes), by_name.get(LEFT)
    if whole is None or left is None or not {"weights", "KV cache"} <= by_name.keys():
        return terms
    parts = [t for t in terms if t.name not in (FREE, STATIC, "communication")]
    rest = whole - sum(number(part.bytes) or 0 for part in parts)
    play = sum(_play(term.bytes) for term in (*parts, by_name[FREE]))
    if abs(rest) <= play:
        return terms
    value = Known(
        value=round(rest),
        low=rest - play,
        high=rest + play,
        basis="engine rule",
        evidence=Evidence(source="rule", where=f"{FREE} - all that is stated - {LEFT}"),
    )
    meaning = "no line accounts for it: workspaces of the back ends, compilers, the allocator"
    return (*terms, Term(name="unexplained", kind="remainder", bytes=value, draws_on=FREE, meaning=meaning))


def _play(value: Value) -> float:
    if not isinstance(value, Known) or value.low is None or value.high is None:
        return 0.0
    return (value.high - value.low) / 2


# --- pools ------------------------------------------------------------------------------------------------------


def pool_bytes(pools: Iterable[Statement]) -> Value:
    """Keys and values of one or more pools of a rank."""
    parts: list[Known] = []
    words: list[str] = []
    for pool in pools:
        for group, word in (("k_gib", "K size"), ("v_gib", "V size"), ("kv_gib", "KV size")):
            if found := amount(pool, group):
                parts.append(found)
                words.append(word)
    if not parts:
        return Unknown(because=NO_LINE)
    return parts[0] if len(parts) == 1 else total(parts, " + ".join(words))


def kv_bytes(rank: RankSaid) -> Value:
    """Keys and values of all pools of a rank, or what one line says of them together."""
    if not rank.pools and rank.window and (both := amount(rank.window, "used_gib")):
        return both
    return pool_bytes(rank.pools)


def mamba_bytes(statement: Statement | None) -> Known | None:
    """All states of the Mamba pool."""
    if statement is None:
        return None
    groups = ("conv_gib", "ssm_gib", "intermediate_ssm_gib", "intermediate_conv_gib")
    parts = [found for group in groups if (found := amount(statement, group))]
    return total(parts, "sizes of the states") if parts else None


def pools(rank: RankSaid, context: Known | None, page: Known | None) -> tuple[Pool, ...]:
    """The rank's pools. ``context``: tokens of the longest request; ``page``: tokens of a page."""
    alone = len(rank.pools) == 1
    said = amount(rank.capacity, "tokens", basis="exact") if alone and rank.capacity else None
    longest = context if alone else None
    found = [_pool(p, _pool_name(p, rank), _kind(p, rank), page, longest, said) for p in rank.pools]
    if not rank.pools and rank.window and rank.window.name == "sliding window pool":
        found.append(_both_pools(rank.window, page, context))
    found += [_pool(p, "draft KV cache", _kind(p, rank), page, None, None) for p in rank.draft_pools]
    if rank.mamba:
        found.append(_state_pool(rank.mamba))
    return tuple(found)


def _both_pools(window: Statement, page: Known | None, context: Known | None) -> Pool:
    """The pools of both kinds of layers, of which only the line about both is there; that of full attention decides."""
    nothing = Unknown(because="the log does not say it of each kind of layers")
    group = Group(kind="full", layers=nothing, block_tokens=nothing, bytes_per_block=nothing)
    both = amount(window, "used_gib") or Unknown(because=NO_LINE)
    sized = _sized("KV cache", both, amount(window, "full_tokens", basis="exact"), page, context)
    return sized.model_copy(update={"groups": (group, group.model_copy(update={"kind": "sliding window"}))})


def _pool_name(pool: Statement, rank: RankSaid) -> str:
    part = window_part(pool, rank)
    return "KV cache" if part is None else f"KV cache ({part})"


def window_part(pool: Statement, rank: RankSaid) -> str | None:
    """Which layers a pool is of, where a model has layers of two kinds.

    By the label, else by the stated tokens, else by the rule that the sliding-window pool is no larger
    (``swa_full_tokens_ratio`` <= 1).
    """
    label = (pool.get("label") or "").lower()
    if label in ("swa", "full"):
        return "sliding window" if label == "swa" else "full attention"
    if label:
        return label
    if pool.get("tokens") is None:
        return None
    tokens = pool["tokens"].replace(",", "")
    if rank.window:
        if tokens == rank.window.get("full_tokens"):
            return "full attention"
        return "sliding window" if tokens == rank.window.get("swa_tokens") else None
    if len(rank.pools) < 2:
        return None
    most = max(int((other.get("tokens") or "0").replace(",", "")) for other in rank.pools)
    return "full attention" if int(tokens) == most else "sliding window"


def _kind(pool: Statement, rank: RankSaid) -> Group:
    nothing = Unknown(because="SGLang does not log it")
    part = window_part(pool, rank)
    if part == "sliding window":
        return Group(kind="sliding window", layers=nothing, block_tokens=nothing, bytes_per_block=nothing)
    one_size = pool.get("kv_gib") is not None and pool.name == "kv pool"
    return Group(kind="mla" if one_size else "full", layers=nothing, block_tokens=nothing, bytes_per_block=nothing)


def _pool(
    pool: Statement, name: str, group: Group, page: Known | None, context: Known | None, tokens: Known | None
) -> Pool:
    tokens = amount(pool, "tokens", basis="exact") or tokens
    sized = _sized(name, pool_bytes([pool]), tokens, page, context)
    return sized.model_copy(update={"groups": (group.model_copy(update={"block_tokens": sized.block_tokens}),)})


def _sized(name: str, size: Value, tokens: Known | None, page: Known | None, context: Known | None) -> Pool:
    return Pool(
        name=name,
        bytes=size,
        blocks=_pages(tokens, page),
        block_tokens=page or Unknown(because="the log does not state page_size"),
        tokens=tokens or Unknown(because=NO_LINE),
        max_concurrency=_concurrency(tokens, context),
        concurrency_at_tokens=context or Unknown(because="the log does not state context_len"),
        groups=(),
    )


def _pages(tokens: Known | None, page: Known | None) -> Value:
    size, count = number(page), number(tokens)
    if not size or count is None:
        return Unknown(because="the log does not state page_size" if not size else NO_LINE)
    where = Evidence(source="rule", where="#tokens // page_size")
    return Known(value=int(count // size), basis="engine rule", evidence=where)


def _concurrency(tokens: Known | None, context: Known | None) -> Value:
    longest, count = number(context), number(tokens)
    if not longest or count is None:
        return Unknown(because="SGLang does not log it")
    where = Evidence(source="rule", where=f"#tokens / context_len{_place(tokens) if tokens else ''}")
    return Known(value=round(count / longest, 2), basis="engine rule", evidence=where)


def _state_pool(statement: Statement) -> Pool:
    nothing = Unknown(because="states are not counted in tokens")
    slots = amount(statement, "slots", basis="exact")
    return Pool(
        name="Mamba state",
        bytes=mamba_bytes(statement) or Unknown(because=NO_LINE),
        blocks=slots or Unknown(because="this version does not log max_mamba_cache_size"),
        block_tokens=nothing,
        tokens=nothing,
        max_concurrency=nothing,
        concurrency_at_tokens=nothing,
        groups=(Group(kind="state", layers=nothing, block_tokens=nothing, bytes_per_block=nothing),),
    )


# --- graphs -----------------------------------------------------------------------------------------------------


def graph_bytes(rank: RankSaid, kind: str) -> Value:
    """What capturing the graphs of a kind took, all captures together."""
    captures = [capture for capture in rank.graphs if capture.kind == kind]
    if not captures:
        return Unknown(because="no graph was captured, or the log does not show it")
    sizes = [_captured_bytes(capture) for capture in captures]
    known = [size for size in sizes if isinstance(size, Known)]
    if len(known) < len(sizes):
        return next(size for size in sizes if isinstance(size, Unknown))
    return known[0] if len(known) == 1 else total(known, "mem usage of the captures")


def _captured_bytes(capture: Captured) -> Value:
    """As printed, or what was free before and after."""
    begin, end = capture.begin, capture.end
    if end is None:
        return Unknown(because="the end of the capture is not in the log")
    if used := amount(end, "used_gib"):
        return used
    before = amount(begin, "available_gib") if begin else None
    after = amount(end, "available_gib")
    if before is None or after is None:
        return Unknown(because="this version does not log what its graphs took")
    taken = int(number(before) or 0) - int(number(after) or 0)
    play = _play(before) + _play(after)
    return Known(
        value=taken,
        low=taken - play,
        high=taken + play,
        basis="engine rule",
        evidence=Evidence(source="rule", where=f"avail mem before - after{_place(before)}"),
    )


@dataclass(frozen=True)
class SaidOfGraphs:
    """Lines about graphs that only the first rank writes."""

    sizes: Value
    prefill_sizes: Value
    progress: Statement | None
    mode: Value


def graphs(rank: RankSaid, said: SaidOfGraphs, *, speaks: bool) -> Graphs:
    """The rank's graphs. ``speaks``: it is the rank whose progress bar the log shows."""
    end = next((capture.end for capture in rank.graphs if capture.kind == "decode"), None)
    seconds = amount(end, "elapsed_seconds") if end else None
    done = amount(said.progress, "done", basis="exact") if speaks and said.progress else None
    return Graphs(
        mode=said.mode,
        sizes=said.sizes,
        prefill_sizes=said.prefill_sizes,
        captured=done or Unknown(because="SGLang counts its graphs only in a progress bar"),
        bytes=graph_bytes(rank, "decode"),
        seconds=seconds or Unknown(because="the end of the capture is not in the log"),
    )
