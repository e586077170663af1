"""An error for the user: what happened, the last words if an engine died, and what to do."""

from __future__ import annotations

from rich.text import Text

from engdiff.errors import EngdiffError, EngineFailed
from engdiff.report.console import stderr


def print_error(error: EngdiffError) -> None:
    """Print it on stderr; lines are not wrapped by us, so that paths stay whole."""
    console = stderr()
    console.print(Text.assemble(("error: ", "bad"), error.message), soft_wrap=True)
    if isinstance(error, EngineFailed):
        for line in error.last_words:
            console.print(Text(f"   | {line}", style="quiet"), soft_wrap=True)
        if error.log:
            console.print(Text(f"   log: {error.log}", style="quiet"), soft_wrap=True)
    if error.advice:
        console.print(Text(f"   {error.advice}"), soft_wrap=True)
