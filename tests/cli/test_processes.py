"""The command line as a process of its own: what it imports, and how it ends when nobody reads."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Call

HEAVY = {"torch", "scipy", "numpy", "pandas", "deepdiff", "uv", "vllm", "xllamacpp", "transformers"}


def engdiff(*words: str, python: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "PYTHONWARNDEFAULTENCODING": "0"}
    return subprocess.run(
        [sys.executable, *python, "-m", "engdiff", *words],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
        env=environ,
        check=False,
    )


@pytest.mark.parametrize("verb", ["--help", "diff", "show"])
def test_imports_are_light(call: Call, old: str, new: str, tmp_path: Path, verb: str) -> None:
    files = [str(tmp_path / name) for name in {"diff": (old, new), "show": (old,)}.get(verb, ())]
    done = engdiff(verb, *files, python=("-X", "importtime"))
    assert done.returncode == (1 if verb == "diff" else 0)
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if line.startswith("import time")}
    assert "engdiff.cli.app" in imported
    assert not {name for name in imported if name.partition(".")[0] in HEAVY}


def test_help_imports_no_schema() -> None:
    done = engdiff("--help", python=("-X", "importtime"))
    assert "engdiff.schema.capture" not in done.stderr
    assert "engdiff.diff" not in done.stderr.replace("engdiff.cli.diff", "")


@pytest.mark.parametrize("verb", ["schema", "show"])
def test_a_pipe_that_nobody_reads(call: Call, old: str, tmp_path: Path, verb: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "engdiff", verb, "capture" if verb == "schema" else str(tmp_path / old)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        text = process.stderr.read().decode()
        process.wait(timeout=60)
    assert (process.returncode, text) == (0, "")
