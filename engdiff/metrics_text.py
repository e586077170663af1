"""The Prometheus text format, as engines expose their counters: what can be read is read, the rest is counted.

Formats: https://prometheus.io/docs/instrumenting/exposition_formats/ (text, 0.0.4) and the exemplars of OpenMetrics.
No quantifier gives back what it has matched, so that every line takes linear time, whatever is in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_QUOTED = r'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_SAMPLE = re.compile(
    rf"""[ \t]*+(?P<name>[a-zA-Z_:][\w:]*+)[ \t]*+
    (?:\{{(?P<labels>(?:[^"}}]++|{_QUOTED})*+)\}}[ \t]*+|(?<=[ \t]))
    (?P<value>[+-]?(?:[0-9][0-9.]*+(?:e[+-]?[0-9]++)?|\.[0-9]++(?:e[+-]?[0-9]++)?|inf|infinity|nan))
    (?:[ \t]++[+-]?[0-9][0-9.e+-]*+)?[ \t]*+     # a timestamp, which says when it was written: now
    (?:\#.*+)?                                   # an exemplar
    """,
    re.VERBOSE | re.ASCII | re.IGNORECASE | re.DOTALL,
)
_LABEL = re.compile(rf"[ \t]*+([a-zA-Z_]\w*+)[ \t]*+=[ \t]*+({_QUOTED})[ \t]*+(?:,|\Z)", re.ASCII | re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_MEANT = {"n": "\n", '"': '"', "\\": "\\"}


LONGEST_LINE = 1 << 20
"""Characters. No label of an engine is longer, and a longer one says nothing that could be shown."""


class Sample(NamedTuple):
    """One line: a metric's name, its labels and its value."""

    name: str
    labels: dict[str, str]
    value: float


class samples:  # noqa: N801 -- used as a function, like range()
    """Every sample of a text that can be read, in order; ``skipped`` counts the lines that could not, so far."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.skipped = 0

    def __iter__(self) -> Iterator[Sample]:
        self.skipped = 0
        start, size = 0, len(self._text)
        while start < size:  # one line at a time: str.splitlines holds all, and ends lines inside of labels
            end = self._text.find("\n", start)
            end = size if end < 0 else end
            found = _sample(self._text, start, end)
            if found is not None:
                yield found
            elif not _says_nothing(self._text, start, end):
                self.skipped += 1
            start = end + 1


def _sample(text: str, start: int, end: int) -> Sample | None:
    if end - start > LONGEST_LINE:
        return None
    end -= text.endswith("\r", start, end)
    line = _SAMPLE.fullmatch(text, start, end)
    labels = _labels(line["labels"] or "") if line else None
    if line is None or labels is None:
        return None
    try:
        return Sample(line["name"], labels, float(line["value"]))
    except ValueError:  # 1.2.3
        return None


def _labels(text: str) -> dict[str, str] | None:
    """What is between the braces; ``None`` where something is left over."""
    labels: dict[str, str] = {}
    at = 0
    while label := _LABEL.match(text, at):
        at = label.end()
        value = label[2][1:-1]
        labels[label[1]] = _ESCAPED.sub(_meant, value) if "\\" in value else value
    return None if text[at:].strip() else labels


def _meant(escape: re.Match[str]) -> str:
    """An escape that means nothing stays as it is written."""
    return _MEANT.get(escape[1], escape[0])


def _says_nothing(text: str, start: int, end: int) -> bool:
    """An empty line or a comment, among which are HELP and TYPE."""
    line = text[start : min(end, start + 1000)].lstrip()
    return not line or line.startswith("#")
