"""Progress on stderr: one line that changes on a terminal, plain lines elsewhere."""

from __future__ import annotations

import re
from types import TracebackType

from rich.status import Status
from rich.text import Text

from engdiff.report.console import stderr

_COUNTING = re.compile(r", \d+ s$")


class Progress:
    """Call it with what is going on. On a terminal the line is replaced; in a log each new step is one line."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._console = stderr()
        self._quiet = quiet
        self._last = ""
        self._status: Status | None = None

    def __enter__(self) -> Progress:
        if self._console.is_terminal and not self._quiet:
            self._status = self._console.status("")
            self._status.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._status:
            self._status.stop()

    def __call__(self, text: str) -> None:
        """Say what is going on now. ``warning:`` and ``note:`` lines always stay."""
        if text.startswith(("warning:", "note:")):
            self._console.print(text, style="bold yellow" if text.startswith("warning") else "quiet", soft_wrap=True)
        elif self._quiet:
            return
        elif self._status:
            self._status.update(Text(text))  # a str would be read as markup
        elif (step := _COUNTING.sub("", text)) != self._last:
            self._last = step
            self._console.print(step, style="quiet", soft_wrap=True)
