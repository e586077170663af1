"""Known or unknown; there is no third case."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue, TypeAdapter, ValidationError

from engdiff.schema.values import Known, Unknown, Value, number, plain

VALUE: TypeAdapter[Known | Unknown] = TypeAdapter(Value)


@pytest.mark.parametrize(
    ("value", "bare", "figure"),
    [
        (None, None, None),
        (Unknown(because="not said"), None, None),
        (Known(value=None), None, None),
        (Known(value=0), 0, 0),
        (Known(value=1.5), 1.5, 1.5),
        (Known(value=True), True, None),
        (Known(value="12"), "12", None),
        (Known(value=[1]), [1], None),
    ],
)
def test_plain_and_number(value: Known | Unknown | None, bare: JsonValue, figure: float | None) -> None:
    assert plain(value) == bare
    assert number(value) == figure


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"value": 1, "because": "both"},
        {"value": 1, "basis": "guessed"},
        {"because": None},
        {"value": 1, "evidence": {"source": "hearsay", "where": "x"}},
        {"value": 1, "evidence": {"source": "log"}},
        None,
        3,
    ],
)
def test_there_is_no_third_case(data: object) -> None:
    with pytest.raises(ValidationError):
        VALUE.validate_python(data)


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8")),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner, max_size=4)
    ),
    max_leaves=8,
)


@given(json_values)
def test_round_trip_property(value: JsonValue) -> None:
    known = Known(value=value)
    again = VALUE.validate_json(known.model_dump_json())
    assert isinstance(again, Known)
    assert again == known
    assert type(again.value) is type(value)
