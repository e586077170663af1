"""Three or more captures: what moved at which step, against which side, and what came back."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engdiff.diff.accept import Acceptance
from engdiff.diff.compare import compare
from engdiff.diff.series import series
from engdiff.schema.capture import Capture
from engdiff.schema.files import dump, parse
from engdiff.schema.series import Series, SeriesRow
from engdiff.schema.values import plain
from tests import factories as make
from tests.diff.parts_of_sides import ended, failed_with, from_log
from tests.diff.test_properties import CAPTURES
from tests.factories import GIB, Change

SEQS = "scheduler.max_num_seqs"


def labels(count: int) -> list[str]:
    return [f"{place}.json" for place in range(count)]


def of(*captures: Capture) -> Series:
    return series(captures, labels(len(captures)))


def seqs(*values: int | None) -> list[Capture]:
    """One capture for each value; none: a log that does not state it."""
    return [
        make.without_setting(SEQS)(from_log(make.vllm()))
        if value is None
        else make.with_setting(SEQS, make.setting(value))(make.vllm())
        for value in values
    ]


def the_row(found: Series, key: str = SEQS) -> SeriesRow:
    (row,) = [row for row in found.rows if row.key == key]
    return row


@pytest.mark.parametrize(
    ("values", "steps", "against", "returned"),
    [
        ([256, 256, 128], (2,), [1], False),
        ([256, 128, 128], (1,), [0], False),
        ([256, 128, 64], (1, 2), [0, 1], False),
        ([256, 128, 256], (1, 2), [0, 1], True),
        ([256, None, 128], (2,), [0], False),
        ([256, None, None, 128], (3,), [0], False),
        ([None, 256, 128], (2,), [1], False),
        ([256, 128, None], (1,), [0], False),
        ([256, 128, None, 256], (1, 3), [0, 1], True),
    ],
)
def test_steps(values: list[int | None], steps: tuple[int, ...], against: list[int], returned: bool) -> None:
    row = the_row(of(*seqs(*values)))
    assert row.steps == steps
    assert [one.before for one in row.moves] == against
    assert row.returned is returned
    assert [plain(value) for value in row.values] == values


def test_nothing_moved() -> None:
    found = of(*seqs(256, 256, None, 256))
    assert (found.rows, found.worst, found.next_command) == ((), None, None)
    assert len(found.diffs) == 3


def test_the_diffs_are_those_of_neighbours() -> None:
    captures = seqs(256, 128, 64)
    found = of(*captures)
    assert found.diffs[1] == compare(captures[1], captures[2], old_label="1.json", new_label="2.json")
    assert [side.label for side in found.sides] == labels(3)


def test_pools_and_lines_have_their_values_on_every_side() -> None:
    grown = make.with_rank(make.vllm_rank(weights=20 * GIB))(make.vllm())
    found = of(make.vllm(), make.vllm(), grown, make.failed()(make.vllm()))
    pool, weights = the_row(found, "kv.pool_bytes"), the_row(found, "memory.weights")
    assert [plain(v) for v in pool.values] == [52 * GIB, 52 * GIB, 48 * GIB, None]
    assert [plain(v) for v in weights.values] == [16 * GIB, 16 * GIB, 20 * GIB, None]
    assert (pool.name, weights.name) == ("KV cache", "memory for weights")
    assert (pool.steps, weights.steps) == ((2,), (2,))


def test_a_start_that_fails_in_between() -> None:
    """What moved meanwhile is told at the next side that started, against the last one that did."""
    found = of(seqs(256)[0], make.failed()(make.vllm()), *seqs(128))
    assert found.rows[0].key == "start"
    assert [plain(v) for v in found.rows[0].values] == [
        "it started",
        "out of memory: the KV cache does not fit",
        "it started",
    ]
    assert (found.rows[0].steps, found.rows[0].returned) == ((1, 2), True)
    assert [(one.before, one.at) for one in the_row(found).moves] == [(0, 2)]


def test_a_log_that_breaks_off_in_between() -> None:
    cut = ended("breaks off")(from_log(make.vllm()))
    found = of(make.vllm(), cut, make.failed()(make.vllm()))
    assert [plain(v) for v in found.rows[0].values] == ["it started", None, "out of memory: the KV cache does not fit"]


def test_numbers_of_failures() -> None:
    sides = [failed_with("it needs too much", needed_bytes=make.measured(n * GIB))(make.vllm()) for n in (16, 16, 32)]
    row = the_row(of(*sides), "start.needed_bytes")
    assert (row.name, row.steps, row.unit) == ("needed", (2,), "bytes")


def test_what_only_adds_up_is_told_from_first_to_last() -> None:
    """Each step lies within what repeated launches differ by, and all of them together do not."""
    sides = [make.with_term("weights", make.measured(size * GIB))(make.vllm()) for size in (16, 16.3, 16.6, 16.9)]
    assert all(not one.findings for one in of(*sides).diffs)
    assert [(one.before, one.at) for one in the_row(of(*sides), "memory.weights").moves] == [(0, 3)]


RANKED: list[Change] = [
    make.with_setting("model.dtype", make.setting("float16", "derived")),
    make.with_pool(bytes=make.measured(40 * GIB)),
    make.with_native("config.example_config.example_option", "new"),
]


def test_rows_are_ranked_as_findings_whatever_the_step() -> None:
    sides = [make.vllm()]
    for change in RANKED:
        sides.append(change(sides[-1]))
    found = of(*sides)
    assert [row.key for row in found.rows] == [
        "kv.pool_bytes",
        "model.dtype",
        "config.example_config.example_option",
    ]
    assert (found.worst, found.next_command) == (2, "engdiff diff 1.json 2.json")
    assert found.rows[2].name == "example_config.example_option"


def test_what_was_asked_for() -> None:
    asked = make.both(
        make.with_launch(arguments=("--max-num-seqs", "64")),
        make.with_setting(SEQS, make.setting(64, "user", asked=64)),
    )
    found = of(make.vllm(), make.vllm(), asked(make.vllm()))
    assert the_row(found).asked


def test_accepted_differences_are_no_rows() -> None:
    found = series(seqs(256, 256, 128), labels(3), accept=[Acceptance(SEQS, "planned")])
    assert found.rows == ()
    assert [len(one.accepted) for one in found.diffs] == [0, 1]


def test_pins_are_those_of_the_last_step() -> None:
    row = the_row(of(*seqs(256, 128, 64)))
    assert row.pin is not None
    assert row.pin.text == "--max-num-seqs 128"
    assert [one.pin.text for one in row.moves] == ["--max-num-seqs 256", "--max-num-seqs 128"]


@pytest.mark.parametrize(
    ("names", "launched", "command"),
    [
        (["a b.json", "b.json", "c.json"], [], "engdiff diff 'a b.json' b.json"),
        (["-", "b.json", "c.json"], [], None),
        (
            ["a.json", "vllm@0.32.0", "c.json"],
            [False, True, False],
            "engdiff diff a.json vllm@0.32.0 --model tiny -- --max-model-len 2048",
        ),
    ],
)
def test_what_to_type_next(names: list[str], launched: list[bool], command: str | None) -> None:
    assert series(seqs(256, 128, 128), names, launched=launched).next_command == command


def test_different_engines_compare_canonical_settings() -> None:
    found = of(make.vllm(), make.llamacpp(), make.vllm())
    row = the_row(found)
    assert (row.steps, row.returned) == ((1, 2), True)
    assert not any(row.key.startswith(("config.", "params.")) for row in found.rows)


@settings(max_examples=30, deadline=None)
@given(st.lists(CAPTURES, min_size=3, max_size=5))
def test_a_series_holds_every_finding_of_its_steps_property(captures: list[Capture]) -> None:
    found = of(*captures)
    assert parse(dump(found), "x", Series) == found
    for at, one in enumerate(found.diffs, start=1):
        assert {f.key for f in one.findings} <= {row.key for row in found.rows if at in row.steps}
    for row in found.rows:
        assert row.steps
        assert len(row.values) == len(captures)
        assert row.steps == tuple(one.at for one in row.moves)


@settings(max_examples=30, deadline=None)
@given(CAPTURES, st.integers(3, 5))
def test_nothing_moves_along_one_capture_property(capture: Capture, count: int) -> None:
    assert of(*[capture] * count).rows == ()
