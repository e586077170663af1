"""vLLM's log lines without process, level, time and place; and what one launch's log says."""

from __future__ import annotations

import json
import re

from engdiff.logs import launched as launch
from engdiff.logs.patterns import load
from engdiff.logs.starts import LogFormat, Start
from engdiff.logs.statements import Said

_LEVEL = r"(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL)"
_DAY = r"(?:\d{4}-)?\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d+)?"
_PLACE = r"(?:\[[\w./ -]{1,160}(?::\d+)?\]|[\w./-]{1,160}:\d+\])"

_PROCESS = re.compile(
    r"\s*\((?P<process>[A-Za-z][\w.:<>-]*(?: (?:rank=\d+|[A-Z]{2}\d+))?)(?P<pid>(?:,? pid=(?P<number>\d+))?)"
    r"(?P<host>(?:, ip=[\w.:]+)?)\)(?: +|$)"
)
"""Of a process (vllm/utils/system_utils.py ``decorate_logs``), or of an actor of Ray."""

_RANK = re.compile(r"\[rank(?P<rank>\d+)\]: ?")
"""Put before a traceback by torch."""

_HEAD = re.compile(rf"(?:\d\d:\d\d:\d\d(?:[.,]\d+)? +)?{_LEVEL} +(?:{_DAY} *(?:{_PLACE}(?: +|$))?|{_PLACE}(?: +|$))")
_BARE = re.compile(rf"{_LEVEL} +(?=\S)")
_LATER = re.compile(
    rf"(?:\((?P<process>[A-Za-z][\w.-]*(?: (?:rank=\d+|[A-Z]{{2}}\d+))?) pid=(?P<number>\d+)\) )?"
    rf"\b{_LEVEL} {_DAY} {_PLACE}(?: +|$)"
)
"""A prefix that begins behind something else: a progress bar, or VLLM_LOGGING_PREFIX."""

_MODULE = re.compile(rf"{_DAY} +(?P<module>vllm[\w.]*) +(?P<number>\d+) +{_LEVEL} +")
"""As Xinference formats the records of vLLM's loggers."""

_FOREIGN = re.compile(rf"\[?{_DAY}|INFO: {{5}}|WARNING: {{2}}|ERROR: {{4}}|\[W?\d{{4}} |[IWEF]\d{{4}} |\[[\w .-]+\] ")
"""The beginning of a line that another program formatted: no continuation of the line before it."""

_REPEATED = re.compile(r"(?<! ) *\[repeated \d+x across cluster\].*$")
_IN_NAME = re.compile(r"(?:_| )(DP|PP|TP|EP)(\d+)(?!\d)")
_GLOBAL = re.compile(r"(?: rank=|^VllmWorker-)(\d+)$")
_ENGINE = re.compile(r"^EngineCore_(\d+)$")


def said(text: str) -> Said:
    """A line without its prefix. A line of another program under a process's prefix keeps its own beginning."""
    if text.startswith('{"') and (record := _json(text)):
        return record
    process, pid, ranks, rest = "", None, {}, text
    while match := _PROCESS.match(rest):
        behind = rest[match.end() :]
        if not match["pid"] and not (_HEAD.match(behind) or _BARE.match(behind)):
            break
        process = match["process"] + match["host"].removeprefix(",")
        pid = int(match["number"]) if match["number"] else None
        rest = behind
    ranks = _ranks(process)
    if match := _RANK.match(rest):
        ranks, rest = {**ranks, "rank": int(match["rank"])}, rest[match.end() :]
    return _levelled(rest, process, pid, ranks, prefixed=len(rest) < len(text))


def _levelled(rest: str, process: str, pid: int | None, ranks: dict[str, int], *, prefixed: bool) -> Said:
    """What stands behind the process: level, time and place, in one of the forms that they have."""
    match = _HEAD.match(rest) or _MODULE.match(rest) or (_BARE.match(rest) if prefixed else None)
    if match is None and (match := _LATER.search(rest)) and match["process"]:
        process, pid, ranks = match["process"], int(match["number"]), _ranks(match["process"])
    if match is None:
        foreign = _FOREIGN.match(rest) is not None
        return Said(rest.rstrip(), process, pid, ranks, prefixed=prefixed or foreign)
    message = _REPEATED.sub("", rest[match.end() :]).rstrip()
    level = None if match["level"] == "ERROR" and _in_traceback(match[0], message) else match["level"]
    if "number" in match.re.groupindex and match["number"]:
        pid = int(match["number"])
    return Said(message, process, pid, ranks, level, prefixed=True)


def _in_traceback(prefix: str, message: str) -> bool:
    """Whether a line only shows the way to an error: the formatter repeats its prefix on each line of a message."""
    indented = len(prefix) - len(prefix.rstrip(" ")) > len("] ") or not message
    return indented or message.startswith(("Traceback (most recent call last)", "The above exception was the direct"))


def joined(words: str) -> str:
    """Last words with the rows into which a terminal cut a line put together again."""
    lines: list[str] = []
    for line in words.splitlines():
        if lines and line and not line[0].isspace() and not said(line).prefixed and said(lines[-1]).prefixed:
            lines[-1] += line
        else:
            lines.append(line)
    return "\n".join(lines)


def _json(text: str) -> Said | None:
    """A record of the JSON formatter (vllm/logging_utils/formatter.py, 0.31 on)."""
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        return None
    message = record.get("message") if isinstance(record, dict) else None
    if not isinstance(message, str):
        return None
    process, pid, level = (record.get(name) for name in ("processName", "process", "levelname"))
    process = process if isinstance(process, str) and process != "MainProcess" else ""
    return Said(
        message.rstrip(),
        process,
        pid if isinstance(pid, int) else None,
        _ranks(process),
        level if isinstance(level, str) else None,
        prefixed=True,
    )


def _ranks(process: str) -> dict[str, int]:
    """What the name of a process states: ``Worker_DP1_TP1_EP3``; ``rank`` is that among all workers of an engine."""
    found = {kind.lower(): int(index) for kind, index in _IN_NAME.findall(process)}
    if match := _GLOBAL.search(process):
        found["rank"] = int(match[1])
    if match := _ENGINE.match(process):
        found["dp"] = int(match[1])
    return found


FORMAT = LogFormat(lines=load("engdiff.engines.vllm"), said=said, level_marks=("WARNING ", "ERROR ", "CRITICAL "))


def launched(log: str) -> Start:
    """The log of one launch."""
    return launch.launched(log, FORMAT)
