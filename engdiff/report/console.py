"""The terminal: results on stdout, progress and notes on stderr, no colour when piped, NO_COLOR honoured."""

from __future__ import annotations

import os
import sys

from rich.console import Console
from rich.theme import Theme

THEME = Theme(
    {
        "startup": "bold red",
        "memory": "bold magenta",
        "scheduling": "bold yellow",
        "kernels": "bold cyan",
        "numerics": "bold blue",
        "cosmetic": "dim",
        "old": "default",
        "new": "bold",
        "pin": "green",
        "quiet": "dim",
        "title": "bold",
        "bad": "bold red",
    }
)

WIDEST = 120
PIPED_WIDTH = 100


class _Console(Console):
    """Rich would end the process with code 1, which means "it differs", when nobody reads on."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def stdout() -> Console:
    """Where results go. Lines of a pipe or a CI log are 100 columns wide unless COLUMNS says otherwise."""
    return _console(stderr=False)


def stderr() -> Console:
    """Where progress, notes and errors go."""
    return _console(stderr=True)


def _console(*, stderr: bool) -> Console:
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() or "COLUMNS" in os.environ else PIPED_WIDTH
    console = _Console(stderr=stderr, theme=THEME, highlight=False, width=width, emoji=False, markup=False)
    if console.width > WIDEST and not stderr:
        console.width = WIDEST
    return console
