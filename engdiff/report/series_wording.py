"""Words that the faces of a Series share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import PurePath

from engdiff.report.wording import count, label, shortened, side_name, unasked_words
from engdiff.schema.diff import Side
from engdiff.schema.series import Series, SeriesMove, SeriesRow
from engdiff.schema.values import Unknown, Value
from engdiff.schema.wording import show, show_plain

UNKNOWN, MOVED, BACK = "?", "→", "←"
LEGEND = {MOVED: "moved here", BACK: "moved back to the first value", UNKNOWN: "not known, or not there"}

AREAS = {
    "startup": "Start-up",
    "memory": "Memory",
    "scheduling": "Scheduling",
    "kernels": "Kernels",
    "numerics": "Numerics",
    "cosmetic": "Cosmetic",
}
NO_ACCOUNT = "Moved, and engdiff has no account of what it costs"
ASKED = "Asked for: the command lines differ"

LONGEST_NAME = 14


def heading(series: Series) -> str:
    """``4 captures of vllm``."""
    names = list(dict.fromkeys(side.engine for side in series.sides))
    return f"{count(len(series.sides), 'capture')} of {' and '.join(names)}"


def models(series: Series) -> str:
    """Every model that a side states."""
    return ", ".join(dict.fromkeys(side.model for side in series.sides if side.model)) or "not stated"


def short_names(sides: Sequence[Side]) -> tuple[str, ...]:
    """A few letters for each side: its version where these tell them apart, else the name of its file."""
    versions = [side.version for side in sides]
    if all(versions) and len(set(versions)) == len(versions):
        names = [str(version) for version in versions]
    else:
        names = [_stem(side.label) for side in sides]
    return tuple(shortened(name, LONGEST_NAME) for name in names)


def _stem(label: str) -> str:
    path = PurePath(label.partition("@")[2] or label)
    return path.stem if path.suffix in (".json", ".log", ".txt", ".gz") else path.name or label


def verdict(series: Series) -> str:
    """The answer in one line."""
    unasked = [row for row in series.rows if not row.asked]
    asked = len(series.rows) - len(unasked)
    if not series.rows:
        return "nothing moved at any step"
    known = all(side.words_unknown_because is None for side in series.sides)
    parts = [unasked_words(len(unasked), sum(row.area == "cosmetic" for row in unasked), known=known)]
    if back := sum(row.returned for row in unasked):
        parts.append(f"{back} moved back again")
    if asked:
        parts.append(f"{asked} because the command lines differ")
    return "; ".join(parts)


def sections(series: Series, *, everything: bool) -> Iterator[tuple[str, str, list[SeriesRow]]]:
    """Title, style and rows, in the order of the rows; cosmetic ones only with everything."""
    groups: dict[tuple[str, str], list[SeriesRow]] = {}
    for row in series.rows:
        if row.asked:
            groups.setdefault((ASKED, "quiet"), []).append(row)
        elif row.explained and (everything or row.area != "cosmetic"):
            groups.setdefault((AREAS[row.area], row.area), []).append(row)
        elif not row.explained:
            groups.setdefault((NO_ACCOUNT, "quiet"), []).append(row)
    for (title, style), rows in groups.items():
        yield title, style, rows


def left_out(series: Series, *, everything: bool) -> int:
    """Rows that are only counted."""
    return 0 if everything else sum(r.area == "cosmetic" and r.explained and not r.asked for r in series.rows)


def row_name(row: SeriesRow) -> str:
    """With the unit, where neither the values nor the name itself say it."""
    silent = row.unit in ("", "bytes", "fraction") or row.unit in row.name
    return row.name if silent else f"{row.name} ({row.unit})"


def cell(value: Value, unit: str) -> str:
    """A value in a table, without the unit that its row names."""
    return UNKNOWN if isinstance(value, Unknown) else show(value, unit if unit == "bytes" else "")


def whole(value: Value, row: SeriesRow) -> str:
    """A value that has a line of its own: a sentence is not cut there."""
    if isinstance(value, Unknown):
        return f"{UNKNOWN} ({value.because})"
    return value.value if isinstance(value.value, str) and value.value else show_plain(value.value, row.unit)


def mark(row: SeriesRow, place: int) -> str:
    """What stands before the value of a side: nothing, where it did not move."""
    if place not in row.steps:
        return ""
    return BACK if row.returned and place == row.steps[-1] else MOVED


def runs(row: SeriesRow) -> list[tuple[str, str, str]]:
    """Which sides, mark and value: neighbours that did not move in one."""
    found: list[tuple[list[int], str, str]] = []
    for place, value in enumerate(row.values):
        text = whole(value, row)
        if found and not mark(row, place) and _goes_on(row, place):
            found[-1][0].append(place)
        else:
            found.append(([place], mark(row, place), text))
    return [(_span(places), sign, text) for places, sign, text in found]


def _goes_on(row: SeriesRow, place: int) -> bool:
    return isinstance(row.values[place], Unknown) == isinstance(row.values[place - 1], Unknown)


def _span(places: Sequence[int]) -> str:
    return f"{places[0] + 1}" if len(places) == 1 else f"{places[0] + 1}–{places[-1] + 1}"


def steps(series: Series) -> list[tuple[str, str]]:
    """``1 → 2`` and what moved there; the most costly move is told whole."""
    found = []
    for at in range(1, len(series.sides)):
        here = [(row, one) for row in series.rows for one in row.moves if one.at == at]
        found.append((f"{at} → {at + 1}", _step(here, at)))
    return found


def _step(here: Sequence[tuple[SeriesRow, SeriesMove]], at: int) -> str:
    if not here:
        return "nothing moved"
    costly = [one for one in here if one[0].area != "cosmetic"]
    if not costly:
        return f"{len(here)} moved, cosmetic"
    worst = costly[0][1]
    since = f" (against {worst.before + 1})" if worst.before != at - 1 else ""
    asked = " (asked for)" if worst.asked else ""
    return f"{len(here)} moved, worst: {worst.headline}{since}{asked}"


def pins(series: Series) -> list[tuple[str, str, int]]:
    """The pin of each costly row that did not come back: its text, what it pins, and the side it is for; each once."""
    found: dict[str, tuple[list[str], int]] = {}
    for row in series.rows:
        idle = row.asked or row.returned or not row.explained or row.area == "cosmetic"
        if row.pin and row.pin.text and not idle:
            found.setdefault(row.pin.text, ([], row.steps[-1]))[0].append(row.name)
    return [(text, ", ".join(names), at) for text, (names, at) in found.items()]


def side_line(side: Side) -> str:
    """What a side is: engine, version, how the user called it."""
    return f"{side_name(side)}   {label(side)}"
