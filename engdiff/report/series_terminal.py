"""A Series for a person at a terminal: one table, what moved at which step, and what to type next."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from engdiff.report.page import GAP, INDENT, Page
from engdiff.report.series_wording import (
    LEGEND,
    cell,
    heading,
    left_out,
    mark,
    models,
    pins,
    row_name,
    runs,
    sections,
    short_names,
    side_line,
    steps,
    verdict,
)
from engdiff.report.wording import count
from engdiff.schema.series import Series, SeriesRow

LONGEST_CELL = 16
"""A longer value has a line of its own."""

NARROWEST_NAME = 20


def print_series(series: Series, console: Console, *, everything: bool = False) -> None:
    """Print it all; ``everything`` lists what is otherwise only counted, and why each thing matters."""
    page = Page(console)
    _heading(page, series)
    table = _Table(page, series, everything=everything)
    table.head()
    for title, style, rows in sections(series, everything=everything):
        page.section()
        page.line(Text(title, style=style))
        for row in rows:
            table.row(row, style)
    if series.rows:
        _legend(page, table)
    if hidden := left_out(series, everything=everything):
        page.section()
        page.line(Text(f"{count(hidden, 'cosmetic row')} left out (--all lists them)", style="quiet"))
    _steps(page, series)
    _pins(page, series)
    if series.next_command:
        page.section("The most costly step in full")
        page.whole(Text(series.next_command, style="pin"))


def _heading(page: Page, series: Series) -> None:
    page.rule()
    page.line(Text.assemble((heading(series), "new"), (f"   model {models(series)}", "quiet")))
    for number, side in enumerate(series.sides, start=1):
        page.line(Text(side_line(side)), lead=Text(f"{number:>3}  ", style="quiet"))
    page.line(Text(verdict(series), style="title"))
    page.rule()


class _Table:
    """One column for each side, as wide as its values; a row whose values are long has one line for each of them."""

    def __init__(self, page: Page, series: Series, *, everything: bool) -> None:
        self._page = page
        self._everything = everything
        self._names = short_names(series.sides)
        shown = [row for _, _, rows in sections(series, everything=everything) for row in rows]
        short = [row for row in shown if all(len(text) <= LONGEST_CELL for text in _cells(row))]
        self._widths = [
            max(len(str(place + 1)), cell_len(name), *(cell_len(_cells(row)[place]) for row in short), 0)
            for place, name in enumerate(self._names)
        ]
        values = sum(width + GAP for width in self._widths)
        room = page.width - INDENT - values
        self._wide = room >= NARROWEST_NAME and bool(short)
        self._in_table = {row.key for row in short} if self._wide else set()
        self._name_width = min(room, max((cell_len(row_name(row)) for row in short), default=0))
        self.marks = {sign for row in shown for sign in _signs(row)}

    def head(self) -> None:
        """Numbers and names of the sides, over their columns."""
        if self._wide:
            self._page.section()
            numbers = [str(place + 1) for place in range(len(self._names))]
            self._line(Text(), [Text(number, style="title") for number in numbers])
            self._line(Text(), [Text(name, style="quiet") for name in self._names])

    def row(self, row: SeriesRow, style: str) -> None:
        """One row, in the table where it fits."""
        name = row_name(row)
        if row.key not in self._in_table:
            self._page.line(Text(row.name), indent=INDENT)
            self._block(row, style)
        else:
            cells = [Text(text, style=style if mark(row, at) else "") for at, text in enumerate(_cells(row))]
            if cell_len(name) > self._name_width:
                self._page.line(Text(name), indent=INDENT)
                name = ""
            self._line(Text(name), cells)
        if self._everything:
            self._reasons(row)

    def _line(self, name: Text, cells: Sequence[Text]) -> None:
        pad = " " * (self._name_width - name.cell_len)
        text = Text.assemble(" " * INDENT, name, pad)
        for width, one in zip(self._widths, cells, strict=True):
            text.append(" " * (GAP + width - one.cell_len))
            text.append_text(one)
        self._page.whole(text)

    def _block(self, row: SeriesRow, style: str) -> None:
        """Sides, mark and value, one below the other."""
        lines = runs(row)
        width = max(len(places) for places, _, _ in lines)
        for places, sign, text in lines:
            lead = Text.assemble(" " * (INDENT + GAP), (f"{places:<{width}} ", "quiet"), (f"{sign or ' '} ", style))
            self._page.line(Text(text, style=style if sign else ""), lead=lead)

    def _reasons(self, row: SeriesRow) -> None:
        for one in row.moves:
            since = f" (since {one.since})" if one.since else ""
            lead = Text(f"{' ' * (INDENT + GAP)}{one.before + 1} → {one.at + 1}  ", style="quiet")
            self._page.line(Text(one.why + since, style="quiet"), lead=lead)


def _cells(row: SeriesRow) -> list[str]:
    return [mark(row, place) + cell(value, row.unit) for place, value in enumerate(row.values)]


def _signs(row: SeriesRow) -> set[str]:
    return {text[0] for text in _cells(row) if text[0] in LEGEND}


def _legend(page: Page, table: _Table) -> None:
    said = [f"{sign} {words}" for sign, words in LEGEND.items() if sign in table.marks]
    if said:
        page.section()
        page.line(Text("   ".join(said), style="quiet"), indent=INDENT)


def _steps(page: Page, series: Series) -> None:
    page.section("Step by step")
    found = steps(series)
    width = max(len(step) for step, _ in found)
    for step, text in found:
        page.line(Text(text), lead=Text(f"{' ' * INDENT}{step:<{width}}  ", style="quiet"))


def _pins(page: Page, series: Series) -> None:
    """Each on a line of its own, to be copied; what it restores is the value before the last move."""
    found = pins(series)
    if found:
        page.section("Pins, each for the side at which it moved last")
    for text, names, at in found:
        lead = Text(f"{' ' * INDENT}{at + 1}  ", style="quiet")
        if lead.cell_len + len(text) + GAP + cell_len(names) <= page.width:
            page.whole(Text.assemble((text, "pin"), (f"  {names}", "quiet")), lead=lead)
        else:
            page.whole(Text(text, style="pin"), lead=lead)
            page.line(Text(names, style="quiet"), indent=lead.cell_len)
