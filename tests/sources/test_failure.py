"""The numbers of last words: each cites the line in which it stands."""

from __future__ import annotations

import pytest

from engdiff.engines.contract import Cause
from engdiff.logs.statements import Line
from engdiff.schema.values import Known
from engdiff.sources.failure import lacking, numbers_of

GIB = 2**30
MESSAGE = "of 262144 tokens (24.0 GiB is needed, 3.18 GiB is there)"
NUMBERS = {"needed_gib": "24.0", "available_gib": "3.18", "max_model_len": "262144"}


def cited(rows: list[str], cause: Cause) -> dict[str, tuple[object, int | None, str]]:
    found = numbers_of(cause, [Line(number, row, file="a.log") for number, row in enumerate(rows, start=1)])
    out: dict[str, tuple[object, int | None, str]] = {}
    for name, value in found.items():
        assert isinstance(value, Known)
        assert value.evidence is not None
        assert value.evidence.file == "a.log"
        out[name] = (value.value, value.evidence.line, value.evidence.where)
    return out


@pytest.mark.parametrize(
    ("rows", "line", "places"),
    [
        (["x", MESSAGE, "y"], MESSAGE, {"max_model_len": (2, MESSAGE), "needed_bytes": (2, MESSAGE)}),
        (
            ["x", MESSAGE[:18], MESSAGE[18:]],
            MESSAGE,
            {"max_model_len": (2, MESSAGE[:18]), "needed_bytes": (3, MESSAGE[18:])},
        ),
        (["x", MESSAGE[:6], MESSAGE[6:]], MESSAGE, {"max_model_len": (2, MESSAGE), "needed_bytes": (3, MESSAGE[6:])}),
    ],
    ids=["one line", "two rows", "cut inside a number"],
)
def test_each_number_cites_its_line(rows: list[str], line: str, places: dict[str, tuple[int, str]]) -> None:
    found = cited(rows, Cause("", "", numbers=NUMBERS, line=line))
    assert {name: value for name, (value, _, _) in found.items()} == {
        "needed_bytes": 24 * GIB,
        "available_bytes": round(3.18 * GIB),
        "max_model_len": 262144,
    }
    assert {name: found[name][1:] for name in places} == places


@pytest.mark.parametrize("rows", [[], ["other words"]])
def test_a_number_that_stands_nowhere_is_left_out(rows: list[str]) -> None:
    assert cited(rows, Cause("", "", numbers=NUMBERS, line=MESSAGE)) == {}


def test_what_was_lacking() -> None:
    numbers = numbers_of(Cause("", "", numbers=NUMBERS, line=MESSAGE), [Line(1, MESSAGE)])
    assert lacking(numbers) == "with 20.82 GiB more it would have fitted"
    assert lacking({}) is None
