"""How long a command takes: median of several runs, the first of which is thrown away."""

from __future__ import annotations

import os
import statistics
import subprocess
import time
from collections.abc import Callable, Sequence

RUNS = 7


def command(words: Sequence[str], allowed: Sequence[int] = (0,)) -> float:
    """Seconds of a process, from start to end."""

    environ = {
        k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"
    }  # an installed engdiff is compiled

    def once() -> None:
        done = subprocess.run(words, capture_output=True, check=False, env=environ)
        if done.returncode not in allowed:
            raise SystemExit(f"{' '.join(words)}: code {done.returncode}\n{done.stderr.decode()}")

    return median(once)


def median(once: Callable[[], object], runs: int = RUNS) -> float:
    """Seconds of a call."""
    seconds = []
    for _ in range(runs + 1):
        start = time.perf_counter()
        once()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds[1:])
