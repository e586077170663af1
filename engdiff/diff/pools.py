"""Pools and ledgers: what the cache holds, and the memory lines around it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from engdiff.diff.findings import ConcurrencyMoved, Found, MemoryMoved, PoolGrew, PoolShrank
from engdiff.diff.settings import key_moved
from engdiff.diff.sides import whole
from engdiff.diff.tolerance import about_equal, equal, moved
from engdiff.diff.waterfall import closes, waterfall
from engdiff.schema.capture import Capture, Pool, Rank
from engdiff.schema.diff import NotCompared, Waterfall
from engdiff.schema.values import Known, number

EXPLICIT_SIZES = ("kv.configured_bytes", "kv.blocks_override")
"""Settings that give a pool its size outright: where one moved, the pool follows from it."""

REMAINDER_PLAY = 0.0025
"""By how much a pool that is what remains may differ between two starts of one thing, as a share: a choice, below the
1 % by which charging graphs to the budget (vLLM 0.21) made pools smaller."""

SMALLEST_LINE_BYTES = 2**20
"""Ledger lines that move by less than a MiB are not findings."""


RankPair = tuple[Rank, Rank]


def ranks(old: Capture, new: Capture) -> Iterator[tuple[Rank, Rank, str]]:
    """Ranks of the first instance that both sides have, with the words that tell them apart.

    Ranks that hold the same memory are told once: tensor parallelism makes many of a kind.
    """
    if not old.instances or not new.instances:
        return
    kinds: list[tuple[int, RankPair]] = []
    for index, pair in enumerate(_rank_pairs(old.instances[0].ranks, new.instances[0].ranks)):
        for place, (first, other) in enumerate(kinds):
            if _alike(pair[0], other[0]) and _alike(pair[1], other[1]):
                if _stated(pair) > _stated(other):
                    kinds[place] = (first, pair)
                break
        else:
            kinds.append((index, pair))
    for index, (left, right) in kinds:
        yield left, right, f", rank {index}" if len(kinds) > 1 else ""


def _rank_pairs(old: Sequence[Rank], new: Sequence[Rank]) -> Iterator[RankPair]:
    """The same place in the same grid, where each side names its places once; else one after the other."""
    left, right = {_place(r): r for r in old}, {_place(r): r for r in new}
    if len(left) == len(old) and len(right) == len(new) and (both := [place for place in left if place in right]):
        yield from ((left[place], right[place]) for place in both)
    else:
        yield from zip(old, new, strict=False)


def _place(rank: Rank) -> tuple[int, int, int, int]:
    return rank.tp, rank.pp, rank.dp, rank.ep


def _alike(a: Rank, b: Rank) -> bool:
    """Whether two ranks of one side hold the same memory; what one of them does not state tells nothing apart."""
    left, right = _memory(a), _memory(b)
    return all(about_equal(left[name], right[name]) for name in left.keys() & right.keys())


def _memory(rank: Rank) -> dict[str, Known]:
    """Everything about a rank's memory that a reader sees and that is known."""
    sizes = {f"term {term.name}": term.bytes for term in rank.ledger}
    for index, pool in enumerate(rank.pools):
        sizes |= {f"pool {index} {pool.name}": pool.bytes, f"requests {index} {pool.name}": pool.max_concurrency}
    return {name: size for name, size in sizes.items() if isinstance(size, Known)}


def _stated(pair: RankPair) -> int:
    return len(_memory(pair[0]).keys() & _memory(pair[1]).keys())


@dataclass(frozen=True)
class PoolPair:
    """One pool on both sides, with its ranks; ``key`` and ``name`` are those of its findings."""

    key: str
    name: str
    old_rank: Rank
    new_rank: Rank
    old: Pool
    new: Pool


def pool_pairs(old: Capture, new: Capture) -> Iterator[PoolPair]:
    """Pools of the same name on the same rank; of those left over, as many on both sides, one after the other."""
    for left, right, suffix in ranks(old, new):
        for i, j in matched(_names(left), _names(right)):
            name = left.pools[i].name if left.pools[i].name == right.pools[j].name else right.pools[j].name
            which = (f"pool {i}" if i else "") if i == j else name
            inside = ", ".join(filter(None, (suffix.removeprefix(", "), which)))
            key = f"kv.pool_bytes[{inside}]" if inside else "kv.pool_bytes"
            yield PoolPair(key, f"the {name}{suffix}", left, right, left.pools[i], right.pools[j])


def matched(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """Places of the same names (the second of a name with the second); the rest by position, if as many remain."""
    left, right = _numbered(old), _numbered(new)
    pairs = [(i, right[name]) for name, i in left.items() if name in right]
    rest = [i for name, i in left.items() if name not in right], [j for name, j in right.items() if name not in left]
    if len(rest[0]) == len(rest[1]):
        pairs += zip(*rest, strict=True)
    return sorted(pairs)


def _numbered(names: Sequence[str]) -> dict[tuple[str, int], int]:
    """(name, which of that name) to position."""
    return {(name, list(names[:place]).count(name)): place for place, name in enumerate(names)}


def _names(rank: Rank) -> tuple[str, ...]:
    return tuple(pool.name for pool in rank.pools)


def pools_not_compared(old: Capture, new: Capture) -> Iterator[NotCompared]:
    """Pools that one side alone has."""
    told: set[tuple[str, str]] = set()
    for left, right, _ in ranks(old, new):
        pairs = matched(_names(left), _names(right))
        places = ({i for i, _ in pairs}, {j for _, j in pairs})
        for side, rank, paired in (("old", left, places[0]), ("new", right, places[1])):
            told |= {(p.name, side) for place, p in enumerate(rank.pools) if place not in paired}
    for name, side in sorted(told):
        yield NotCompared(what=f"the pool “{name}”", because=f"only the {side} side states it")


def pools_found(old: Capture, new: Capture) -> Iterator[Found]:
    """Pools that grew or shrank, and ledger lines that moved."""
    sizes = tuple(size for size in EXPLICIT_SIZES if key_moved(size, old, new))
    for pair in pool_pairs(old, new):
        yield from _pool(pair.key, pair.name, pair.old, pair.new, sizes)
    for left, right, suffix in ranks(old, new):
        yield from _lines(left, right, suffix)


def _pool(key: str, name: str, a: Pool, b: Pool, sizes: tuple[str, ...]) -> Iterator[Found]:
    before, after = number(a.bytes), number(b.bytes)
    if before is None or after is None:
        return
    if not _same_size(a, b):
        grew = after > before
        yield (PoolGrew if grew else PoolShrank)(
            key=key,
            name=name,
            old=a.bytes,
            new=b.bytes,
            unit="bytes",
            area="memory",
            why=_pool_why(a, b),
            evidence=_pool_evidence(a, b),
            follows_from=(*_moved_factors(a, b), *sizes),
        )
    elif moved(a.max_concurrency, b.max_concurrency):
        yield ConcurrencyMoved(
            key=key.replace("kv.pool_bytes", "kv.max_concurrency"),
            name="requests of full length that fit",
            old=a.max_concurrency,
            new=b.max_concurrency,
            area="memory",
            why="As many bytes hold another number of requests: each needs other memory.",
        )


def _same_size(a: Pool, b: Pool) -> bool:
    """A pool that is a product is what was asked for, to the byte; one that remains differs from start to start."""
    if equal(a.bytes, b.bytes):
        return True
    before, after = number(a.bytes), number(b.bytes)
    if a.factors or b.factors or before is None or after is None:
        return False
    return abs(before - after) <= REMAINDER_PLAY * max(abs(before), abs(after))


def _pool_why(a: Pool, b: Pool) -> str:
    before, after = number(a.max_concurrency), number(b.max_concurrency)
    length = number(b.concurrency_at_tokens)
    if before is None or after is None or length is None:
        return "It bounds how many tokens can be held at once."
    was = number(a.concurrency_at_tokens)
    at_old = f"{_requests(before)} of {was:,.0f} tokens" if was else _requests(before)
    return f"It held {at_old}; now {_requests(after)} of {length:,.0f} tokens."


def _requests(count: float) -> str:
    return f"{count:,.0f} requests" if count >= 100 else f"{count:.3g} requests"


def _pool_evidence(a: Pool, b: Pool) -> tuple[str, ...]:
    """The log lines that state the sizes, where the log does."""
    stated = [p.bytes.evidence for p in (a, b) if isinstance(p.bytes, Known) and p.bytes.evidence]
    return tuple(f"line {e.line}: {' '.join(e.where.split())}" for e in stated if e.source == "log")


def _moved_factors(a: Pool, b: Pool) -> tuple[str, ...]:
    """Canonical keys of the factors that differ."""
    before = {factor.name: factor.value for factor in a.factors}
    return tuple(f.setting for f in b.factors if f.setting and f.name in before and moved(before[f.name], f.value))


def _lines(left: Rank, right: Rank, suffix: str) -> Iterator[Found]:
    """Uses of memory that moved; the cache itself is told by its pool."""
    before = {t.name: t for t in left.ledger if t.kind == "use" and t.name != "KV cache"}
    after = {t.name: t for t in right.ledger if t.kind == "use" and t.name != "KV cache"}
    for name in before.keys() & after.keys():
        a, b = before[name], after[name]
        size_a, size_b = number(a.bytes), number(b.bytes)
        if size_a is None or size_b is None or abs(size_b - size_a) < SMALLEST_LINE_BYTES:
            continue
        if about_equal(a.bytes, b.bytes):
            continue
        yield MemoryMoved(
            key=f"memory.{name.replace(' ', '_')}" + (f"[{suffix.removeprefix(', ')}]" if suffix else ""),
            name=f"memory for {name}{suffix}",
            old=a.bytes,
            new=b.bytes,
            unit="bytes",
            area="memory",
            why=f"{b.meaning[:1].upper()}{b.meaning[1:]}: what it takes, something else cannot have.",
        )


def pool_waterfalls(old: Capture, new: Capture) -> Iterator[Waterfall]:
    """One waterfall for each pool whose size moved. A line that a side does not state is no line of nothing."""
    for pair in pool_pairs(old, new):
        if _same_size(pair.old, pair.new):
            continue
        complete = (_complete(old, pair.old_rank, pair.old), _complete(new, pair.new_rank, pair.new))
        found = waterfall(pair.name, pair.old_rank, pair.new_rank, pair.old, pair.new, complete=complete)
        if found:
            yield found


def _complete(capture: Capture, rank: Rank, pool: Pool) -> bool:
    """Whether a line that the ledger does not have takes nothing: all is seen, or the lines leave the pool."""
    return whole(capture) or closes(rank.ledger, pool)
