"""A page of text: sections one empty line apart, hanging indents, and no spaces at the ends of lines."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

INDENT = 3
GAP = 2
NARROWEST_CELL = 20
"""A last column that has less room than this goes below its row."""


class Page:
    """Writes to a console, line by line."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._empty = True
        self._apart = False

    @property
    def width(self) -> int:
        """Columns of a line."""
        return self._console.width

    def section(self, title: str = "") -> None:
        """Start a new section; the empty line before it is only written when something follows."""
        self._apart = not self._empty
        if title:
            self.line(Text(title, style="title"))

    def rule(self) -> None:
        """A line across the page."""
        self._write(Text("─" * self.width, style="quiet"))

    def line(self, text: Text | str, *, lead: Text | None = None, indent: int = 0) -> None:
        """A paragraph; ``lead`` stands before it, and further lines begin where the first one does."""
        start = lead or Text(" " * indent)
        margin = " " * start.cell_len
        body = Text(text) if isinstance(text, str) else text
        wrapped = body.wrap(self._console, max(1, self.width - len(margin)), overflow="fold")
        for number, one in enumerate(wrapped or [Text()]):
            self._write(Text.assemble(start if number == 0 else margin, one))

    def whole(self, text: Text, *, lead: Text | None = None, indent: int = 0) -> None:
        """What is there to be copied: never wrapped by us; on a line of its own where it does not fit its place."""
        if lead is not None and lead.cell_len + text.cell_len > self.width and not _only_space(lead):
            self._write(lead)
            self._write(Text.assemble(" " * max(0, min(indent, self.width - text.cell_len)), text))
        else:
            self._write(Text.assemble(lead or " " * indent, text))

    def rows(self, rows: Sequence[Sequence[Text | str]], *, right: Sequence[int] = (), indent: int = INDENT) -> None:
        """A table without lines; the last column takes what is left, and wraps. ``right``: columns set to the right."""
        cells = [[Text(c) if isinstance(c, str) else c for c in row] for row in rows]
        columns = len(cells[0]) - 1 if cells else 0
        widths = [max(row[n].cell_len for row in cells) for n in range(columns)]
        room = self.width - indent - sum(widths) - GAP * columns
        for row in cells:
            lead = Text(" " * indent)
            for n, width in enumerate(widths):
                pad = " " * (width - row[n].cell_len)
                lead.append_text(Text.assemble(pad, row[n]) if n in right else Text.assemble(row[n], pad))
                lead.append(" " * GAP)
            if room >= min(NARROWEST_CELL, row[-1].cell_len):
                self.line(row[-1], lead=lead)
            else:
                lead.rstrip()
                self.line(Text(" ").join(lead.split()) if lead.cell_len > self.width else lead)
                self.line(row[-1], indent=indent + INDENT)

    def _write(self, text: Text) -> None:
        if self._apart:
            self._console.print()
        self._apart, self._empty = False, False
        text.rstrip()
        self._console.print(text, soft_wrap=True)


def _only_space(text: Text) -> bool:
    return not text.plain.strip()


__all__ = ["GAP", "INDENT", "Page", "cell_len"]
