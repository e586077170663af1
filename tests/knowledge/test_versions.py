"""Version ranges, and the releases nearest to one that does not exist."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.version import Version

from engdiff.knowledge.versions import at_version, came_between, holds, nearest, older, release

NUMBERS = st.lists(st.integers(0, 30), min_size=1, max_size=4).map(lambda parts: ".".join(map(str, parts)))
SUFFIXES = st.sampled_from(["", ".post2", "+cpu", "rc1", ".dev3"])
VERSIONS = st.builds(lambda number, suffix: number + suffix, NUMBERS, SUFFIXES)


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("0.32.0", "0.32.0"),
        ("0.12.0.post2", "0.12"),
        ("0.32.0+cpu", "0.32.0"),
        ("1.0rc1", "1.0"),
        ("2026.9.11063", "2026.9.11063"),
    ],
)
def test_release(text: str, same: str) -> None:
    assert release(text) == Version(same)


@pytest.mark.parametrize("text", ["", "latest", "None", "b7376", "0.1.x", "1..2"])
def test_no_release(text: str) -> None:
    with pytest.raises(ValueError, match=f"`{text}` is not a version"):
        release(text)


@pytest.mark.parametrize(
    ("version", "since", "until", "expected"),
    [
        ("0.20.0", None, None, True),
        ("0.20.0", "0.20.0", "0.20.0", True),
        ("0.20.0", "0.20.1", None, False),
        ("0.20.0", None, "0.19.1", False),
        ("0.20", "0.20.0", None, True),
        ("0.12.0.post2", None, "0.12.0", True),
        ("0.9.0", "0.12.0", None, False),
        ("0.100.0", "0.12.0", None, True),
        ("2026.10.11549", "2026.10", None, True),
        ("2026.9.11063", "2026.10", None, False),
        ("0.2.14", None, "2026.4.8672", True),
    ],
)
def test_holds(version: str, since: str | None, until: str | None, expected: bool) -> None:
    assert holds(version, since, until) is expected


@pytest.mark.parametrize(
    ("old", "since", "new", "expected"),
    [
        ("0.19.1", "0.20.0", "0.20.0", True),
        ("0.19.1", "0.20.0", "0.20.0rc1", True),
        ("0.20.0rc1", "0.20.0", "0.20.0", False),
        ("0.20.0", "0.20.0", "0.21.0", False),
        ("1.3.0rc20", "1.3.0rc21", "1.3.0rc21", True),
        ("1.3.0rc21", "1.3.0rc21", "1.3.0rc22", False),
        ("1.3.0rc5", "1.3.0rc21", "1.3.0rc20", False),
        ("1.2.1", "1.3.0rc21", "1.3.0", True),
        ("1.2.1", "1.3.0rc21", "1.3.0rc9", False),
        ("0.1.0", "0.1.0.post2", "0.1.0.post2", True),
        ("main", "0.20.0", "0.21.0", False),
    ],
)
def test_came_between(old: str, since: str, new: str, expected: bool) -> None:
    assert came_between(old, since, new) is expected


@pytest.mark.parametrize(
    ("version", "other", "expected"),
    [("1.3.0rc5", "1.3.0rc21", True), ("1.3.0rc21", "1.3.0", True), ("1.3.0", "1.3.0", False), ("1.10", "1.9", False)],
)
def test_older(version: str, other: str, expected: bool) -> None:
    assert older(version, other) is expected


ROWS = [
    {"path": "old.a", "until": "0.17.1"},
    {"path": "mid.a", "since": "0.17.0", "until": "0.20.0", "unit": "GiB"},
    {"path": "new.a", "since": "0.21.0"},
]


@pytest.mark.parametrize(
    ("entry", "version", "field", "expected"),
    [
        (None, "1.0", "path", None),
        ("a.b", "1.0", "path", "a.b"),
        ("--flag", "1.0", "name", "--flag"),
        ("VARIABLE", "1.0", "unit", None),
        (ROWS, "0.12.0", "path", "old.a"),
        (ROWS, "0.17.0", "path", "old.a"),
        (ROWS, "0.17.2", "path", "mid.a"),
        (ROWS, "0.20.0", "path", "mid.a"),
        (ROWS, "0.20.1", "path", None),
        (ROWS, "0.21.0", "path", "new.a"),
        (ROWS, "0.20.0", "unit", "GiB"),
        (ROWS, "0.21.0", "unit", None),
        ([], "1.0", "path", None),
    ],
)
def test_at_version(entry: Any, version: str, field: str, expected: str | None) -> None:
    assert at_version(entry, version, field) == expected


KNOWN = ("0.12.0", "0.32.0", "0.9.0", "0.20.2", "0.20.1")


@pytest.mark.parametrize(
    ("wanted", "known", "count", "expected"),
    [
        ("0.20.3", KNOWN, 3, ("0.20.1", "0.20.2", "0.32.0")),
        ("99", KNOWN, 3, ("0.20.1", "0.20.2", "0.32.0")),
        ("0.1", KNOWN, 3, ("0.9.0", "0.12.0", "0.20.1")),
        ("0.10", KNOWN, 2, ("0.9.0", "0.12.0")),
        ("0.10", KNOWN, 1, ("0.12.0",)),
        ("latest", KNOWN, 2, ("0.20.2", "0.32.0")),
        ("0.20.3", (), 3, ()),
        ("0.20.3", ("weird", "1.0"), 3, ("1.0",)),
        ("1.0", ("1.0", "2.0"), 3, ("2.0",)),
    ],
)
def test_nearest(wanted: str, known: tuple[str, ...], count: int, expected: tuple[str, ...]) -> None:
    assert nearest(wanted, known, count) == expected


@given(VERSIONS, st.none() | VERSIONS, st.none() | VERSIONS)
def test_property_a_range_is_the_meet_of_its_ends(version: str, since: str | None, until: str | None) -> None:
    assert holds(version, since, until) == (holds(version, since) and holds(version, None, until))
    if since is not None:
        assert holds(version, since) or holds(version, None, since)
        assert (holds(version, since) and holds(version, None, since)) == (release(version) == release(since))


@given(NUMBERS, SUFFIXES, VERSIONS)
def test_property_repackaging_never_matters(number: str, suffix: str, end: str) -> None:
    assert holds(number + suffix, end) == holds(number, end)
    assert holds(number + suffix, None, end) == holds(number, None, end)


@given(VERSIONS, st.lists(st.tuples(NUMBERS, NUMBERS), max_size=4))
def test_property_at_version_takes_the_first_row_that_holds(version: str, ends: list[tuple[str, str]]) -> None:
    rows = [{"path": str(i), "since": low, "until": high} for i, (low, high) in enumerate(ends)]
    fitting = [str(i) for i, (low, high) in enumerate(ends) if holds(version, low, high)]
    assert at_version(rows, version, "path") == (fitting[0] if fitting else None)


@given(VERSIONS | st.text(max_size=5), st.lists(VERSIONS | st.just("weird"), max_size=8), st.integers(1, 5))
def test_property_nearest(wanted: str, known: list[str], count: int) -> None:
    found = nearest(wanted, known, count)
    others = {v for v in known if v != "weird" and not _same(v, wanted)}
    assert set(found) <= set(known)
    assert list(found) == sorted(found, key=Version)
    assert len(found) <= count
    assert len(found) == min(count, len(others))


def _same(left: str, right: str) -> bool:
    try:
        return Version(left) == Version(right)
    except ValueError:
        return False
