"""The doctor's lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from engdiff.report.page import Page

if TYPE_CHECKING:
    from engdiff.doctor import Check

MARKS = {"good": ("ok", "green"), "note": ("note", "yellow"), "bad": ("BAD", "bold red")}


def print_check(check: Check, console: Console) -> None:
    """One check: its mark, its subject, what was seen, and what to do."""
    mark, style = MARKS[check.state]
    lead = Text.assemble((f"{mark:<5} ", style), f"{check.name:<17} ")
    page = Page(console)
    page.line(check.detail, lead=lead)
    if check.advice:
        page.line(Text(check.advice, style="quiet"), indent=lead.cell_len)
