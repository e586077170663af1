"""Many nearly equal documents as one: every one of them comes back exactly, whatever it holds."""

from __future__ import annotations

import json
import lzma
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engdiff.sources.profiles.packing import content, merged, own, packed, same, shared, unpacked

LEAVES = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.0, 1.0, "", "a"])
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=12,
)
TREES = st.dictionaries(st.sampled_from("abcd"), VALUES, max_size=4)


@given(st.lists(TREES, min_size=1, max_size=5))
def test_every_tree_comes_back_exactly(trees: list[dict[str, Any]]) -> None:
    common = shared(trees)
    for tree in trees:
        assert same(merged(common, own(tree, common)), tree)


@given(TREES)
def test_what_all_share_is_kept_once(tree: dict[str, Any]) -> None:
    assert same(shared([tree, tree]), tree)
    assert own(tree, tree) == {}


@given(TREES)
def test_packing_gives_back_what_it_was_given_and_always_the_same_content(tree: dict[str, Any]) -> None:
    assert unpacked(packed(tree)) == json.loads(json.dumps(tree))
    assert content(dict(reversed(list(tree.items())))) == content(tree)


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        (1, 1, True),
        (1, 1.0, False),
        (1, True, False),
        (0, False, False),
        (None, None, True),
        ([1, {"a": 2}], [1, {"a": 2}], True),
        ([1], [1, 2], False),
        ({"a": 1}, {"b": 1}, False),
        ({}, [], False),
    ],
)
def test_equal_means_equal_as_json(one: Any, other: Any, equal: bool) -> None:
    assert same(one, other) is equal


def test_nothing_shares_nothing() -> None:
    assert shared([]) == {}


@pytest.mark.parametrize("data", [b"", b"no archive", lzma.compress(b"no json"), lzma.compress(b"{}")[:-5]])
def test_a_broken_file_is_a_value_error(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        unpacked(data)
