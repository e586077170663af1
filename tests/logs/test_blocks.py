"""A log as blocks of whole lines, in any encoding, of any size."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engdiff.logs import blocks as module
from engdiff.logs.blocks import blocks

TEXT = "first line\nsecond: 46.80 GiB ü\nthird"


@pytest.mark.parametrize(
    "encode",
    [
        lambda t: t.encode(),
        lambda t: t.encode("utf-8-sig"),
        lambda t: t.encode("utf-16"),
        lambda t: t.encode("utf-16-le"),
        lambda t: t.encode("utf-16-be"),
        lambda t: gzip.compress(t.encode()),
        lambda t: gzip.compress(t.encode("utf-16")),
    ],
)
def test_every_encoding_gives_the_same_lines(encode: Callable[[str], bytes]) -> None:
    assert b"".join(blocks(BytesIO(encode(TEXT)))).decode() == TEXT


@given(st.lists(st.binary(max_size=50).filter(lambda b: b"\n" not in b), max_size=30), st.integers(1, 40))
def test_property_blocks_end_at_the_end_of_a_line(lines: list[bytes], size: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "BLOCK_BYTES", size)
        text = b"x" + b"\n".join(lines).replace(b"\x00", b"0")
        found = list(blocks(BytesIO(text)))
    assert b"".join(found) == text
    assert all(block.endswith(b"\n") for block in found[:-1])


def test_a_line_without_end_is_cut_and_the_next_one_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BLOCK_BYTES", 64)
    monkeypatch.setattr(module, "LONGEST_LINE_BYTES", 100)
    found = b"".join(blocks(BytesIO(b"a\n" + b"x" * 10_000 + b"\nnext\n")))
    assert found.startswith(b"a\nxxxx")
    assert found.endswith(b"x\nnext\n")
    assert len(found) < 200
    assert found.count(b"\n") == 3


def test_a_compressed_log_that_breaks_off_is_read_as_far_as_it_goes() -> None:
    told: list[str] = []
    whole = gzip.compress(b"".join(b"line %d\n" % n for n in range(100_000)))
    found = b"".join(blocks(BytesIO(whole[: len(whole) // 2]), told.append))
    assert found.startswith(b"line 0\nline 1\n")
    assert len(found) > 100_000
    assert len(told) == 1
    assert "breaks off" in told[0]
