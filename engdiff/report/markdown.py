"""What Markdown needs whatever it says: texts that stay in their cell, code, and folds."""

from __future__ import annotations


def text(plain: str) -> str:
    """A text that stays within its cell, and whose marks are no tags and no code."""
    return _cell(plain).replace("<", "&lt;").replace("`", "\\`")


def code(plain: str) -> str:
    """Code, fenced with one more backtick than it holds in a row."""
    fence = "`"
    while fence in plain:
        fence += "`"
    space = " " if len(fence) > 1 else ""
    return f"{fence}{space}{_cell(plain)}{space}{fence}"


def fenced(title: str, command: str | None) -> str:
    """A command as a block to copy; nothing where there is none."""
    return f"**{title}**\n\n```sh\n{command}\n```" if command else ""


def folded(title: str, body: str) -> str:
    """What is only seen when it is opened; nothing where there is none."""
    return f"<details><summary>{title}</summary>\n\n{body}\n\n</details>" if body else ""


def _cell(plain: str) -> str:
    return " ".join(plain.split("\n")).replace("|", "\\|")
