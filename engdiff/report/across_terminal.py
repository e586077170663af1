"""A Diff of two engines for a person who moves a deployment from one to the other."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from engdiff.report.page import GAP, INDENT, Page
from engdiff.report.wording import OneSide, cell, comparable, lost, lost_title, one_sides, remark, written
from engdiff.schema.diff import Across, Beside, Meanings
from engdiff.schema.values import Unknown, Value

Titles = tuple[str, str]


def titles(across: Across) -> Titles:
    """The two engines as their users write them."""
    return across.old_title, across.new_title


def meanings(page: Page, found: Meanings, across: Across, margin: int) -> None:
    """What each engine means, a line each, and whether the values can be compared."""
    pair(page, (found.old, found.new), across, margin)
    page.line(Text(comparable(found), style="quiet"), indent=margin)


def pair(page: Page, texts: Titles, across: Across, margin: int) -> None:
    """A line for each engine, its name before it."""
    room = max(len(title) for title in titles(across))
    for title, text in zip(titles(across), texts, strict=True):
        lead = Text.assemble(" " * margin, (f"{title:<{room}}", "title"), " " * GAP)
        page.line(text, lead=lead)


def lost_first(page: Page, across: Across) -> None:
    """What the user wrote for the old engine, and the new one has nothing like it."""
    old, _ = one_sides(across)
    if old.lost:
        page.section(lost_title(old))
        for one in old.lost:
            _item(page, Text(lost(one)))


def tables(page: Page, across: Across) -> None:
    """Capacity in units that both share, the memory of one rank, and rules in words."""
    if across.capacity:
        page.section("Capacity, in units that both engines share (one rank)")
        _table(page, across, across.capacity)
    if across.ledger:
        page.section("Memory of one rank, side by side: lines of two engines do not subtract")
        page.line(Text(across.ledger_of, style="quiet"), indent=INDENT)
        _table(page, across, across.ledger)
    if across.decisions:
        page.section("How each decides")
        for one in across.decisions:
            page.line(Text(one.name), indent=INDENT)
            pair(page, (_decided(one.old), _decided(one.new)), across, INDENT + GAP)


def _decided(value: Value) -> str:
    return f"not stated: {value.because}" if isinstance(value, Unknown) else cell(value, "")


def _table(page: Page, across: Across, rows: Sequence[Beside]) -> None:
    """A column for each engine, and remarks in what room is left."""
    head = tuple(Text(word, style="title") for word in ("", *titles(across), ""))
    page.rows(
        [
            head,
            *((r.name, cell(r.old, r.unit), cell(r.new, r.unit), Text(remark(r, across), style="quiet")) for r in rows),
        ],
        right=(1, 2),
    )


def words(page: Page, across: Across) -> None:
    """The same word for other things."""
    if across.other_meanings:
        page.section("The same word, and not the same thing")
        for one in across.other_meanings:
            page.line(Text(one.name), indent=INDENT)
            pair(page, (one.meanings.old, one.meanings.new), across, INDENT + GAP)


def rest(page: Page, across: Across, *, everything: bool) -> None:
    """What is named otherwise, and what only one engine has."""
    for side in one_sides(across):
        if side.renamed:
            page.section(f"You wrote it for {side.title}, and {side.other} calls it otherwise")
            for one in side.renamed:
                _item(page, Text.assemble(written(one), (" → ", "quiet"), (str(one.counterpart), "pin")))
    _only(page, one_sides(across), everything=everything)


def _only(page: Page, sides: tuple[OneSide, OneSide], *, everything: bool) -> None:
    old, new = sides
    if not (old.rest or new.rest or new.lost):
        return
    page.section("Settings that only one engine has")
    for side, typed in ((old, ()), (new, new.lost)):
        for one in typed:
            _item(page, Text(f"only {side.title}, written by you: {lost(one)}"))
        if everything:
            for one in side.rest:
                _item(page, Text(f"only {side.title}: {lost(one)}", style="quiet"))
        elif side.rest:
            names = ", ".join(one.what for one in side.rest)
            page.line(
                Text(f"only {side.title}: {names}", style="quiet"),
                lead=Text(" " * INDENT + "· ", style="quiet"),
            )


def _item(page: Page, text: Text) -> None:
    page.line(text, lead=Text(" " * INDENT + "· ", style="quiet"))
