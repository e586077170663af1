"""Both finders find the same lines."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engdiff.logs.matcher import Finder, fallback, finder, lines_with, native

TEXTS = ["KV cache", "#tokens", "a.b", "ab"]


def finders() -> list[Finder]:
    found = native(TEXTS)
    return [fallback(TEXTS), *([found] if found else [])]


@pytest.mark.parametrize(
    ("block", "wanted"),
    [
        (b"", []),
        (b"nothing\nhere\n", []),
        (b"x\nthe KV cache is\ny\n", [b"the KV cache is"]),
        (b"KV cache", [b"KV cache"]),
        (b"KV cache KV cache #tokens\n#tokens\n", [b"KV cache KV cache #tokens", b"#tokens"]),
        (b"axb\na.b\n", [b"a.b"]),
        (b"\n\n\nab", [b"ab"]),
    ],
)
def test_lines_that_hold_a_text(block: bytes, wanted: list[bytes]) -> None:
    for find in finders():
        assert [block[a:b] for a, b in lines_with(block, find)] == wanted


@given(st.lists(st.sampled_from([*TEXTS, "x", " ", "\n", "KV", "#tok", "ü"]), max_size=60))
def test_property_finders_agree_with_a_plain_search(parts: list[str]) -> None:
    block = "".join(parts).encode()
    wanted = [line for line in block.split(b"\n") if re.search(b"|".join(re.escape(t.encode()) for t in TEXTS), line)]
    for find in (*finders(), finder(TEXTS)):
        assert [block[a:b] for a, b in lines_with(block, find)] == wanted


def test_the_fallback_is_taken_without_re2(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "re2", None)
    assert native(TEXTS) is None
    assert finder(TEXTS)(b"xx #tokens", 0) == 3
