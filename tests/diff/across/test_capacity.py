"""What two caches come to in units that both engines share."""

from __future__ import annotations

import pytest

from engdiff import engines
from engdiff.diff.across.capacity import Cache, capacity, pool_found
from engdiff.diff.across.party import Party
from engdiff.schema.capture import Capture, Group, Pool
from engdiff.schema.values import Known, Unknown, plain
from tests import factories as make
from tests.diff import other_engines as other
from tests.factories import GIB, Change

NOT_SAID = Unknown(because="not said")
TOKEN = other.TOKEN_BYTES


def party(capture: Capture) -> Party:
    return Party(capture, engines.get(capture.identity.engine))


def with_pools(*pools: Pool) -> Change:
    def apply(capture: Capture) -> Capture:
        rank = capture.instances[0].ranks[0].model_copy(update={"pools": pools})
        return make.with_rank(rank)(capture)

    return apply


def group(kind: str, *, per_block: object = NOT_SAID) -> Group:
    return Group(
        kind=kind,  # type: ignore[arg-type]
        layers=NOT_SAID,
        block_tokens=make.known(16),
        bytes_per_block=per_block if isinstance(per_block, Unknown) else make.known(per_block),  # type: ignore[arg-type]
    )


def pool(*groups: Group, name: str = "KV cache", size: int = 48 * GIB) -> Pool:
    return other.token_pool(size, 4096, block=16).model_copy(update={"groups": groups, "name": name})


CACHES: list[tuple[str, tuple[Pool, ...], object]] = [
    ("of its blocks", (pool(group("full", per_block=16 * TOKEN)),), TOKEN),
    ("of several groups of one kind", (pool(*[group("mla", per_block=16 * 100)] * 3),), 300),
    ("of bytes and tokens", (pool(group("full")),), TOKEN),
    ("layers of two kinds", (pool(group("full"), group("sliding window")),), "layers of several kinds"),
    ("two pools", (pool(group("full")), pool(group("full"))), "layers of several kinds"),
    ("kinds that nobody states", (pool(),), "it is not stated whether all layers keep all tokens"),
    ("no pool", (), "no KV cache is stated"),
    (
        "beside states and a draft",
        (
            pool(group("full", per_block=16 * TOKEN)),
            pool(group("state"), name="states"),
            pool(group("full"), name="draft KV cache"),
        ),
        TOKEN,
    ),
]


@pytest.mark.parametrize(("pools", "expected"), [case[1:] for case in CACHES], ids=[case[0] for case in CACHES])
def test_bytes_of_a_token(pools: tuple[Pool, ...], expected: object) -> None:
    value = Cache(party(with_pools(*pools)(other.sglang()))).token_bytes
    if isinstance(expected, str):
        assert isinstance(value, Unknown)
        assert expected in value.because
    else:
        assert plain(value) == expected


def test_all_pools_count_as_one_cache() -> None:
    two = with_pools(pool(group("full")), pool(group("sliding window"), size=2 * GIB))(other.sglang())
    assert plain(Cache(party(two)).bytes) == 50 * GIB
    unknown = with_pools(pool(), pool().model_copy(update={"bytes": NOT_SAID}))(other.sglang())
    assert Cache(party(unknown)).bytes == NOT_SAID


@pytest.mark.parametrize(
    ("length", "requests"),
    [(4096, 96), (2048, 192), (2049, 190.51), (1, 24576)],
)
def test_requests_of_a_length_in_whole_blocks(length: int, requests: float) -> None:
    """A request of 2,049 tokens takes 129 blocks of 16 tokens; one of a single token takes a whole block."""
    cache = Cache(party(with_pools(pool(group("full")))(other.sglang())))
    assert plain(cache.requests(length)) == requests


def test_slots_hold_one_request_each_however_short() -> None:
    cache = Cache(party(make.llamacpp()))
    assert plain(cache.requests(16)) == 4


def test_the_limit_on_requests_holds_as_well() -> None:
    capture = make.with_setting("scheduler.max_num_seqs", make.setting(8))(other.sglang())
    assert plain(Cache(party(capture)).running(2048)) == 8
    unlimited = Cache(party(make.without_setting("scheduler.max_num_seqs")(other.sglang()))).running(2048)
    assert unlimited == Unknown(because="scheduler.max_num_seqs is not stated")


def test_requests_are_counted_at_the_longest_length_that_both_take() -> None:
    lines = {line.name: line for line in capacity(party(other.sglang()), party(make.vllm()))}
    assert list(lines) == [
        "KV bytes of one token",
        "tokens that the KV cache holds",
        "requests of 2,048 tokens that it holds",
        "of these at once, at most",
    ]
    assert [plain(line.old) for line in lines.values()] == [TOKEN, 393216, 192, 192]
    assert [plain(line.new) for line in lines.values()] == [TOKEN, 425984, 208, 208]


def test_a_line_that_neither_fills_is_left_out() -> None:
    empty = with_pools()
    assert list(capacity(party(empty(other.sglang())), party(empty(make.vllm())))) == []


def test_a_hybrid_of_another_length_is_unknown() -> None:
    """Layers of several kinds: what fits at 4,096 tokens says nothing of what fits at 2,048."""
    hybrid = with_pools(pool(group("full"), group("sliding window")))(other.sglang())
    value = Cache(party(hybrid)).requests(2048)
    assert isinstance(value, Unknown)
    assert plain(Cache(party(hybrid)).requests(4096)) == 96


@pytest.mark.parametrize(
    ("size", "headline"),
    [
        (52 * GIB, "the KV cache of one rank: SGLang 48 GiB; vLLM 52 GiB (+8.3 %)"),
        (48.1 * GIB, None),
    ],
)
def test_the_pool_is_a_finding(size: float, headline: str | None) -> None:
    new = make.with_pool(bytes=Known(value=size, basis="measured"))(make.vllm())
    found = [one.headline() for one in pool_found(party(other.sglang()), party(new))]
    assert found == ([headline] if headline else [])
