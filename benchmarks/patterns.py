"""No pattern may be slow on a hostile line: every pattern of every engine against long runs of what it is made of.

A pattern that needs a multiple of the time on twice the text is quadratic; it is named, and the run ends with 1.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Iterator

from engdiff import engines
from engdiff.logs.unwrap import unwrap

LONG = 16_000
SLOW_SECONDS = 0.02
QUADRATIC = 3.0
FILLERS = (
    *(
        " ",
        "0",
        "a",
        "0,",
        "0.",
        "a ",
        "=",
        "[",
        "(",
        "'",
        '"',
        "{",
        "a=",
        "1 ",
        "|",
        "GiB ",
        ": ",
        "\t",
        "_",
        "-",
        "a.",
    ),
    *("] [", "INFO ", "TP0 ", "\x1b[", "^[[0;", "'a': ", "a=1, ", "0/", "x("),
)
Read = Callable[[str], object]


def readers() -> Iterator[tuple[str, tuple[str, ...], Read]]:
    """Name, beginnings that lead into it, and what reads a text."""
    yield "unwrap", ("",), unwrap
    for name in engines.names():
        engine = engines.get(name)
        heads = ("", "(", "[", "(EngineCore pid=", "[2025-01-01 00:00:01 ", "INFO 01-01 00:00:01 [", "[TensorRT-LLM][")
        yield f"{name}: prefix", heads, engine.log.format.said
        for line in engine.log.format.lines:
            yield f"{name}: {line.name} {line.pattern.pattern[:60]}", line.anchors, line.pattern.search
        for failure in engine.knowledge.failures:
            yield f"{name}: failure {failure.pattern.pattern[:60]}", _literals(failure.pattern), failure.pattern.search


def _literals(pattern: re.Pattern[str]) -> tuple[str, ...]:
    """Some text that the pattern may begin with."""
    return ("", *re.findall(r"[A-Za-z ]{8,}", pattern.pattern)[:2])


def seconds(read: Read, text: str) -> float:
    """How long one reading takes."""
    start = time.perf_counter()
    read(text)
    return time.perf_counter() - start


def main() -> int:
    """Name what is slow."""
    found: dict[str, tuple[float, float, str]] = {}
    count = 0
    for name, beginnings, read in readers():
        count += 1
        for text in (
            text for head in beginnings for fill in FILLERS for text in (head + fill * LONG, fill * LONG + head)
        ):
            whole = seconds(read, text[:LONG] if text.startswith(tuple(filter(None, beginnings))) else text[-LONG:])
            if whole < SLOW_SECONDS:
                continue
            half = min(seconds(read, text[: LONG // 2]) for _ in range(2))
            if whole / max(half, 1e-9) > QUADRATIC and whole > found.get(name, (0.0, 0.0, ""))[0]:
                found[name] = (whole, half, repr(text[:40]))
    print(f"{count} patterns, {LONG} characters each: {len(found)} slow")
    for name, (whole, half, text) in found.items():
        print(f"{name}: {whole:.3f} s, half the text {half:.3f} s, on {text}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
