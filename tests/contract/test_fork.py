"""An engine of another distribution, found by its entry point alone."""

from __future__ import annotations

import os
import subprocess
import sys

from engdiff import engines
from tests.contract.subjects import TOYS


def test_a_fork_is_named_with_the_others() -> None:
    environ = {**os.environ, "PYTHONPATH": str(TOYS)}
    words = [sys.executable, "-m", "engdiff", "capture", "toi", "--model", "tiny"]
    said = subprocess.run(words, env=environ, capture_output=True, text=True, check=False)
    assert said.returncode == 2
    assert "toy" in said.stderr


def test_a_fork_is_an_engine() -> None:
    assert engines.names()[-1] == "toy"
    assert engines.get("toy").title == "Toy"
