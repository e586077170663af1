"""Ranks that hold the same memory are told once; those that differ are told apart."""

from __future__ import annotations

from engdiff.diff.compare import compare
from engdiff.schema.capture import Capture, Rank
from tests import factories as make


def with_ranks(capture: Capture, *ranks: Rank) -> Capture:
    instance = capture.instances[0].model_copy(update={"ranks": ranks})
    return capture.model_copy(update={"instances": (instance,)})


def pool_keys(old: Capture, new: Capture) -> list[str]:
    found = compare(old, new, old_label="old.json", new_label="new.json").findings
    return [f.key for f in found if f.kind in ("PoolGrew", "PoolShrank")]


def test_ranks_of_a_kind_are_told_once() -> None:
    small, large = make.llamacpp(), make.llamacpp(cells=4096)
    a, b = small.instances[0].ranks[0], large.instances[0].ranks[0]
    assert pool_keys(with_ranks(small, a, a, a), with_ranks(large, b, b, b)) == ["kv.pool_bytes"]


def test_ranks_that_differ_are_told_apart() -> None:
    small, large = make.llamacpp(), make.llamacpp(cells=4096)
    a, b = small.instances[0].ranks[0], large.instances[0].ranks[0]
    keys = pool_keys(with_ranks(small, a, b), with_ranks(large, b, a))
    assert sorted(keys) == ["kv.pool_bytes[rank 0]", "kv.pool_bytes[rank 1]"]
