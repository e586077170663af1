"""Ranks, ledgers and pools from a log of vLLM.

Each worker states its own memory; the engine core states the pool of its engine. The worker with the least memory
decides how large the pool is for all workers of an engine (vllm/v1/core/kv_cache_utils.py, vllm/executor), and every
engine of a data-parallel set has its own pool.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from engdiff.engines.vllm import log_graphs
from engdiff.logs.starts import Start
from engdiff.logs.statements import Statement
from engdiff.logs.values import amount
from engdiff.schema.capture import Device, Pool, Rank, Setting, Term
from engdiff.schema.values import Evidence, Known, Unknown, Value, number, plain

WORKER_LINES = (
    "weights",
    "budget",
    "memory split",
    "memory results",
    "profile result",
    "requested memory",
    "free memory check",
    "HPU memory",
    "memory summary",
    "KV in use",
    "KV set outright",
    "startup plan",
    "available KV",
    "CPU KV",
    "multimodal reserve",
    "graph plan",
    "graph estimate",
    "graph memory counted",
    "graph memory not counted",
    "graph pool",
    "graphs",
)
"""Statements that a worker makes about its own memory."""

ENGINE_LINES = ("KV tokens", "concurrency", "blocks", "blocks overridden", "engine blocks", "KV check", "KV multiplied")
"""Statements about the pool of one engine."""

UNNUMBERED = ("VllmWorkerProcess", "RayWorkerWrapper")
"""Workers whose prefix names no rank (V0); the driver beside them has no process in its prefix."""

NOT_STATED = "the log does not state it"
LIMIT = "vLLM may use"
DEFAULT_BLOCK_TOKENS = 16
"""Of V0 and the first V1 on CUDA, when nobody set it (vllm/config.py ``CacheConfig``, 0.2 to 0.10)."""


@dataclass(frozen=True)
class Place:
    """A worker's ranks; ``rank`` is that among the workers of its engine, where only that is printed."""

    dp: int = 0
    pp: int = 0
    tp: int = 0
    ep: int = 0


@dataclass
class Worker:
    """One worker and what it said, by name of the statement; of repetitions the last."""

    place: Place
    said: dict[str, Statement] = field(default_factory=dict)

    def get(self, group: str, *names: str) -> Known | None:
        """The group of the first of these statements that has it, as bytes or as a number."""
        for name in names:
            statement = self.said.get(name)
            if statement and (found := amount(statement, group)):
                return found
        return None


def ranks(start: Start, settings: Mapping[str, Setting]) -> tuple[Rank, ...]:
    """One rank for each worker that stated memory; an engine of which only the pool is stated has one as well."""
    workers = _workers(start, settings)
    engines = _engines(start)
    for dp in engines:
        if not any(worker.place.dp == dp for worker in workers):
            workers.append(Worker(Place(dp=dp)))
    workers.sort(key=lambda w: (w.place.dp, w.place.pp, w.place.tp, w.place.ep))
    return tuple(
        _rank(worker, [w for w in workers if w.place.dp == worker.place.dp], engines, start, settings)
        for worker in workers
    )


def notes(start: Start, settings: Mapping[str, Setting]) -> list[str]:
    """What a reader of the ranks must know."""
    found = []
    unnumbered = {_key(s) for s in start.all(*WORKER_LINES) if s.said.process.startswith(UNNUMBERED)}
    if unnumbered:
        found.append(
            "the prefixes of the log name no ranks: the line without a process is counted as rank 0, the others in the "
            "order of their process ids"
        )
    decided = [(w.place, kv) for w in _workers(start, settings) if (kv := _kv(w))]
    if len({plain(kv) for _, kv in decided}) > 1:
        found.append(
            "the workers have different memory left for the KV cache: the smallest decides for all of an engine"
        )
    found += _repeated(start)
    for dp, said in _engines(start).items():
        found += _disagreement(dp, said)
    return found


def _repeated(start: Start) -> list[str]:
    """A pool stated several times with different sizes by a speaker that names no engine."""
    sizes = [s for s in start.all("KV tokens") if not s.said.ranks.get("dp")]
    different = {s["kv_tokens"] for s in sizes}
    if len(different) < 2:
        return []
    lines = ", ".join(str(s.line.number) for s in sizes)
    used = "smallest, which decides for all workers of an engine," if _by_worker(start) else "last"
    return [f"the size of the KV cache is stated more than once (lines {lines}); the {used} is used, nothing is summed"]


def _disagreement(dp: int, said: Mapping[str, Statement]) -> list[str]:
    """Tokens that are not concurrency x length: how 0.7 to 0.19 count a model with several kinds of layers."""
    tokens, concurrency, length = _pool_numbers(said)
    if tokens is None or not concurrency or not length:
        return []
    product = concurrency * length
    if abs(product - tokens) <= 0.0051 * length + 0.005 * tokens:
        return []
    engine = f" of engine {dp}" if dp else ""
    return [
        f"the printed KV cache size{engine} ({tokens:,.0f} tokens) is not maximum concurrency x length "
        f"({product:,.0f}): up to 0.19 vLLM divides the blocks of a hybrid model by its groups; compare bytes and "
        "maximum concurrency"
    ]


def _pool_numbers(said: Mapping[str, Statement]) -> tuple[float | None, float | None, float | None]:
    def one(name: str, group: str) -> float | None:
        return number(amount(said[name], group)) if name in said else None

    return one("KV tokens", "kv_tokens"), one("concurrency", "concurrency"), one("concurrency", "length_tokens")


# --- who speaks -------------------------------------------------------------------------------------------------

Key = tuple[str | None, str, str | int]


def _key(statement: Statement) -> Key:
    """A process: by its id, else by its name."""
    said, line = statement.said, statement.line
    host = said.process.partition(" ip=")[2]
    return line.file, host, said.pid if said.pid is not None else said.process


def _workers(start: Start, settings: Mapping[str, Setting]) -> list[Worker]:
    by_key: dict[Key, list[Statement]] = {}
    for statement in start.all(*WORKER_LINES):
        by_key.setdefault(_key(statement), []).append(statement)
    _adopt_nameless(by_key)
    places = _places(by_key, settings)
    return [Worker(places[key], {s.name: s for s in said}) for key, said in by_key.items()]


def _adopt_nameless(by_key: dict[Key, list[Statement]]) -> None:
    """Lines whose prefix was lost belong to the only worker there is; beside unnumbered workers they are the driver."""
    nameless = [key for key, said in by_key.items() if not said[0].said.process and not said[0].said.ranks]
    named = [key for key in by_key if key not in nameless]
    if len(nameless) != 1 or len(named) != 1 or by_key[named[0]][0].said.process.startswith(UNNUMBERED):
        return
    together = by_key.pop(nameless[0]) + by_key[named[0]]
    by_key[named[0]] = sorted(together, key=lambda s: s.line.number)


def _places(by_key: Mapping[Key, Sequence[Statement]], settings: Mapping[str, Setting]) -> dict[Key, Place]:
    places: dict[Key, Place] = {}
    unnumbered = []
    tp_size = _size(settings, "parallel.tp")
    for key, said in by_key.items():
        stated = max((s.said.ranks for s in said), key=len)
        if stated or not said[0].said.process.startswith(UNNUMBERED):
            places[key] = _place(stated, tp_size)
        else:
            unnumbered.append(key)
    first = 1 if any(not said[0].said.process for said in by_key.values()) else 0
    for index, key in enumerate(sorted(unnumbered, key=_by_id), start=first):
        places[key] = _place({"rank": index}, tp_size)
    return places


def _by_id(key: Key) -> tuple[str, str, int, str]:
    file, host, process = key
    return file or "", host, process if isinstance(process, int) else -1, str(process)


def _size(settings: Mapping[str, Setting], key: str) -> int | None:
    setting = settings.get(key)
    size = number(setting.final) or number(setting.configured) if setting else None
    return int(size) if size and size >= 1 else None


def _place(stated: Mapping[str, int], tp_size: int | None) -> Place:
    """``rank`` counts tensor ranks first, then pipeline stages (vllm/distributed/parallel_state.py)."""
    rank = stated.get("rank", 0)
    pp, tp = divmod(rank, tp_size) if tp_size else (0, rank)
    return Place(stated.get("dp", 0), stated.get("pp", pp), stated.get("tp", tp), stated.get("ep", 0))


def _engines(start: Start) -> dict[int, dict[str, Statement]]:
    """What each engine's core said of its pool, by data-parallel rank; of repetitions the last.

    A size for each worker is printed before the smallest is given to all (vllm/v1/engine/core.py, 0.7 to 0.10).
    """
    found: dict[int, dict[str, Statement]] = {}
    by_worker = _by_worker(start)
    for statement in start.all(*ENGINE_LINES):
        said = found.setdefault(statement.said.ranks.get("dp", 0), {})
        known = said.get(statement.name)
        if not (by_worker and known and _smaller(known, statement)):
            said[statement.name] = statement
    return found


def _by_worker(start: Start) -> bool:
    """Whether repeated sizes are those of the workers: all are counted at one length."""
    return len({s["length_tokens"] for s in start.all("concurrency")}) == 1


def _smaller(left: Statement, right: Statement) -> bool:
    """Whether the first states the smaller pool."""
    group = {"KV tokens": "kv_tokens", "concurrency": "concurrency"}.get(left.name)
    sizes = [number(amount(one, group)) for one in (left, right)] if group else [None]
    return None not in sizes and (sizes[0] or 0) < (sizes[1] or 0)


# --- one rank ---------------------------------------------------------------------------------------------------


def _rank(
    worker: Worker,
    peers: Sequence[Worker],
    engines: Mapping[int, Mapping[str, Statement]],
    start: Start,
    settings: Mapping[str, Setting],
) -> Rank:
    core = engines.get(worker.place.dp, {})
    return Rank(
        tp=worker.place.tp,
        pp=worker.place.pp,
        dp=worker.place.dp,
        ep=worker.place.ep,
        device=device_kind(start),
        ledger=_ledger(worker, start, worker.place.dp),
        pools=_pools(worker, peers, core, settings),
        graphs=log_graphs.graphs(start, settings, worker.said),
    )


def device_kind(start: Start) -> str:
    """What the log says it runs on; empty words are worse than these."""
    if start.last_of("CPU KV", "CPU KV default"):
        return "cpu"
    summary = start.last_of("memory summary")
    return (summary.get("device") if summary else None) or "gpu"


def devices(start: Start, settings: Mapping[str, Setting]) -> tuple[Device, ...]:
    """One device for each worker that stated the memory of its own."""
    kind = device_kind(start)
    totals = [total for worker in _workers(start, settings) if (total := _total(worker))]
    return tuple(
        Device(kind="cpu" if kind == "cpu" else "gpu", name="not named in the log", memory_bytes=total)
        for total in totals
    )


_WITH_TOTAL = ("memory summary", "budget", "memory results", "CPU KV", "free memory check", "weights")


def _total(worker: Worker) -> Known | None:
    return worker.get("total_gib", *_WITH_TOTAL) or worker.get("total_bytes", "available KV")


def _kv(worker: Worker) -> Known | None:
    """What is left for the KV cache, as this worker says it."""
    names = (
        "available KV",
        "memory split",
        "memory results",
        "KV in use",
        "KV set outright",
        "startup plan",
        "CPU KV",
        "HPU memory",
    )
    return worker.get("kv_gib", "multimodal reserve", *names) or worker.get("kv_bytes", *names)


def _limit(worker: Worker) -> Known | None:
    """Stated, else total x utilisation, as the worker computes it (vllm/worker/worker.py 0.6.4 to 0.6.6)."""
    stated = worker.get("budget_gib", "memory summary", "requested memory", "budget", "CPU KV", "free memory check")
    total, share = worker.get("total_gib", "memory results"), worker.get("utilization", "memory results")
    if stated or not total or not share or total.evidence is None:
        return stated
    low, high = (_times(total, share, bound) for bound in ("low", "high"))
    where = f"total_gpu_memory x gpu_memory_utilization, line {total.evidence.line}"
    value = round((number(total) or 0) * (number(share) or 0))
    return Known(value=value, low=low, high=high, basis="engine rule", evidence=Evidence(source="rule", where=where))


def _times(left: Known, right: Known, bound: str) -> float:
    return float(getattr(left, bound) or number(left) or 0) * float(getattr(right, bound) or number(right) or 0)


def _ledger(worker: Worker, start: Start, dp: int) -> tuple[Term, ...]:
    """Capacity, limit, what is used, what remains: those lines that the log states."""
    cpu = "CPU KV" in worker.said
    capacity = "memory of the node" if cpu else "device memory"
    terms: list[Term | None] = [
        _term(capacity, "capacity", _total(worker)),
        _term(LIMIT, "limit", _limit(worker), capacity, "memory x gpu_memory_utilization" if cpu else _SHARE),
        *_uses(worker, start),
        *_remainder(worker, start, dp),
    ]
    return _balanced(tuple(term for term in terms if term is not None))


_SHARE = "device memory x gpu_memory_utilization"


def _term(name: str, kind: str, value: Known | None, draws_on: str | None = None, meaning: str = "") -> Term | None:
    if value is None:
        return None
    return Term(name=name, kind=kind, bytes=value, draws_on=draws_on, meaning=meaning)  # type: ignore[arg-type]


def _uses(worker: Worker, start: Start) -> Iterable[Term | None]:
    """What is taken out of the limit. Where a line holds several at once, they draw on that line instead."""
    consumed = worker.get("consumed_gib", "memory summary", "profile result")
    peak = worker.get("peak_torch_gib", "memory results")
    process = worker.get("consumed_gib", "CPU KV")
    whole = "consumed" if consumed else "torch peak" if peak else LIMIT
    yield _term("process of the worker", "use", process, LIMIT, "resident memory: libraries, weights, buffers")
    yield _term("consumed", "use", consumed, LIMIT, "GPU memory consumed after loading: weights and outside torch")
    yield _term("torch peak", "use", peak, LIMIT, "weights and the largest step together")
    yield _term("weights", "use", _weights(worker), whole, "parameters and buffers of the model")
    activation = worker.get("activation_gib", "memory summary", "memory split")
    activation = activation or worker.get("peak_increase_gib", "profile result")
    yield _term("activation peak", "use", activation, LIMIT, "largest step, profiled")
    outside = worker.get("non_torch_gib", "memory summary", "memory split", "memory results", "profile result")
    yield _term("outside torch", "use", outside, LIMIT, "communication libraries, context")
    yield log_graphs.term(start, worker.said, LIMIT, in_peak=consumed is not None and activation is not None)


def _weights(worker: Worker) -> Known | None:
    """With most digits: the line of the loader, else the memory split."""
    loaded = worker.get("weights_gib", "weights") or worker.get("weights_mib", "weights")
    return loaded or worker.get("weights_gib", "memory summary", "memory split", "profile result")


def _remainder(worker: Worker, start: Start, dp: int) -> Iterable[Term | None]:
    """What is left; where only the check of the pool states it, the smallest of all workers.

    A size that was set outright is a limit of its own, as in a launched capture; nothing is profiled then.
    """
    found, limit, meaning = _kv(worker), LIMIT, "what is left; the pool is whole blocks of it"
    cpu = worker.said.get("CPU KV")
    if {"KV set outright", "startup plan"} & set(worker.said) or (cpu and cpu["how"] == "Explicitly"):
        limit, meaning = "KV cache asked for", "the pool is whole blocks of it"
        yield _term(limit, "limit", found, meaning="set outright; nothing is profiled")
    if found is None:
        check = next((s for s in reversed(list(start.all("KV check"))) if s.said.ranks.get("dp", 0) == dp), None)
        found = amount(check, "kv_gib") if check else None
        meaning = "what is left on the worker that has least"
    yield _term("KV cache", "remainder", found, limit, meaning)


def _balanced(terms: tuple[Term, ...]) -> tuple[Term, ...]:
    """With what the lines leave unexplained, when the limit, what is used and what remains are all stated."""
    by_name = {term.name: term.bytes for term in terms if isinstance(term.bytes, Known)}
    parts = [term.bytes for term in terms if term.draws_on == LIMIT and isinstance(term.bytes, Known)]
    used = {"consumed", "torch peak", "outside torch", "process of the worker"} & by_name.keys()
    peak = {"activation peak", "torch peak", "process of the worker"} & by_name.keys()
    if LIMIT not in by_name or "KV cache" not in by_name or not used or not peak:
        return terms
    rest = (number(by_name[LIMIT]) or 0) - sum(number(part) or 0 for part in parts)
    play = sum(_half(part) for part in (*parts, by_name[LIMIT]))
    if abs(rest) <= play:
        return terms
    value = Known(value=round(rest), low=rest - play, high=rest + play, basis="engine rule", evidence=_RULE)
    meaning = "no line accounts for it"
    return (*terms, Term(name="unexplained", kind="remainder", bytes=value, draws_on=LIMIT, meaning=meaning))


_RULE = Evidence(source="rule", where="limit - everything that draws on it")


def _half(value: Known) -> float:
    return (value.high - value.low) / 2 if value.high is not None and value.low is not None else 0.0


# --- pools ------------------------------------------------------------------------------------------------------


def _pools(
    worker: Worker,
    peers: Sequence[Worker],
    core: Mapping[str, Statement],
    settings: Mapping[str, Setting],
) -> tuple[Pool, ...]:
    size = _pool_bytes(worker, peers)
    blocks = next(
        (
            found
            for name in ("blocks overridden", "engine blocks", "blocks")
            if name in core and (found := amount(core[name], "gpu_blocks", basis="measured"))
        ),
        None,
    )
    if size is None and not any(name != "KV check" or statement.get("kv_tokens") for name, statement in core.items()):
        return ()
    concurrency = core.get("concurrency")
    at = amount(concurrency, "length_tokens", basis="exact") if concurrency else None
    often = amount(concurrency, "concurrency") if concurrency else None
    block = _block_tokens(settings, core, blocks, often, at)
    return (
        Pool(
            name="KV cache",
            bytes=size or Unknown(because=NOT_STATED),
            blocks=blocks or Unknown(because="this version does not print the number of blocks"),
            block_tokens=block,
            tokens=_tokens(core, blocks, block),
            max_concurrency=often or Unknown(because=NOT_STATED),
            concurrency_at_tokens=at or Unknown(because=NOT_STATED),
        ),
    )


def _pool_bytes(worker: Worker, peers: Sequence[Worker]) -> Known | None:
    """The smallest of the workers that hold the same layers decides; pipeline stages hold different ones."""
    alike = [kv for peer in peers if peer.place.pp == worker.place.pp and (kv := _kv(peer))]
    return min(alike, key=lambda kv: number(kv) or 0, default=None)


def _block_tokens(
    settings: Mapping[str, Setting],
    core: Mapping[str, Statement],
    blocks: Known | None,
    concurrency: Known | None,
    length: Known | None,
) -> Value:
    """As set, else as blocks, concurrency and length give it, else this version's default; each says which."""
    setting = settings.get("kv.block_size")
    if setting and isinstance(setting.final, Known):
        return setting.final
    if setting and setting.configured and number(setting.configured):
        return setting.configured
    if blocks is None or "blocks" not in core:
        return Unknown(because=NOT_STATED)
    if found := _from_concurrency(blocks, concurrency, length):
        return found
    if core["blocks"].get("device") not in ("GPU", "cuda", "CUDA"):
        return Unknown(because="the default of this device is not known")
    where = f"the default block size where none is set ({DEFAULT_BLOCK_TOKENS} tokens), blocks of line {_line(blocks)}"
    return Known(value=DEFAULT_BLOCK_TOKENS, basis="engine rule", evidence=Evidence(source="rule", where=where))


def _from_concurrency(blocks: Known, concurrency: Known | None, length: Known | None) -> Known | None:
    """V0 prints concurrency as blocks x block size / length (vllm/executor/executor_base.py 0.6.2 to 0.10)."""
    count, often, each = number(blocks), number(concurrency), number(length)
    if not count or not often or not each:
        return None
    size = often * each / count
    play = 0.005 / often * size
    if round(size) < 1 or abs(size - round(size)) > play + 1e-9:
        return None
    where = f"concurrency x length / blocks, lines {_line(concurrency)} and {_line(blocks)}"
    return Known(value=round(size), basis="engine rule", evidence=Evidence(source="rule", where=where))


def _tokens(core: Mapping[str, Statement], blocks: Known | None, block: Value) -> Value:
    """As printed, else blocks x block size."""
    if "KV tokens" in core and (found := amount(core["KV tokens"], "kv_tokens")):
        return found
    check = core.get("KV check")
    if check and (stored := amount(check, "kv_tokens")):
        return stored
    count, each = number(blocks), number(block)
    if count is None or each is None:
        return Unknown(because=NOT_STATED)
    where = f"{count:.0f} blocks x {each:.0f} tokens, line {_line(blocks)}"
    return Known(value=round(count * each), basis="engine rule", evidence=Evidence(source="rule", where=where))


def _line(value: Known | None) -> int | None:
    return value.evidence.line if value and value.evidence else None
