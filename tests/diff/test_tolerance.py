"""When two values are the same."""

from __future__ import annotations

import pytest

from engdiff.diff.tolerance import equal
from engdiff.schema.values import REPEAT_RELATIVE, Known, Unknown
from tests.factories import known, measured


def bounded(value: float, low: float, high: float) -> Known:
    return Known(value=value, low=low, high=high, basis="measured")


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (known(1), known(1), True),
        (known(1), known(1.0), True),
        (known("128"), known(128), True),
        (known(100), known(101), False),
        (known(value=True), known(1), False),
        (known("a"), known("b"), False),
        (known(None), known(None), True),
        (known(None), known(0), False),
        (known([1, 2]), known([1, 2]), True),
        (measured(100), measured(100 + 100 * REPEAT_RELATIVE), True),
        (measured(100), measured(103), False),
        (measured(100), known(101), True),
        (known(100), measured(101), True),
        (measured(0), measured(1), False),
        (measured("a"), measured("b"), False),  # type: ignore[arg-type]
        (bounded(100, 99, 101), bounded(102, 101, 103), True),
        (bounded(100, 99, 101), bounded(103, 102, 104), False),
        (bounded(100, 99, 101), measured(101.5), True),
        (Unknown(because="x"), Unknown(because="x"), False),
        (Unknown(because="x"), known(1), False),
    ],
)
def test_equal(old: Known | Unknown, new: Known | Unknown, expected: bool) -> None:
    assert equal(old, new) is expected
    assert equal(new, old) is expected
