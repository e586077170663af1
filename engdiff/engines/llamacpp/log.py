"""How llama.cpp writes its log: its prefixes and those of the programs that carry it. What it states: ``facts.py``.

The memory lines need verbosity 4 from about b9294 on; before, they are printed at the default.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from engdiff.logs.patterns import load
from engdiff.logs.starts import LogFormat
from engdiff.logs.statements import Said

_COLOUR = r"(?:\[[0-9;]{1,8}m)?"
"""A colour whose escape byte was lost on the way, as in text copied from a terminal."""

PREFIX = re.compile(
    rf"^{_COLOUR}(?P<minutes>\d+)\.(?P<seconds>\d\d)\.(?P<millis>\d{{3}})\.(?P<micros>\d{{3}}){_COLOUR} {_COLOUR}"
    rf"(?P<level>[DIWE]) {_COLOUR}"
)
"""Time since the start of the process and a level, from about b9294 on; nothing before. llama-box has had it always."""

_PORT = re.compile(r"^\[(?P<process>\d{4,5})\] ?")
"""The router puts the port of the child in front of what the child says (server-models.cpp, from b7376)."""

_PREFIXES = tuple(
    re.compile(pattern)
    for pattern in (
        r"^(?P<level>[DIWE]) (?=[a-z~_]\w*(?:\(\w*\))?:|(?:srv|slot|cmn|que|spec) )",
        r"^\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6}\] (?P<level>[DIWE]) ",
        r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \[(?P<level>[A-Z]+)\] ",
        r"^(?:\d{4}-\d\d-\d\d \d\d:\d\d:\d\d )?time=\S+ level=(?P<level>[A-Z]+)\S* source=\S+ ",
        r"^\d{4}/\d\d/\d\d \d\d:\d\d:\d\d \S+\.go:\d+: (?P<level>[A-Z]+) ",
        r"^ ?(?P<level>INFO|WARN|ERR|VERB|DBUG|ERROR|WARNING) \[ *\w+\] ",
        r"^\[llama (?P<level>\w+)\]: ",
        r"^(?:\d\d?:\d\d[AP]M )?(?P<level>[A-Z]{3}) GRPC\((?P<process>[^)]{1,200})\): std(?:err|out) ",
    )
)
"""The level alone; llama-box in 2025; LM Studio; ollama now (Docker Desktop puts a time before it) and in 2023; the
server until b3900 and in ik_llama.cpp; LLamaSharp; LocalAI."""

_FUNCTION = re.compile(
    r"^(?:[a-z~_]\w*(?:\(\w*\))?: |(?:srv|slot|cmn|que|spec) +[\w~]+:|msg=|\s*(?:prompt eval|eval|total) time +=)"
)
"""What says a line: a function's name. It is as good as a prefix: such a line continues no other, nor does a time."""

_RULER = re.compile(r"(?:^|: )-{5,}$")
"""A line drawn above and below a warning says nothing itself."""

_LOUD: Mapping[str, str] = {"ERR": "ERROR", "E": "E", "W": "W", "WARN": "WARN", "WARNING": "WARNING"}


def said(text: str) -> Said:
    """A line without the prefixes of llama.cpp and of what carried it; ``process`` is a child's port or name."""
    if text.startswith('time="'):
        return _logrus(text)
    process = ""
    if (port := _PORT.match(text)) and len(text) > port.end():
        process, text = port["process"], text[port.end() :]
    match = PREFIX.match(text) or next((m for p in _PREFIXES if (m := p.match(text))), None)
    if match is None:
        return Said(text=text, process=process, prefixed=bool(process) or _FUNCTION.match(text) is not None)
    groups = match.groupdict()
    level, message = groups["level"].upper(), text[match.end() :]
    return Said(
        text=message,
        process=groups.get("process") or process,
        level=None if _RULER.search(message) else _LOUD.get(level, level),
        prefixed=True,
    )


def _logrus(text: str) -> Said:
    """A line inside another program's ``time="…" level=… msg="…"``."""
    level = re.search(r" level=(\w+)", text[:200])
    start = text.find('msg="')
    if level is None or start < 0:
        return Said(text=text, prefixed=True)
    inner = text[start + 5 : text.rfind('"')].replace('\\"', '"')
    return Said(text=inner, level=level[1].upper(), prefixed=True)


def uptime(line: str) -> float | None:
    """Seconds since the start of the process, where the prefix states them."""
    _, _, rest = line.rpartition("] ") if _PORT.match(line) else ("", "", line)
    match = PREFIX.match(rest)
    if match is None:
        return None
    return int(match["minutes"]) * 60 + int(match["seconds"]) + int(match["millis"]) / 1e3 + int(match["micros"]) / 1e6


FORMAT = LogFormat(
    lines=load("engdiff.engines.llamacpp"),
    said=said,
    level_marks=(" W ", " E ", "level=WARN", "level=ERROR", "WARN [", "ERR ["),
)
