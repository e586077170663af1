"""vLLM's log lines without process, level, time and place; and the facts that only the log states."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from engdiff.schema.capture import EngineWarning

ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
PREFIX = re.compile(
    r"^(?:\((?P<process>[^)]*?)(?: pid=\d+)?\) )?(?:(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL) "
    r"\d\d-\d\d \d\d:\d\d:\d\d (?:\[[^\]]*\] )?)?"
)

SECONDS = {
    "load weights": re.compile(r"^Loading weights took (?P<seconds>\d+\.?\d*) seconds"),
    "compile": re.compile(r"torch\.compile (?:takes|took) (?P<seconds>\d+\.?\d*) s in total"),
    "capture graphs": re.compile(r"^Graph capturing finished in (?P<seconds>\d+\.?\d*) secs"),
    "profile, allocate KV, warm up": re.compile(
        r"^init engine \(profile, create kv cache, warmup model\) took (?P<seconds>\d+\.?\d*) s"
    ),
}
"""Boot phases that vLLM times itself; of several lines the last one holds."""

GRAPH_GIB = re.compile(r"^Graph capturing finished in \d+\.?\d* secs, took (?P<gib>-?\d+\.?\d*) GiB")
RUNNER_FALLBACK = re.compile(r"[Mm]odel [Rr]unner [Vv]2 .*using the [Vv]1 model runner instead")
CONSUMED_GIB = re.compile(r"(?P<gib>\d+\.?\d*) GiB memory was consumed by non-kv usages")


@dataclass(frozen=True)
class Line:
    """One message; ``number`` counts from 1."""

    number: int
    text: str
    level: str | None


@lru_cache(maxsize=1)  # one capture asks the same log for many facts
def lines(log: str) -> tuple[Line, ...]:
    """Messages of the log, in order."""
    return tuple(_line(number, ANSI.sub("", raw)) for number, raw in enumerate(log.splitlines(), start=1))


def _line(number: int, text: str) -> Line:
    prefix = PREFIX.match(text)
    assert prefix is not None, "every part of the prefix is optional"
    return Line(number, text[prefix.end() :].rstrip(), prefix["level"])


def last(log: str, pattern: re.Pattern[str]) -> tuple[re.Match[str], Line] | None:
    """The last message that the pattern matches."""
    for line in reversed(lines(log)):
        if match := pattern.search(line.text):
            return match, line
    return None


def warnings(log: str) -> tuple[EngineWarning, ...]:
    """Each distinct warning or error message once, with how often it came."""
    seen: dict[tuple[str, str], tuple[int, int]] = {}
    for line in lines(log):
        if line.level in ("WARNING", "ERROR", "CRITICAL") and line.text:
            level = "warning" if line.level == "WARNING" else "error"
            first, times = seen.get((level, line.text), (line.number, 0))
            seen[level, line.text] = (first, times + 1)
    return tuple(
        EngineWarning(level=level, text=text, line=first, times=times)  # type: ignore[arg-type]
        for (level, text), (first, times) in seen.items()
    )
