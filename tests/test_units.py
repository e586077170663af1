"""Numbers for people."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engdiff.units import GIB, KIB, MIB, format_bytes, format_count, format_ratio, format_seconds

SIZES = {"B": 1, "KiB": KIB, "MiB": MIB, "GiB": GIB, "TiB": 2**40}


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (1, "1 B"),
        (512, "512 B"),
        (1023, "1023 B"),
        (KIB, "1 KiB"),
        (-KIB, "-1 KiB"),
        (1536, "1.5 KiB"),
        (16 * MIB, "16 MiB"),
        (int(4.69 * MIB), "4.69 MiB"),
        (1000 * MIB, "1000 MiB"),
        (1023.9 * MIB, "1024 MiB"),
        (GIB, "1 GiB"),
        (-64 * GIB, "-64 GiB"),
        (3 * 2**40, "3 TiB"),
        (5000 * 2**40, "5000 TiB"),
    ],
)
def test_bytes(count: float, text: str) -> None:
    assert format_bytes(count) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0.00 s"),
        (0.267, "0.27 s"),
        (9.99, "9.99 s"),
        (10, "10 s"),
        (41.4, "41 s"),
        (99.4, "99 s"),
        (99.6, "1 min 40 s"),
        (185, "3 min 05 s"),
        (3600, "60 min 00 s"),
    ],
)
def test_seconds(seconds: float, text: str) -> None:
    assert format_seconds(seconds) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0"),
        (8192, "8,192"),
        (8192.0, "8,192"),
        (-1234567, "-1,234,567"),
        (7.8125, "7.812"),
        (0.9, "0.9"),
        (12345.678, "12,345.7"),
        (1e-7, "1e-07"),
    ],
)
def test_count(count: float, text: str) -> None:
    assert format_count(count) == text


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        (4, 16, "×4"),
        (16, 4, "÷4"),
        (4096, 131072, "×32"),
        (100, 92, "−8.0 %"),
        (100, 102.2, "+2.2 %"),
        (100, 100, "+0.0 %"),
        (100, 199, "+99.0 %"),
        (100, 199.9, "×2"),
        (3, 7, "×2.33"),
        (1, 1_500_000, "×1,500,000"),
        (1, 999.9, "×1,000"),
        (0, 5, "—"),
        (5, 0, "—"),
        (-1, 5, "—"),
    ],
)
def test_ratio(old: float, new: float, text: str) -> None:
    assert format_ratio(old, new) == text


@given(st.integers(-(2**60), 2**60))
def test_property_bytes_read_back_within_their_digits(count: int) -> None:
    match = re.fullmatch(r"(-?[\d.]+) (\w+)", format_bytes(count))
    assert match is not None
    assert float(match[1]) * SIZES[match[2]] == pytest.approx(count, rel=6e-4)


@given(st.floats(1e-6, 1e12), st.floats(1e-6, 1e12))
def test_property_a_ratio_reads_back(old: float, new: float) -> None:
    text = format_ratio(old, new)
    assert "e" not in text
    number = float(re.sub(r"[^\d.]", "", text))
    factor = {"×": number, "÷": 1 / number if number else 0, "+": 1 + number / 100, "−": 1 - number / 100}[text[0]]
    assert factor == pytest.approx(new / old, rel=6e-3)


@given(st.floats(0, 1e7))
def test_property_seconds_read_back(seconds: float) -> None:
    match = re.fullmatch(r"(?:(\d+) min )?([\d.]+) s", format_seconds(seconds))
    assert match is not None
    assert float(match[2]) < (60 if match[1] else 100)
    assert int(match[1] or 0) * 60 + float(match[2]) == pytest.approx(seconds, abs=0.51)
