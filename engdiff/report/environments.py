"""Managed environments for reading."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from engdiff.report.page import Page
from engdiff.units import format_bytes

if TYPE_CHECKING:
    from engdiff.environments.store import Stored


def print_environments(stored: Sequence[Stored], folder: Path, console: Console) -> None:
    """One line each; files that several environments share are counted once in what removing frees."""
    if not stored:
        console.print(Text(f"no environments in {folder}; `engdiff capture ENGINE@VERSION` makes one"), soft_wrap=True)
        return
    rows: list[tuple[Text | str, ...]] = [
        tuple(Text(title, style="title") for title in ("environment", "on disk", "its own", "last used"))
    ]
    for one in stored:
        used = one.last_used.strftime("%Y-%m-%d") if one.complete else "half-made"
        rows.append((f"{one.engine}@{one.version}", _size(one.bytes_total), _size(one.bytes_own), used))
    Page(console).rows(rows, right=(1, 2), indent=0)
    console.print(Text(f"{folder}", style="quiet"), soft_wrap=True)


def print_removed(removed: Sequence[Stored], console: Console) -> None:
    """What was removed, and what it freed as far as that is known."""
    if not removed:
        console.print("nothing to remove")
    for one in removed:
        console.print(Text(f"removed {one.name}, {_size(one.bytes_own)} freed"))


def _size(count: int | None) -> str:
    return "unknown" if count is None else format_bytes(count)
