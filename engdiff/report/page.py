"""A page of text: sections one empty line apart, hanging indents, and no spaces at the ends of lines."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

INDENT = 3
GAP = 2
NARROWEST_CELL = 16
"""A text that has less room than this beside what leads it goes below."""


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
        body = Text(text) if isinstance(text, str) else text
        start = lead or Text(" " * indent)
        room = self.width - start.cell_len
        if room < min(NARROWEST_CELL, body.cell_len):
            if start.plain.strip():
                self._write(start)
            start = Text(" " * min(2 * INDENT + GAP, self.width // 4))
        margin = " " * start.cell_len
        wrapped = body.wrap(self._console, max(1, self.width - len(margin)), overflow="fold")
        for number, one in enumerate(wrapped or [Text()]):
            self._write(Text.assemble(start if number == 0 else margin, one))

    def whole(self, text: Text, *, lead: Text | None = None) -> None:
        """What is there to be copied: one line, never wrapped by us."""
        self._write(Text.assemble(lead or Text(), text))

    def rows(self, rows: Sequence[Sequence[Text | str]], *, right: Sequence[int] = (), indent: int = INDENT) -> None:
        """A table without lines; the last column takes what is left, and wraps. ``right``: columns set to the right."""
        cells = [[Text(c) if isinstance(c, str) else c for c in row] for row in rows]
        columns = len(cells[0]) - 1 if cells else 0
        widths = [max(row[n].cell_len for row in cells) for n in range(columns)]
        for row in cells:
            lead = Text(" " * indent)
            for n, width in enumerate(widths):
                pad = " " * (width - row[n].cell_len)
                lead.append_text(Text.assemble(pad, row[n]) if n in right else Text.assemble(row[n], pad))
                lead.append(" " * GAP)
            if lead.cell_len <= self.width:
                self.line(row[-1], lead=lead)
            else:
                self.line(Text("  ").join(cell for cell in row if cell), indent=indent)

    def _write(self, text: Text) -> None:
        if self._apart:
            self._console.print()
        self._apart, self._empty = False, False
        text.rstrip()
        self._console.print(text, soft_wrap=True)
