"""Verbs that only read documents work where nothing POSIX-only exists, and pull in nothing heavy."""

from __future__ import annotations

import subprocess
import sys

import pytest

POSIX_ONLY = ("fcntl", "grp", "pty", "pwd", "resource", "termios", "syslog", "posix_ipc")
HEAVY = ("torch", "numpy", "scipy", "pandas", "deepdiff", "vllm", "xllamacpp", "uv")


def python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    "module", ["engdiff.cli.app", "engdiff.diff.compare", "engdiff.sources.acquire", "engdiff.doctor"]
)
def test_nothing_posix_only_is_imported(module: str) -> None:
    blocked = f"import sys; sys.modules.update(dict.fromkeys({POSIX_ONLY!r}))"
    done = python(f"{blocked}; import importlib; importlib.import_module({module!r})")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "module", ["engdiff", "engdiff.cli.app", "engdiff.diff.compare", "engdiff.report.diff_terminal"]
)
def test_nothing_heavy_is_imported(module: str) -> None:
    done = python(f"import sys, {module}; print(*[m for m in {HEAVY!r} if m in sys.modules])")
    assert done.stdout.split() == [], done.stderr
