"""Where the bytes of a pool went: the steps sum to the difference, to the byte."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engdiff.diff.compare import compare
from engdiff.diff.waterfall import waterfall
from engdiff.schema.capture import Rank
from engdiff.schema.diff import Waterfall
from engdiff.schema.values import Unknown
from tests import factories as make
from tests.factories import GIB, MIB

UNKNOWN = Unknown(because="not said")
SIZES = st.integers(min_value=1, max_value=2**20)
BYTES = st.integers(min_value=0, max_value=2**40)


def between(old: Rank, new: Rank) -> Waterfall | None:
    return waterfall("the KV cache", old, new, old.pools[0], new.pools[0])


def sums(found: Waterfall) -> bool:
    return sum(step.bytes for step in found.steps) == found.new_bytes - found.old_bytes


@given(st.tuples(SIZES, SIZES, SIZES), st.tuples(SIZES, SIZES, SIZES))
def test_a_product_sums_property(old: tuple[int, int, int], new: tuple[int, int, int]) -> None:
    found = between(make.llama_rank(*old), make.llama_rank(*new))
    if found is None:
        assert old == new
    else:
        assert found.how == "product"
        assert sums(found)
        assert {step.name for step in found.steps} <= {"buffers", "tokens in each", "bytes per token"}


@given(st.tuples(BYTES, BYTES, BYTES), st.tuples(BYTES, BYTES, BYTES))
def test_a_remainder_sums_property(old: tuple[int, int, int], new: tuple[int, int, int]) -> None:
    found = between(make.vllm_rank(*old), make.vllm_rank(*new))
    if found is None:
        assert old == new
    else:
        assert found.how == "remainder"
        assert sums(found)
        assert {step.name for step in found.steps} <= {"vLLM may use", "weights", "activation peak"}


@given(BYTES, BYTES, BYTES)
def test_what_no_line_explains_is_a_step_property(before: int, after: int, weights: int) -> None:
    """The ledger says one thing and the pool another: the rest is told, and the sum still holds."""
    old, new = make.vllm_rank(), make.vllm_rank(weights=weights)
    old, new = (
        rank.model_copy(update={"pools": (rank.pools[0].model_copy(update={"bytes": make.known(size)}),)})
        for rank, size in ((old, before), (new, after))
    )
    found = between(old, new)
    assert found is None or sums(found)
    if found is None:
        assert abs(after - before) <= max(1, 0.001 * max(before, after))


def test_one_factor_after_the_other() -> None:
    found = between(make.llama_rank(4, 1024, 1024), make.llama_rank(2, 4096, 1024))
    assert found is not None
    assert [(s.name, s.old, s.new, s.bytes) for s in found.steps] == [
        ("buffers", "4", "2", -2 * MIB),
        ("tokens in each", "1,024", "4,096", 6 * MIB),
    ]


def test_limits_add_and_uses_take_away() -> None:
    found = between(make.vllm_rank(72 * GIB, 16 * GIB, 4 * GIB), make.vllm_rank(73 * GIB, 20 * GIB, 4 * GIB))
    assert found is not None
    assert [(s.name, s.old, s.new, s.bytes) for s in found.steps] == [
        ("vLLM may use", "72 GiB", "73 GiB", GIB),
        ("weights", "16 GiB", "20 GiB", -4 * GIB),
    ]


def test_a_line_that_only_one_side_has_counts_from_nothing() -> None:
    old = make.vllm_rank()
    graphs = old.ledger[2].model_copy(update={"name": "graphs", "bytes": make.measured(GIB)})
    smaller = old.pools[0].model_copy(update={"bytes": make.measured(51 * GIB)})
    new = old.model_copy(update={"ledger": (*old.ledger, graphs), "pools": (smaller,)})
    found = between(old, new)
    assert found is not None
    assert [(s.name, s.old, s.new, s.bytes) for s in found.steps] == [("graphs", "—", "1 GiB", -GIB)]


@pytest.mark.parametrize("term", ["vLLM may use", "weights"])
def test_a_line_that_is_not_known_makes_no_waterfall(term: str) -> None:
    old = make.vllm_rank()
    ledger = tuple(t.model_copy(update={"bytes": UNKNOWN}) if t.name == term else t for t in old.ledger)
    assert between(old, make.vllm_rank(weights=GIB).model_copy(update={"ledger": ledger})) is None


def test_a_factor_that_is_not_known_makes_no_waterfall() -> None:
    old, new = make.llama_rank(4, 1024, 1024), make.llama_rank(4, 2048, 1024)
    factors = (new.pools[0].factors[0].model_copy(update={"value": UNKNOWN}), *new.pools[0].factors[1:])
    assert (
        between(old, new.model_copy(update={"pools": (new.pools[0].model_copy(update={"factors": factors}),)})) is None
    )


def test_a_pool_within_its_bounds_has_no_waterfall() -> None:
    found = compare(
        make.vllm(),
        make.with_rank(make.vllm_rank(weights=16 * GIB + 64 * MIB))(make.vllm()),
        old_label="a",
        new_label="b",
    )
    assert (found.waterfalls, found.findings) == ((), ())
