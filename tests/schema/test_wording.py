"""Values in words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from engdiff.schema.values import Known, Unknown
from engdiff.schema.wording import LONGEST_TEXT, ratio, show, show_plain


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (None, "", "none"),
        (True, "", "on"),
        (False, "tokens", "off"),
        (16 * 2**20, "bytes", "16 MiB"),
        (2048, "tokens", "2,048 tokens"),
        (0.92, "fraction", "0.92"),
        (1.5, "seconds", "1.5 seconds"),
        (10726.4, "requests", "10,726 requests"),
        (1234567.0, "", "1,234,567"),
        (1e-05, "", "1e-05"),
        (1e30, "", "1e+30"),
        ("", "", "empty"),
        ("auto", "", "auto"),
        ([], "", "no entries"),
        ([1, 2, 4], "", "1, 2, 4"),
        (list(range(1, 9)), "", "8 from 1 to 8"),
        ({"a": 1, "b": True}, "", "{a: 1, b: on}"),
    ],
)
def test_show_plain(value: JsonValue, unit: str, text: str) -> None:
    assert show_plain(value, unit) == text


def test_show_tells_unknown_from_absent() -> None:
    assert show(None) == "not there"
    assert show(Unknown(because="x")) == "unknown"
    assert show(Known(value=None)) == "none"
    assert show(Known(value="x" * 100)) == "x" * (LONGEST_TEXT - 1) + "…"
    assert show(Known(value={str(i): i for i in range(9)})).endswith(", …}")


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [(4, 16, "×4"), (16, 4, "÷4"), (100, 98, "−2.0 %"), (0, 4, ""), (True, 2, ""), ("4", 16, ""), (-1, 4, "")],
)
def test_ratio(old: JsonValue, new: JsonValue, text: str) -> None:
    assert ratio(Known(value=old), Known(value=new)) == text
    assert ratio(None, Known(value=new)) == ""
    assert ratio(Known(value=old), Unknown(because="x")) == ""


@given(st.lists(st.none() | st.booleans() | st.integers() | st.text(max_size=300), max_size=50))
def test_a_list_never_fills_the_screen_property(items: list[JsonValue]) -> None:
    assert len(show_plain(items)) <= 6 * (LONGEST_TEXT + 2) + 40 or any(
        isinstance(i, int) and abs(i) > 10**30 for i in items
    )
