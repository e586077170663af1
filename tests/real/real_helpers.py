"""Real engines, launched as a user would: through the command line, in managed environments, one at a time."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from engdiff.schema.capture import Capture
from engdiff.schema.diff import Diff
from engdiff.schema.files import load_capture, parse

SMALL_POOL = {"VLLM_CPU_KVCACHE_SPACE": "1"}
"""One GiB of KV for vLLM: its default takes most of a machine, and refuses one that others use."""


@dataclass(frozen=True)
class Run:
    """How one engdiff command ended."""

    code: int
    stdout: str
    stderr: str

    def __post_init__(self) -> None:
        assert "Traceback" not in self.stderr, self.stderr


def engdiff(*words: str, variables: dict[str, str] | None = None, stdin: str | None = None) -> Run:
    """Run engdiff as a user does."""
    done = subprocess.run(
        [sys.executable, "-m", "engdiff", *words],
        capture_output=True,
        text=True,
        input=stdin,
        env={**os.environ, **(variables or {})},
        check=False,
    )
    return Run(done.returncode, done.stdout, done.stderr)


CaptureOf = Callable[..., Path]


@pytest.fixture(scope="session")
def capture_of(tmp_path_factory: pytest.TempPathFactory) -> CaptureOf:
    """Capture ``engine@version`` once per session for each command line; gives the file."""
    folder = tmp_path_factory.mktemp("captures")

    @cache
    def capture(reference: str, *words: str, nth: int = 1) -> Path:
        target = folder / f"{reference.replace('@', '-')}-{abs(hash((words, nth)))}.json"
        variables = SMALL_POOL if reference.startswith("vllm") else {}
        run = engdiff(
            "capture", reference, "--model", "tiny", "-o", str(target), "-q", "--", *words, variables=variables
        )
        assert run.code == 0, run.stderr
        return target

    return capture


def loaded(path: Path) -> Capture:
    """The capture in a file."""
    return load_capture(path)


def diffed(old: Path, new: Path, *words: str) -> tuple[int, Diff]:
    """Exit code and document of ``engdiff diff --json``."""
    run = engdiff("diff", str(old), str(new), "--json", *words)
    assert run.code in (0, 1), run.stderr
    return run.code, parse(run.stdout, "diff", Diff)
