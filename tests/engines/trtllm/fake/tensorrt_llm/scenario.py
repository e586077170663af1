"""What this start is to show: the file that TLLM_STANDIN names."""

from __future__ import annotations

import json
import os
import time
from functools import cache
from pathlib import Path
from typing import Any


@cache
def scenario() -> dict[str, Any]:
    """Empty where nothing was asked for."""
    path = os.environ.get("TLLM_STANDIN")
    told: dict[str, Any] = json.loads(Path(path).read_text(encoding="utf-8")) if path else {}
    return told


def fault(name: str) -> bool:
    """Whether this fault is to be shown."""
    return bool(scenario().get("fault") == name)


def replay() -> None:
    """The lines of the log, in time."""
    for line in scenario().get("log", ()):
        print(line, flush=True)
        time.sleep(scenario().get("line_seconds", 0.001))
