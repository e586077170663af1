"""What a Diff of two engines has that one of two versions has not, as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from engdiff.report.markdown import code, folded, text
from engdiff.report.wording import OneSide, cell, comparable, count, lost, lost_title, one_sides, remark, written
from engdiff.schema.diff import Across, Beside, Meanings


def across_parts(across: Across) -> tuple[str, ...]:
    """What the user loses, which goes first, then everything about both."""
    old, new = one_sides(across)
    words = [(one.name, one.meanings.old, one.meanings.new) for one in across.other_meanings]
    return (
        _list(lost_title(old), (text(lost(one)) for one in old.lost)),
        _table("Capacity, in units that both engines share (one rank)", across, across.capacity),
        _table(f"Memory of one rank, side by side ({across.ledger_of})", across, across.ledger),
        _table("How each decides", across, across.decisions),
        *(_renamed(side) for side in (old, new)),
        _list(f"Only {new.title}, written by you", (text(lost(one)) for one in new.lost)),
        folded("The same word, and not the same thing", _rows(across, words)),
        *(_rest(side) for side in (old, new)),
    )


def meanings(found: Meanings, across: Across) -> str:
    """What goes into the cell that says why a finding matters."""
    each = f"{across.old_title}: {found.old}. {across.new_title}: {found.new}. "
    return f"<br>{text(each)}{text(comparable(found)[:1].upper() + comparable(found)[1:])}."


def _table(title: str, across: Across, lines: Sequence[Beside]) -> str:
    rows = [(one.name, cell(one.old, one.unit), cell(one.new, one.unit), remark(one, across)) for one in lines]
    return f"**{text(title)}**\n\n{_rows(across, rows)}" if rows else ""


def _rows(across: Across, rows: Sequence[Sequence[str]]) -> str:
    if not rows:
        return ""
    titles = ("", across.old_title, across.new_title, *([""] if len(rows[0]) > 3 else []))
    lines = [titles, ["---"] * len(titles), *rows]
    return "\n".join(f"| {' | '.join(map(text, line))} |" for line in lines)


def _renamed(side: OneSide) -> str:
    entries = (f"{code(written(one))} → {code(str(one.counterpart))}" for one in side.renamed)
    return _list(f"You wrote it for {side.title}, and {side.other} calls it otherwise", entries)


def _rest(side: OneSide) -> str:
    title = f"{count(len(side.rest), 'setting')} more that only {side.title} has"
    return folded(title, "\n".join(f"- {text(lost(one))}" for one in side.rest))


def _list(title: str, entries: Iterable[str]) -> str:
    items = "\n".join(f"- {entry}" for entry in entries)
    return f"**{text(title)}**\n\n{items}" if items else ""
