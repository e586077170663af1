"""One rule for all engines: how the three layers of a setting give its origin."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engdiff.engines.layers import MISSING, exact, lookup, same, settle
from engdiff.schema.values import Known, Unknown

NOPE = Unknown(because="not reported")


def known(value: Any) -> Known | Unknown:
    return NOPE if value is MISSING else Known(value=value)


@pytest.mark.parametrize(
    ("written", "declared", "resolved", "effective", "origin"),
    [
        # nobody wrote it
        (MISSING, 256, 256, MISSING, "default"),
        (MISSING, 256, 128, MISSING, "derived"),
        (MISSING, 256, 256, 128, "derived"),
        (MISSING, 256, 128, 256, "default"),
        (MISSING, None, None, MISSING, "default"),
        (MISSING, None, 5, MISSING, "derived"),
        (MISSING, MISSING, 256, MISSING, None),
        (MISSING, 256, MISSING, 256, "default"),
        (MISSING, 256, MISSING, MISSING, None),
        # the user wrote it
        (64, 256, 64, MISSING, "user"),
        (64, 64, 64, MISSING, "user"),
        (64, 256, 128, MISSING, "forced"),
        (64, 256, 64, 32, "forced"),
        (64, 256, 32, 64, "user"),
        (64, MISSING, 64, MISSING, "user"),
        (64, 256, MISSING, MISSING, None),
        (False, True, True, MISSING, "forced"),
        ("64", 256, 64, MISSING, "user"),
        ("True", False, True, MISSING, "user"),
        (1, False, True, MISSING, "forced"),
        (None, 5, None, MISSING, "user"),
    ],
)
def test_origins(written: Any, declared: Any, resolved: Any, effective: Any, origin: str | None) -> None:
    setting = settle(
        configured=None if written is MISSING else Known(value=written),
        declared=declared,
        resolved=known(resolved),
        effective=None if effective is MISSING else known(effective),
        native="a.b",
        because="so",
    )
    assert setting.origin == origin
    assert (setting.native, setting.because) == ("a.b", "so")
    deepest = next((layer for layer in (effective, resolved, written) if layer is not MISSING), MISSING)
    assert setting.final == known(deepest)
    assert isinstance(setting.effective, Unknown) is (effective is MISSING)


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        (1, 1, True),
        (1, 1.0, True),
        ("128", 128, True),
        ("0.9", 0.9, True),
        (1, True, False),
        (0, False, False),
        ("true", True, True),
        ("False", False, True),
        (True, True, True),
        (True, False, False),
        (None, None, True),
        (None, "None", False),
        (None, False, False),
        (None, 0, False),
        ("", None, False),
        ([1, 2], [1, 2], True),
        ([1, 2], [2, 1], False),
        ({"a": 1}, {"a": 1}, True),
        ("auto", "Auto", False),
    ],
)
def test_same(left: object, right: object, expected: bool) -> None:
    assert same(left, right) is expected
    assert same(right, left) is expected


TREE: dict[str, Any] = {"a": {"b": {"c": 1}, "n": None, "l": [1]}, "x.y": 2}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("a.b.c", 1),
        ("a.b", {"c": 1}),
        ("a.n", None),
        ("a.l", [1]),
        ("a.z", MISSING),
        ("a.b.c.d", MISSING),
        ("a.l.0", MISSING),
        ("a.n.b", MISSING),
        ("x.y", MISSING),
        ("", MISSING),
    ],
)
def test_lookup(path: str, value: object) -> None:
    assert lookup(TREE, path) == value if value is not MISSING else lookup(TREE, path) is MISSING


@pytest.mark.parametrize("tree", [None, 3, "text", [1]])
def test_lookup_in_what_is_no_tree(tree: Any) -> None:
    assert lookup(tree, "a") is MISSING


def test_exact() -> None:
    value = exact(5, "log", "n_ctx = 5", 17)
    assert value.basis == "exact"
    assert value.evidence is not None
    assert (value.value, value.evidence.source, value.evidence.where, value.evidence.line) == (
        5,
        "log",
        "n_ctx = 5",
        17,
    )


VALUES = st.none() | st.booleans() | st.integers(-3, 3) | st.floats(-3, 3) | st.sampled_from(["", "1", "True", "auto"])


@given(VALUES, VALUES)
def test_property_same_is_reflexive_and_symmetric(left: object, right: object) -> None:
    assert same(left, left)
    assert same(left, right) == same(right, left)


@given(
    st.none() | VALUES.map(lambda v: Known(value=v)), VALUES, VALUES, st.none() | VALUES.map(lambda v: Known(value=v))
)
def test_property_who_wrote_nothing_is_no_user(
    configured: Known | None, declared: object, resolved: Any, effective: Known | None
) -> None:
    setting = settle(configured=configured, declared=declared, resolved=Known(value=resolved), effective=effective)
    assert setting.origin in (("user", "forced") if configured else ("default", "derived"))
    assert isinstance(setting.final, Known)
    if setting.origin in ("user", "default"):
        assert same(configured.value if configured else declared, setting.final.value)
