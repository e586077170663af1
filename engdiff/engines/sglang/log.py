"""How SGLang writes its log: the prefix of its lines; the lines themselves are in ``knowledge/log.toml``."""

from __future__ import annotations

import re

from engdiff.logs.patterns import load
from engdiff.logs.starts import LogFormat
from engdiff.logs.statements import Said

_TIME = r"(?:\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\d(?:[.,]\d{1,6})?"

_OWN = re.compile(
    rf"(?:{_TIME} (?=\[{_TIME}))?\[{_TIME}(?: [A-Z]\w*\.[A-Z]\w*(?= ))?"
    rf"(?P<ranks>(?: [A-Z][A-Z_]*\d+){{0,6}})(?: [a-z][a-z_]*(?:\[\d+\])?)?\](?: |$)"
    r"(?:\[gpu[=_](?P<gpu>\d+)\] ?)?"
)
"""``configure_logger`` (utils.py 0.2.15 without a date, 0.3.6-0.5.23 with one): time and ranks, no level.

Docker's desktop program puts its own time in front; forks name what a worker does before its ranks.
"""

_UNTIMED = re.compile(r"\[(?P<ranks>(?:(?:TP|PP|DP|EP)\d+ ?){1,6})\] ")
"""The same without the time, as people quote it."""

_EARLY = re.compile(r"\[gpu[=_](?P<gpu>\d+)\] ")
"""0.2: messages name the device themselves."""

_PYTHON = re.compile(r"(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL):sglang[\w.]*:")
"""What is logged before ``configure_logger`` ran."""

_UVICORN = re.compile(r"(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL): {2,}")

_FOREIGN = re.compile(rf"{_TIME} - (?:[\w.]+ - )?(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) - ")
"""Other loggers (flashinfer) on the same stream: never the continuation of a line of SGLang."""

_RAY = re.compile(r"\(\w[\w:. ]{0,60}pid=(?P<pid>\d+)[^)]{0,60}\) ")

_RANK = re.compile(r"(?<![A-Z_])(TP|PP|DP|EP)(\d+)")

UNMARKED_WARNINGS = (
    "is larger than the profiled value",
    "max_running_requests was reduced from the requested",
    "by the mamba state cache",
    "tokens, fewer than --context-length",
    "The memory capacity is unbalanced",
    "is smaller than the device pool (",
    "is greater than the derived context_length",
    "Overlap scheduler is disabled",
    "Overlap schedule is disabled",
    "incompatible with overlap schedule",
    "Disabling overlap schedule",
    "adix cache is disabled",
    "isabling radix cache",
    "uda graph is disabled",
    "The chunked prefill size is adjusted to",
    "Max running requests is reset to",
    "Performance might be sub-optimal!",
)
"""SGLang's format prints no level; these it logs as warnings (or, of adjustments in old versions, as information)."""


def said(text: str) -> Said:
    """A line without its prefix."""
    pid: int | None = None
    if (ray := _RAY.match(text)) is not None:
        pid, text = int(ray["pid"]), text[ray.end() :]
    own = _OWN.match(text) or _EARLY.match(text) or _UNTIMED.match(text)
    if own is None:
        return _behind_a_bar(text, pid) or _without_time(text, pid)
    groups = own.groupdict()
    printed = (groups.get("ranks") or "").strip()
    gpu = groups.get("gpu")
    ranks = {name.lower(): int(index) for name, index in _RANK.findall(printed)}
    if gpu is not None and not printed:
        printed, ranks = f"gpu={gpu}", {"tp": int(gpu)}
    rest = text[own.end() :]
    marked = _UVICORN.match(rest) or _PYTHON.match(rest)
    if marked:
        rest = rest[marked.end() :]
    return Said(
        text=rest,
        process=printed,
        pid=pid,
        ranks=ranks,
        level=marked["level"] if marked else _level(rest),
        prefixed=True,
    )


def _behind_a_bar(text: str, pid: int | None) -> Said | None:
    """A progress bar does not end its line: another process's message may stand behind it, with its own prefix.

    The whole text is kept, so that the bar is read as well.
    """
    found = _OWN.search(text, text.index("%|")) if "%|" in text else None
    if found is None:
        return None
    printed = found["ranks"].strip()
    ranks = {name.lower(): int(index) for name, index in _RANK.findall(printed)}
    return Said(text=text, process=printed, pid=pid, ranks=ranks, prefixed=True)


def _without_time(text: str, pid: int | None) -> Said:
    marked = _PYTHON.match(text) or _UVICORN.match(text)
    if marked:
        return Said(text=text[marked.end() :], pid=pid, level=marked["level"], prefixed=True)
    prefixed = pid is not None or _FOREIGN.match(text) is not None
    return Said(text=text, pid=pid, level=_level(text), prefixed=prefixed)


def _level(text: str) -> str | None:
    return "WARNING" if any(mark in text for mark in UNMARKED_WARNINGS) else None


FORMAT = LogFormat(
    lines=load("engdiff.engines.sglang"),
    said=said,
    level_marks=("WARNING:sglang", "ERROR:sglang", "CRITICAL:sglang", *UNMARKED_WARNINGS),
)
