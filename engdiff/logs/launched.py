"""The log of one launch: one start from its first line to its last, with every warning in it."""

from __future__ import annotations

from engdiff.logs.starts import LogFormat, Start
from engdiff.logs.statements import Line, Said, Statement
from engdiff.logs.unwrap import clean
from engdiff.schema.capture import EngineWarning

WARNINGS = ("WARNING", "ERROR", "CRITICAL")


def launched(log: str, form: LogFormat) -> Start:
    """Everything that the log states, in order."""
    rows = [Line(number, clean(raw)) for number, raw in enumerate(log.splitlines(), start=1)]
    start = Start(1, max(len(rows), 1))
    seen: dict[tuple[str, str], tuple[int, int]] = {}
    for line in rows:
        spoken = form.said(line.text)
        if spoken.level in WARNINGS and spoken.text:
            level = "warning" if spoken.level == "WARNING" else "error"
            first, times = seen.get((level, spoken.text), (line.number, 0))
            seen[level, spoken.text] = (first, times + 1)
        start.statements.extend(_stated(line, spoken, form))
    start.warnings = [
        EngineWarning(level=level, text=text, line=first, times=times)  # type: ignore[arg-type]
        for (level, text), (first, times) in seen.items()
    ]
    return start


def _stated(line: Line, spoken: Said, form: LogFormat) -> list[Statement]:
    """What the line states, at most one statement of a name."""
    found: dict[str, Statement] = {}
    for pattern in form.lines:
        wanted = pattern.name not in found and any(anchor in line.text for anchor in pattern.anchors)
        if wanted and (match := pattern.pattern.search(spoken.text)):
            found[pattern.name] = Statement(pattern.name, match, spoken, ((0, line),), spoken.text)
    return list(found.values())
