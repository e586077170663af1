"""A Series as Markdown, for a pull request or a ticket."""

from __future__ import annotations

from collections.abc import Sequence

from engdiff.report.markdown import code, fenced, folded, text
from engdiff.report.series_wording import (
    LEGEND,
    heading,
    mark,
    models,
    pins,
    sections,
    short_names,
    side_line,
    steps,
    verdict,
    whole,
)
from engdiff.schema.series import Series, SeriesRow

COSMETIC = "cosmetic"


def series_markdown(series: Series) -> str:
    """The whole document: one table for each area, the steps, and what shows the worst of them."""
    named = list(sections(series, everything=True))
    shown = [(title, rows) for title, style, rows in named if style != COSMETIC]
    cosmetic = [row for _, style, rows in named if style == COSMETIC for row in rows]
    parts = [
        f"## {text(heading(series))}",
        f"model {code(models(series))} · {text(verdict(series))}",
        "\n".join(f"{number}. {text(side_line(side))}" for number, side in enumerate(series.sides, start=1)),
        *(f"**{title}**\n\n{_table(series, rows)}" for title, rows in shown),
        " · ".join(f"{sign} {words}" for sign, words in LEGEND.items()) if series.rows else "",
        "**Step by step**\n\n" + "\n".join(f"- {step}: {text(said)}" for step, said in steps(series)),
        _pins(series),
        fenced("The most costly step in full", series.next_command),
        folded(f"{len(cosmetic)} cosmetic", _table(series, cosmetic) if cosmetic else ""),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _table(series: Series, rows: Sequence[SeriesRow]) -> str:
    numbered = (f"{number}<br>{text(name)}" for number, name in enumerate(short_names(series.sides), start=1))
    head = f"| what | {' | '.join(numbered)} |"
    line = f"| --- | {' | '.join('---' for _ in series.sides)} |"
    return "\n".join((head, line, *map(_row, rows)))


def _row(row: SeriesRow) -> str:
    cells = (f"{mark(row, place)} {text(whole(value, row))}".strip() for place, value in enumerate(row.values))
    return f"| {text(row.name)} | {' | '.join(cells)} |"


def _pins(series: Series) -> str:
    found = [f"- {at + 1}: {code(pin)} ({text(names)})" for pin, names, at in pins(series)]
    return "**Pins, each for the side at which it moved last**\n\n" + "\n".join(found) if found else ""
