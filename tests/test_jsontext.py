"""JSON from somebody else: read, or refused with a reason, and never more than that."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from engdiff.jsontext import MAX_DEPTH, NotJson, parse_json, read_json

HOSTILE: dict[str, str] = {
    "": "not JSON (line 1, column 1)",
    "{": "not JSON (line 1, column 2)",
    "{}x": "not JSON (line 1, column 3)",
    "\ufeff{}": "not JSON (line 1, column 1)",
    "[" * 100_000: "nested too deeply",
    "[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1): "nested too deeply",
    '{"a":' * 500 + "1" + "}" * 500: "nested too deeply",
    "9" * 10_000: "a number of 10,000 digits",
    "[-1" + "0" * 99 + "]": "a number of 101 digits",
    "NaN": "a number that is none: NaN",
    '{"a": [-Infinity]}': "a number that is none: -Infinity",
    "1e999": "a number that is none: 1e999",
}


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: text[:12])
def test_hostile(text: str) -> None:
    with pytest.raises(NotJson) as caught:
        read_json(text)
    assert str(caught.value) == HOSTILE[text]
    assert parse_json(text) is None


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("18446744073709551615", 2**64 - 1),
        ("[" * MAX_DEPTH + "]" * MAX_DEPTH, json.loads("[" * MAX_DEPTH + "]" * MAX_DEPTH)),
        (r'["\ud83d\ude00", "\ud83d", "\\ud83d", "\uDE00x"]', ["\U0001f600", "\ufffd", r"\ud83d", "\ufffdx"]),
        ("null", None),
    ],
)
def test_what_is_read(text: str, found: JsonValue) -> None:
    assert read_json(text) == found
    json.dumps(found, ensure_ascii=False).encode("utf-8")


@given(
    st.recursive(st.none() | st.booleans() | st.integers(-(2**64), 2**64) | st.text(), lambda inner: st.lists(inner))
)
def test_property_what_is_written_is_read(value: JsonValue) -> None:
    assert read_json(json.dumps(value)) == value


@given(st.text(alphabet='[]{}",:\\ud8e01NaN ', max_size=60))
def test_property_any_text_is_read_or_refused(text: str) -> None:
    json.dumps(parse_json(text), ensure_ascii=False, allow_nan=False).encode("utf-8")
