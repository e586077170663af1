"""What users read of three or more captures, word by word, and what holds for every such page."""

from __future__ import annotations

import re

import pytest
from rich.cells import cell_len

from engdiff.report.series_markdown import series_markdown
from engdiff.report.series_terminal import print_series
from engdiff.schema.files import dump, parse
from engdiff.schema.series import Series
from tests.report.documents import BROKEN, MANY, SERIES, STEADY, UPGRADES
from tests.report.test_faces import check, on_paper


def terminal(series: Series, width: int, *, everything: bool = False) -> str:
    console, stream = on_paper(width)
    print_series(series, console, everything=everything)
    return stream.getvalue()


@pytest.mark.parametrize("width", [60, 80, 120])
def test_series_on_a_terminal(width: int) -> None:
    check(f"series-upgrades-{width}.txt", terminal(UPGRADES, width))


@pytest.mark.parametrize("name", ["steady", "many", "broken"])
def test_other_series(name: str) -> None:
    check(f"series-{name}-80.txt", terminal(SERIES[name], 80))


def test_many_on_a_wide_terminal() -> None:
    check("series-many-120.txt", terminal(MANY, 120))


def test_everything() -> None:
    check("series-upgrades-all-80.txt", terminal(UPGRADES, 80, everything=True))


@pytest.mark.parametrize("name", SERIES)
def test_markdown(name: str) -> None:
    check(f"series-{name}.md", series_markdown(SERIES[name]))


@pytest.mark.parametrize("name", SERIES)
def test_json(name: str) -> None:
    assert parse(dump(SERIES[name]), name, Series) == SERIES[name]


@pytest.mark.parametrize("everything", [False, True])
@pytest.mark.parametrize("width", [40, 60, 80, 100, 120])
@pytest.mark.parametrize("name", SERIES)
def test_pages_are_tidy(name: str, width: int, everything: bool) -> None:
    text = terminal(SERIES[name], width, everything=everything)
    copied = {one for one in (SERIES[name].next_command,) if one} | {
        r.pin.text for r in SERIES[name].rows if r.pin and r.pin.text
    }
    lines = text.split("\n")
    assert [line for line in lines if cell_len(line) > width and not any(c in line for c in copied)] == []
    assert [line for line in lines if line != line.rstrip()] == []
    assert "\n\n\n" not in text
    assert text.endswith("\n")
    assert not text.endswith("\n\n")


def test_moves_are_seen_without_colour() -> None:
    (pool,) = [line for line in terminal(UPGRADES, 80).splitlines() if line.startswith("   KV cache ")]
    assert re.findall(r"[→←?]?[\d.]+ GiB", pool) == ["52 GiB", "52 GiB", "→46.5 GiB", "46.5 GiB"]


def test_what_is_not_known_and_what_came_back() -> None:
    lines = terminal(UPGRADES, 120).splitlines()
    (batch,) = [line for line in lines if "max_num_batched_tokens" in line and "16,384" in line and "moved" not in line]
    assert batch.split() == ["scheduler.max_num_batched_tokens", "8,192", "?", "→16,384", "16,384"]
    (block,) = [line for line in lines if line.strip().startswith("kv.block_size")]
    assert block.split()[-4:] == ["16", "→32", "32", "←16"]
    assert any("← moved back to the first value" in line for line in lines)


def test_a_move_over_a_gap_says_against_what() -> None:
    assert "(against 1)" in series_markdown(
        MANY.model_copy(update={"rows": UPGRADES.rows[1:2], "sides": UPGRADES.sides})
    )


def test_nothing_moved() -> None:
    text = terminal(STEADY, 80)
    assert "nothing moved at any step" in text
    assert "moved here" not in text


def test_a_start_that_fails_is_first_and_whole() -> None:
    text = terminal(BROKEN, 80)
    assert text.index("Start-up") < text.index("Memory")
    assert "→ the cache holds no request of 131,072 tokens" in text


def test_too_many_sides_are_one_block_for_each_row() -> None:
    lines = terminal(MANY, 60).splitlines()
    at = lines.index("   KV cache")
    assert lines[at + 1 : at + 4] == [
        "     1–8     52 GiB",
        "     9       ? (the log does not state it)",
        "     10–12 → 46.5 GiB",
    ]
