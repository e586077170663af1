"""What the KV cache of one rank comes to, in units that both engines share: bytes, tokens, requests of one length."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from engdiff.diff.across.party import Party
from engdiff.diff.findings import Found, PoolDiffers
from engdiff.diff.tolerance import about_equal, moved
from engdiff.schema.capture import Group, Pool, Rank
from engdiff.schema.diff import Beside
from engdiff.schema.values import Known, Unknown, Value, number
from engdiff.schema.wording import show

LINEAR = ("full", "mla")
"""Kinds of layers whose cache grows by the same bytes with each token of a request."""

LIMIT = "scheduler.max_num_seqs"

SIZES = ("kv.configured_bytes", "kv.configured_tokens", "kv.blocks_override", "model.context_total")
"""Settings that give a KV cache its size outright, each in its own unit."""

NO_POOL = Unknown(because="no KV cache is stated")
NOT_LINEAR = Unknown(because="layers of several kinds: a token has no one size")
KINDS_UNKNOWN = Unknown(because="it is not stated whether all layers keep all tokens")


def kv_pools(rank: Rank | None) -> tuple[Pool, ...]:
    """The pools of keys and values of the model that is served: neither states nor those of a draft model."""
    found = rank.pools if rank else ()
    return tuple(
        pool
        for pool in found
        if "draft" not in pool.name and not (pool.groups and all(g.kind == "state" for g in pool.groups))
    )


@dataclass(frozen=True)
class Cache:
    """The KV cache of a rank, all its pools together."""

    party: Party

    @cached_property
    def pools(self) -> tuple[Pool, ...]:
        """The pools that it is made of."""
        return kv_pools(self.party.rank)

    @property
    def bytes(self) -> Value:
        """All of it."""
        if len(self.pools) == 1:
            return self.pools[0].bytes
        sizes = [pool.bytes for pool in self.pools]
        if not sizes or not all(isinstance(size, Known) for size in sizes):
            return next((size for size in sizes if isinstance(size, Unknown)), NO_POOL)
        return Known(value=round(sum(number(size) or 0 for size in sizes)), basis="engine rule")

    @property
    def _linear(self) -> Unknown | None:
        """``None`` where each token of a request takes the same bytes; else why not, or why that is not known."""
        if not self.pools:
            return NO_POOL
        groups = [group for pool in self.pools for group in pool.groups]
        if len(self.pools) > 1 or any(group.kind not in LINEAR for group in groups):
            return NOT_LINEAR
        return None if groups else KINDS_UNKNOWN

    @property
    def token_bytes(self) -> Value:
        """Bytes of one token: of its blocks where they are known, else bytes / tokens."""
        if (why := self._linear) is not None:
            return why
        pool = self.pools[0]
        each = [_token_bytes(group) for group in pool.groups]
        if all(size is not None for size in each):
            return Known(value=_whole(sum(size or 0 for size in each)), basis="engine rule")
        size, tokens = number(pool.bytes), number(pool.tokens)
        if size is None or not tokens or not isinstance(pool.bytes, Known):
            return Unknown(because="bytes or tokens of the pool are not stated")
        bounds = {name: at / tokens for name in ("low", "high") if (at := getattr(pool.bytes, name)) is not None}
        return Known(value=round(size / tokens), basis="engine rule", **bounds)

    @property
    def tokens(self) -> Value:
        """Tokens that it holds, where a token is a token."""
        return self._linear or self.pools[0].tokens

    @property
    def longest(self) -> float | None:
        """Tokens of the longest request."""
        stated = self.pools[0].concurrency_at_tokens if len(self.pools) == 1 else None
        setting = self.party.capture.settings.get("model.max_model_len")
        return number(stated) or number(setting.final if setting else None)

    def requests(self, length: float) -> Value:
        """How many requests of so many tokens it holds, in whole blocks."""
        if len(self.pools) != 1:
            return self._linear or NO_POOL
        pool = self.pools[0]
        if number(pool.concurrency_at_tokens) == length or (
            _in_shares(pool) and isinstance(pool.max_concurrency, Known)
        ):
            return pool.max_concurrency
        tokens = self.tokens
        count, block = number(tokens), number(pool.block_tokens) or 1
        if count is None:
            return tokens if isinstance(tokens, Unknown) else Unknown(because="the tokens of the pool are not stated")
        return Known(value=round(count / (-(-length // block) * block), 2), basis="engine rule")

    def running(self, length: float) -> Value:
        """How many of them may run at once: the limit on requests holds as well."""
        fit = self.requests(length)
        limit = self.party.capture.settings.get(LIMIT)
        most = number(limit.final if limit else None)
        if most is None:
            return Unknown(because=f"{LIMIT} is not stated")
        size = number(fit)
        if size is None:
            return fit
        return Known(value=int(min(size, most)), basis="engine rule")


def _in_shares(pool: Pool) -> bool:
    """Whether every request that may run has a fixed share, however short it is."""
    return any(factor.setting == LIMIT and (number(factor.value) or 0) > 1 for factor in pool.factors)


def _token_bytes(group: Group) -> float | None:
    size, tokens = number(group.bytes_per_block), number(group.block_tokens)
    return size / tokens if size is not None and tokens else None


def _whole(size: float) -> int | float:
    return int(size) if float(size).is_integer() else size


def capacity(old: Party, new: Party) -> Iterator[Beside]:
    """Lines that can be compared, each with what it is; a line that neither side can fill is left out."""
    left, right = Cache(old), Cache(new)
    lines = [
        Beside(
            name="KV bytes of one token",
            old=left.token_bytes,
            new=right.token_bytes,
            unit="bytes",
            meaning="on one rank; it follows from the model, its split over ranks and kv.dtype, not from the engine",
        ),
        Beside(
            name="tokens that the KV cache holds",
            old=left.tokens,
            new=right.tokens,
            unit="tokens",
            meaning="on one rank, of all requests together",
        ),
        *_requests(left, right),
    ]
    yield from (line for line in lines if isinstance(line.old, Known) or isinstance(line.new, Known))


def _requests(left: Cache, right: Cache) -> Iterator[Beside]:
    """Requests of the longest length that both take."""
    lengths = [length for length in (left.longest, right.longest) if length]
    if len(lengths) < 2:
        return
    length = min(lengths)
    called = f"{length:,.0f} tokens"
    yield Beside(
        name=f"requests of {called} that it holds",
        old=left.requests(length),
        new=right.requests(length),
        meaning="the longest request that both take",
    )
    yield Beside(
        name="of these at once, at most",
        old=left.running(length),
        new=right.running(length),
        meaning=f"the smaller of what fits and {LIMIT}",
    )


def pool_found(old: Party, new: Party) -> Iterator[Found]:
    """The KV cache, where its size differs."""
    left, right = Cache(old), Cache(new)
    if not moved(left.bytes, right.bytes) or about_equal(left.bytes, right.bytes):
        return
    yield PoolDiffers(
        key="kv.pool_bytes",
        name="the KV cache of one rank",
        old=left.bytes,
        new=right.bytes,
        unit="bytes",
        area="memory",
        why="It bounds how many tokens can be held at once; what each holds is under “Capacity”.",
        titles=(old.title, new.title),
    )


def budget_words(old: Party, new: Party) -> str | None:
    """What the two shares come to in bytes, where both ledgers state it."""
    parts = []
    for party in (old, new):
        size = _budget(party)
        if not isinstance(size, Known):
            return None
        parts.append(f"{party.title} {show(size, 'bytes')}")
    return f"in bytes: {', '.join(parts)}, each for what it says above"


def _budget(party: Party) -> Value | None:
    """The limit that the KV cache is taken out of."""
    rank = party.rank
    source = next((t.draws_on for t in rank.ledger if t.name == "KV cache"), None) if rank else None
    return next((t.bytes for t in rank.ledger if t.name == source and t.kind == "limit"), None) if rank else None
