"""How fast a log streams, beside ``grep -E`` with the same texts on the same file, in one run.

Three logs of 256 MiB (``ENGDIFF_BENCH_LOG_MIB``): access lines only, as most of a server's log is; half of them
run-time lines; and with start-up lines between. Memory is the peak of the process that reads.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

MIB = 2**20
SIZE_MIB = int(os.environ.get("ENGDIFF_BENCH_LOG_MIB", "256"))
FALLBACK_MIB = 16
LEAST_MB_PER_SECOND = 100
"""Of irrelevant lines, on one core."""

SLOWEST_SHARE_OF_GREP = 1 / 3

READ = """
import resource, sys, time
from engdiff import engines
from engdiff.logs import matcher
from engdiff.logs.reader import Reader
if sys.argv[2] == "fallback":
    matcher.native = lambda texts: None
reader = Reader({name: engines.get(name).log.format for name in engines.names()})
start = time.perf_counter()
with open(sys.argv[1], "rb") as stream:
    heard = reader.hear(stream)
print(time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, heard.lines)
"""

ACCESS = '(APIServer pid=1) INFO:     10.{a}.{b}.7:{c} - "POST /v1/chat/completions HTTP/1.1" 200 OK'
PROMPT = 'time=2026-01-01T00:00:00Z level=INFO id={c:x} "the memory of the model and its cache" took {a}.{b} s'
RUN = (
    "(APIServer pid=1) INFO 01-01 00:00:01 [loggers.py:257] Engine 000: Avg prompt throughput: {a}.0 tokens/s, "
    "Avg generation throughput: {b}.4 tokens/s, Running: {a} reqs, Waiting: 0 reqs, GPU KV cache usage: 1.{b}%, "
    "Prefix cache hit rate: 0.0%"
)
BOOT = "(EngineCore pid=2) INFO 01-01 00:00:01 [kv_cache_utils.py:2146] GPU KV cache size: {c},160 tokens"


def main() -> int:
    """Print the table; 1 when a promise is broken."""
    folder = Path(os.environ.get("ENGDIFF_BENCH_DIR", ".cache")) / "bench-logs"
    folder.mkdir(parents=True, exist_ok=True)
    broken = []
    grep = shutil.which("grep")
    pattern = folder / "anchors.txt"
    pattern.write_text("\n".join(_anchors()), encoding="utf-8")
    print(f"{'log of ' + str(SIZE_MIB) + ' MiB':<34} {'engdiff':>12} {'grep -E':>12} {'ratio':>6} {'memory':>9}")
    for name, kinds in KINDS.items():
        path = folder / f"{name.replace(' ', '-')}.log"
        _write(path, kinds)
        size = path.stat().st_size / 1e6
        seconds, memory, _ = _read(path, "native")
        other = _grep(grep, pattern, path) if grep else None
        ratio = other / seconds if other else None
        print(
            f"{name:<34} {size / seconds:>7.0f} MB/s {size / other if other else 0:>7.0f} MB/s "
            f"{ratio or 0:>6.2f} {memory / MIB:>5.0f} MiB"
        )
        if name == "access lines" and size / seconds < LEAST_MB_PER_SECOND:
            broken.append(f"{name}: {size / seconds:.0f} MB/s")
        if ratio is not None and ratio < SLOWEST_SHARE_OF_GREP:
            broken.append(f"{name}: {ratio:.2f} of grep")
        if name == "access lines":
            with path.open("r+b") as stream:
                stream.truncate(min(path.stat().st_size, FALLBACK_MIB * MIB))
            slow, _, _ = _read(path, "fallback")
            print(f"{'   with the standard library only':<34} {path.stat().st_size / 1e6 / slow:>7.0f} MB/s")
        path.unlink()
    for one in broken:
        print(f"slower than promised: {one}", file=sys.stderr)
    return 1 if broken else 0


SGLANG = (
    "[2025-01-01 00:00:01 TP0] Decode batch. #running-req: {a}, #token: {c}, token usage: 0.{b}, cuda graph: True, "
    "gen throughput (token/s): {a}.{b}, #queue-req: 0, "
)
LLAMACPP = (
    "slot print_timing: id  0 | task {a} | \nprompt eval time =    {a}.10 ms /    {b} tokens (    0.20 ms per token,  "
    "5000.00 tokens per second)\n       eval time =   {a}.10 ms /   {b} tokens (   10.00 ms per token,   100.00 tokens "
    "per second)\n      total time =  {c}.00 ms /  {b} tokens\nslot      release: id  0 | task {a} | stop processing: "
    "n_past = {b}, truncated = 0\nsrv  update_slots: all slots are idle\nsrv  log_server_r: request: POST "
    "/v1/chat/completions 127.0.0.1 200"
)

KINDS = {
    "access lines": (ACCESS, PROMPT),
    "half run-time lines": (ACCESS, RUN),
    "SGLang, run-time lines only": (SGLANG,),
    "llama.cpp, busy": (LLAMACPP,),
    "a start-up line in a thousand": (*(ACCESS, PROMPT) * 500, BOOT),
}


def _anchors() -> Iterator[str]:
    from engdiff import engines

    texts = {a for n in engines.names() for p in engines.get(n).log.format.lines for a in p.anchors}
    marks = {mark for n in engines.names() for mark in engines.get(n).log.format.level_marks}
    yield from sorted(
        re.escape(text).replace(r"\ ", " ").replace(r"\-", "-").replace(r"\#", "#") for text in texts | marks
    )


def _write(path: Path, kinds: tuple[str, ...]) -> None:
    pick = Random(1).randrange  # noqa: S311
    numbers = [(pick(256), pick(99), pick(65536)) for _ in range(2000)]
    lines = [kinds[i % len(kinds)].format(a=a, b=b, c=c) for i, (a, b, c) in enumerate(numbers)]
    part = ("\n".join(lines) + "\n").encode()
    with path.open("wb") as stream:
        for _ in range(SIZE_MIB * MIB // len(part)):
            stream.write(part)


def _read(path: Path, how: str) -> tuple[float, float, float]:
    done = subprocess.run([sys.executable, "-c", READ, str(path), how], capture_output=True, text=True, check=True)
    seconds, memory, lines = map(float, done.stdout.split())
    return seconds, memory, lines


def _grep(grep: str, pattern: Path, path: Path) -> float:
    start = time.perf_counter()
    subprocess.run([grep, "-E", "-c", "-f", str(pattern), str(path)], capture_output=True, check=False)
    return time.perf_counter() - start


if __name__ == "__main__":
    raise SystemExit(main())
