"""The Prometheus text format: what can be read is read, damage is passed over."""

from __future__ import annotations

import math
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engdiff.metrics_text import Sample, samples


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", []),
        ("# HELP x y\n# TYPE x gauge\nx 1\n", [Sample("x", {}, 1.0)]),
        ('vllm:a{b="c",d="e"} 2.5 1700000000\n', [Sample("vllm:a", {"b": "c", "d": "e"}, 2.5)]),
        ('a{b="say \\"hi\\"\\n\\\\",} 1e3', [Sample("a", {"b": 'say "hi"\n\\'}, 1000.0)]),
        ("a{} +Inf", [Sample("a", {}, math.inf)]),
        ('a_bucket{le="1"} 3 # {trace="x"} 0.5', [Sample("a_bucket", {"le": "1"}, 3.0)]),
        ('a{b="broken 1\nc 2', [Sample("c", {}, 2.0)]),
        ("a\nb one\n9c 1\n{d} 1\nok 1\n", [Sample("ok", {}, 1.0)]),
        ("a{b=1} 1\n", []),
        ("<html>\n", []),
        ("a -inf\r\nb NaN_\nc .5e-3\n", [Sample("a", {}, -math.inf), Sample("c", {}, 0.0005)]),
        ('  a { b = "}" , c="" } 1 -5 # {} 1', [Sample("a", {"b": "}", "c": ""}, 1.0)]),
        ('a{b="\\x\u2028\x85"} 1\n', [Sample("a", {"b": "\\x\u2028\x85"}, 1.0)]),
        ("a 1_000\nb 1.2.3\nc \u0661\nd 1 2 3\ne 1e\nf1\n", []),
        ('a{b="c"d="e"} 1\na{b="c"},} 1\na{b="c" 1\na{,} 1', []),
    ],
)
def test_samples(text: str, wanted: list[Sample]) -> None:
    assert list(samples(text)) == wanted


@given(st.text(alphabet='ab{}="\\,\n #1.', max_size=300))
def test_property_anything_is_read_without_an_exception(text: str) -> None:
    list(samples(text))


@given(st.dictionaries(st.from_regex(r"[a-z_]{1,5}", fullmatch=True), st.text(max_size=20), max_size=4), st.floats())
def test_property_what_is_written_is_read(labels: dict[str, str], value: float) -> None:
    lone = {k: "".join(c for c in v if c not in "\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029") for k, v in labels.items()}
    quoted = {k: v.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") for k, v in lone.items()}
    text = "m{" + ",".join(f'{k}="{v}"' for k, v in quoted.items()) + f"}} {value}\n"
    (found,) = samples(text)
    assert (found.name, found.labels) == ("m", lone)
    assert found.value == value or math.isnan(value)


def test_what_is_skipped_is_counted() -> None:
    found = samples("# TYPE a gauge\n\n  \na 1\n<html>\na\n#a 1\nb 2\nb two")
    assert [s.name for s in found] == ["a", "b"]
    assert found.skipped == 3


def test_a_line_of_megabytes_is_passed_over() -> None:
    found = samples("x" * 5_000_000 + " 1\n" + 'y{a="' + "z" * 2_000_000 + '"} 1\nok 1\n')
    assert [s.name for s in found] == ["ok"]
    assert found.skipped == 2


@pytest.mark.parametrize(
    "line",
    [
        "a{" * 500_000,
        'a{b="' + '\\"' * 500_000,
        "a{" + 'b="c",' * 150_000 + "} x",
        "a{" + 'b="c" ' * 150_000 + "} 1",
        "a" + " " * 1_000_000 + "x",
        "a 1." + "1" * 1_000_000 + "x",
        "a 1 " + "1" * 1_000_000 + "x",
    ],
    ids=lambda line: line[:9],
)
def test_no_line_takes_more_than_linear_time(line: str) -> None:
    started = time.monotonic()
    assert list(samples(line)) == []
    assert time.monotonic() - started < 2  # quadratic time would be minutes
