"""Verbs that only read documents work where nothing POSIX-only exists, and pull in nothing heavy."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import engdiff

POSIX_ONLY = {"fcntl", "grp", "pty", "pwd", "resource", "termios", "tty", "syslog"}
HEAVY = ("torch", "numpy", "scipy", "pandas", "deepdiff", "vllm", "xllamacpp", "uv")

SOURCES = sorted(Path(engdiff.__file__).parent.rglob("*.py"))


def imported_at_once(source: Path) -> Iterator[str]:
    """Modules that a file imports when it is imported itself: not those inside a function or a ``try``."""
    for node in ast.parse(source.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.partition(".")[0]


@pytest.mark.parametrize("source", SOURCES, ids=lambda p: "/".join(p.parts[-3:]))
def test_nothing_posix_only_is_imported(source: Path) -> None:
    assert not POSIX_ONLY & set(imported_at_once(source))


@pytest.mark.parametrize(
    "module", ["engdiff", "engdiff.cli.app", "engdiff.diff.compare", "engdiff.report.diff_terminal"]
)
def test_nothing_heavy_is_imported(module: str) -> None:
    code = f"import sys, {module}; print(*[m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.split() == [], done.stderr
