"""The words without what is engdiff's to choose."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engdiff.engines.starting import without_flags

ADDRESS = ("--port", "--host", "--uds")


@pytest.mark.parametrize(
    ("words", "left"),
    [
        ("", ""),
        ("--port 8000", ""),
        ("--port=8000 --dtype half", "--dtype half"),
        ("--host 0.0.0.0 --port 1 --max-num-seqs 4", "--max-num-seqs 4"),
        ("--uds /run/x.sock --dtype half", "--dtype half"),
        ("--dtype half --port", "--dtype half"),
        ("--portable --host-name x", "--portable --host-name x"),
        ("--port 1 --port 2 -x", "-x"),
        ("--host= -x", "-x"),
    ],
)
def test_without_address(words: str, left: str) -> None:
    assert without_flags(words.split(), ADDRESS) == tuple(left.split())


_WORDS = st.lists(st.sampled_from(["--port", "--port=1", "--host", "--hostile", "-x", "1", "--dtype=half"]), max_size=8)


@given(_WORDS)
def test_property_no_address_is_left_and_order_is_kept(words: list[str]) -> None:
    left = without_flags(words, ADDRESS)
    assert not {word.partition("=")[0] for word in left} & set(ADDRESS)
    assert without_flags(left, ADDRESS) == left
    rest = iter(words)
    assert all(word in rest for word in left)
