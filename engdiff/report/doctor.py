"""The doctor's lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from engdiff.doctor import Check

MARKS = {"good": ("ok", "green"), "note": ("note", "yellow"), "bad": ("BAD", "bold red")}


def print_check(check: Check, console: Console) -> None:
    """One check: its mark, its subject, what was seen, and what to do."""
    mark, style = MARKS[check.state]
    grid = Table.grid(padding=(0, 1))
    grid.add_column(width=5)
    grid.add_column(width=17)
    grid.add_column(ratio=1, overflow="fold")
    grid.add_row(Text(mark, style=style), check.name, check.detail)
    if check.advice:
        grid.add_row("", "", Text(check.advice, style="quiet"))
    console.print(grid)
