"""``python -m benchmarks``: how fast engdiff answers, as ratios against ``python -c pass`` on this machine.

Ends with 1 only when a median is above one second. Not part of the tests: a busy machine is no defect.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.timing import command
from benchmarks.trees import captures

LIMIT_SECONDS = 1.0


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        old, new = captures(Path(folder))
        size = old.stat().st_size / 2**20
        engdiff = (sys.executable, "-m", "engdiff")
        bare = command((sys.executable, "-c", "pass"))
        rows = [
            ("python -c pass", bare),
            ("engdiff --help", command((*engdiff, "--help"))),
            (f"engdiff diff, two captures of {size:.1f} MiB", command((*engdiff, "diff", str(old), str(new)), (1,))),
        ]
        print(f"{'':<40} {'median':>9} {'ratio':>7}")
        for name, seconds in rows:
            print(f"{name:<40} {seconds:>7.3f} s {seconds / bare:>6.1f}×")
        other = deepdiff_seconds(old, new)
        text = "not installed" if other is None else f"{other:>7.3f} s {other / bare:>6.1f}×"
        print(f"{'deepdiff on the same two, once':<40} {text}")
    slow = [name for name, seconds in rows if seconds > LIMIT_SECONDS]
    for name in slow:
        print(f"slower than {LIMIT_SECONDS:g} s: {name}", file=sys.stderr)
    return 1 if slow else 0


def deepdiff_seconds(old: Path, new: Path) -> float | None:
    """What a general comparison of the two trees takes, without loading them; ``None`` when it is not here."""
    try:
        from deepdiff import DeepDiff  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        return None
    trees = [json.loads(path.read_text(encoding="utf-8"))["native"] for path in (old, new)]
    start = time.perf_counter()
    DeepDiff(*trees)
    return time.perf_counter() - start


if __name__ == "__main__":
    raise SystemExit(main())
