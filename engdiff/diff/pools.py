"""Pools and ledgers: what the cache holds, and the memory lines around it."""

from __future__ import annotations

from collections.abc import Iterator

from engdiff.diff.findings import ConcurrencyMoved, Found, MemoryMoved, PoolGrew, PoolShrank
from engdiff.diff.settings import key_moved
from engdiff.diff.tolerance import equal, moved
from engdiff.diff.waterfall import waterfall
from engdiff.schema.capture import Capture, Pool, Rank
from engdiff.schema.diff import Waterfall
from engdiff.schema.values import Known, number

EXPLICIT_SIZES = ("kv.configured_bytes", "kv.blocks_override")
"""Settings that give a pool its size outright: where one moved, the pool follows from it."""

SMALLEST_LINE_BYTES = 2**20
"""Ledger lines that move by less than a MiB are not findings."""


def ranks(old: Capture, new: Capture) -> Iterator[tuple[Rank, Rank, str]]:
    """Ranks of the first instance that both sides have, with the words that tell them apart.

    Ranks that hold the same memory are told once: tensor parallelism makes many of a kind.
    """
    if not old.instances or not new.instances:
        return
    pairs = zip(old.instances[0].ranks, new.instances[0].ranks, strict=False)
    distinct: dict[object, tuple[int, Rank, Rank]] = {}
    for index, (left, right) in enumerate(pairs):
        distinct.setdefault((_memory(left), _memory(right)), (index, left, right))
    for index, left, right in distinct.values():
        yield left, right, f", rank {index}" if len(distinct) > 1 else ""


def _memory(rank: Rank) -> object:
    """Everything about a rank's memory that a reader sees."""
    return (
        tuple((term.name, number(term.bytes)) for term in rank.ledger),
        tuple((pool.name, number(pool.bytes), number(pool.max_concurrency)) for pool in rank.pools),
    )


def pool_pairs(old: Capture, new: Capture) -> Iterator[tuple[str, str, Rank, Rank, Pool, Pool]]:
    """Pools of the same name on the same rank."""
    for left, right, suffix in ranks(old, new):
        for index, (a, b) in enumerate(zip(left.pools, right.pools, strict=False)):
            where = [suffix.removeprefix(", "), f"pool {index}" if index else ""]
            inside = ", ".join(filter(None, where))
            key = f"kv.pool_bytes[{inside}]" if inside else "kv.pool_bytes"
            yield key, f"the {b.name}{suffix}", left, right, a, b


def pools_found(old: Capture, new: Capture) -> Iterator[Found]:
    """Pools that grew or shrank, and ledger lines that moved."""
    for key, name, _, _, a, b in pool_pairs(old, new):
        sizes = tuple(size for size in EXPLICIT_SIZES if key_moved(size, old, new))
        yield from _pool(key, name, a, b, sizes)
    for left, right, suffix in ranks(old, new):
        yield from _lines(left, right, suffix)


def _pool(key: str, name: str, a: Pool, b: Pool, sizes: tuple[str, ...]) -> Iterator[Found]:
    before, after = number(a.bytes), number(b.bytes)
    if before is None or after is None:
        return
    if not equal(a.bytes, b.bytes):
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
    pairs = zip(a.factors, b.factors, strict=False)
    return tuple(y.setting for x, y in pairs if y.setting and not equal(x.value, y.value))


def _lines(left: Rank, right: Rank, suffix: str) -> Iterator[Found]:
    """Uses of memory that moved; the cache itself is told by its pool."""
    before = {t.name: t for t in left.ledger if t.kind == "use" and t.name != "KV cache"}
    after = {t.name: t for t in right.ledger if t.kind == "use" and t.name != "KV cache"}
    for name in before.keys() & after.keys():
        a, b = before[name], after[name]
        size_a, size_b = number(a.bytes), number(b.bytes)
        if size_a is None or size_b is None or equal(a.bytes, b.bytes) or abs(size_b - size_a) < SMALLEST_LINE_BYTES:
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
    """One waterfall for each pool whose size moved."""
    for _, name, left, right, a, b in pool_pairs(old, new):
        if not equal(a.bytes, b.bytes) and (found := waterfall(name, left, right, a, b)):
            yield found
