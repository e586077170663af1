"""Takes off what is around an engine's line: colours, boxes, and the prefixes of whatever carried it here."""

from __future__ import annotations

import json
import re

COLOURS = re.compile(
    r"(?:\x1b|\^\[|␛)\[[0-9;:?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)?|\x1b[@-Z\\^_=>()]?"
)
"""Escape sequences as bytes and as caret text; operating system commands (titles, links) with what they say."""

CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]")
"""Control characters, and those that would let a log rearrange a terminal's line; a tab stays."""

ENDLESS_NUMBER = re.compile(r"\d{31,}")
"""No engine prints one; Python refuses to convert some."""

_ISO = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?"

_SYSLOG_TIME = r"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d+)?"

_WRAPPERS = {
    "a box drawn by a terminal program": r"^[│┃║┆▌▏|]+ ?(?=\S)",
    "a quotation": r"^\s*>{1,3} (?=\S)",
    "docker compose": r"^(?P<source>[A-Za-z0-9][\w.-]{0,63}) +\| ",
    "kubectl logs --prefix": r"^\[pod/(?P<source>[^\]\s]{1,200})\] ",
    "stern": r"^(?P<source>[a-z0-9][a-z0-9.-]*-[a-z0-9]{5,10}(?:-[a-z0-9]{5})?) [a-z0-9][a-z0-9-]* "
    r"(?=[(\[]|INFO |WARN|ERROR)",
    "a container runtime's file": rf"^{_ISO} (?:stdout|stderr) [FP] ",
    "TorchServe": rf"^{_ISO},?\d* \[[A-Z]+ *\] (?P<source>W-\d+-\S+?)-std(?:out|err) MODEL_LOG - ",
    "syslog, RFC 5424": rf"^(?:<\d{{1,3}}>)?1 {_ISO} \S+ (?P<source>\S+) \S+ \S+ (?:-|\[[^\]]*\]) ",
    "journald, syslog": rf"^(?:<\d{{1,3}}>)?{_SYSLOG_TIME} \S+ (?P<source>[\w.@/-]+?)(?:\[\d+\])?: ",
    "journald with ISO times": rf"^{_ISO} \S+ (?P<source>[\w.@/-]+?)\[\d+\]: ",
    "LM Studio": r"^\[\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d\]\[[A-Z]+\] ?",
    "docker logs -t, kubectl --timestamps, CI": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d) (?=\S)",
    "ts": r"^[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d (?=\S)",
}
_PATTERNS = tuple(re.compile(pattern) for pattern in _WRAPPERS.values())

BOLD = re.compile(r"(?<!\*)\*\*([^*\s](?:[^*]{0,200}[^*\s])?)\*\*(?!\*)|^\*\*(?=[^*\s])")
"""Markdown's, where somebody pasted the line: in pairs, or at its beginning; not the ``**`` of Python, nor asterisks
that hide a word."""

MARKUP = re.compile(r"</?(?:font|span|b)(?: [^<>]{1,80})?>")
"""Colours that a terminal copied as HTML."""

MOST_LAYERS = 6
PARTIAL = re.compile(rf"^{_ISO} (?:stdout|stderr) P ")
"""A container runtime splits a line of more than 16 KiB; all parts but the last are marked."""

LONGEST_PREFIX = 512

CELL_BORDERS = 3
"""So many bars on one line, at both ends too, are a row of a table (Triton prints some), whose cells name no stream."""


def clean(text: str) -> str:
    """The text without colours and control characters. What it shows is what it says."""
    if "\x1b" in text or "^[" in text or "␛" in text:
        text = COLOURS.sub("", text)
    return CONTROLS.sub("", text)


def unwrap(text: str, *, goes_on: bool = False) -> tuple[str, str]:
    """The engine's own line, and what the wrapper calls the stream that it came from (empty: no wrapper).

    ``goes_on``: the line is the first part of one that was split, so that spaces at its end count.
    """
    text = clean(_docker_json(text).rstrip("\r\n"))
    text = MARKUP.sub("", text) if "</" in text else text
    text = text if goes_on else text.rstrip(" \t│┃║")
    sources: list[str] = []
    for _ in range(MOST_LAYERS):
        if text.startswith("|") and text.endswith("|") and text.count("|") >= CELL_BORDERS:
            break
        found = next((m for p in _PATTERNS if (m := p.match(text[:LONGEST_PREFIX]))), None)
        if found is None:
            break
        if source := found.groupdict().get("source"):
            sources.append(source)
        text = text[found.end() :]
    return ENDLESS_NUMBER.sub("#", BOLD.sub(r"\1", text) if "**" in text else text), "/".join(sources)


def _docker_json(text: str) -> str:
    """The line inside a docker log file's JSON."""
    if not text.startswith('{"log":"'):
        return text
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return text
    inner = found.get("log") if isinstance(found, dict) else None
    return inner if isinstance(inner, str) else text
