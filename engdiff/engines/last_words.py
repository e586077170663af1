"""What an engine's last words mean: patterns from its knowledge, and what every program's death says."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from engdiff.engines.contract import Cause
from engdiff.knowledge.tables import FailurePattern

SIGNALS = {
    "SIGILL": Cause(
        "the build uses a CPU instruction that this machine does not have (illegal instruction)",
        "`engdiff doctor` lists this CPU's features; choose another version or a machine with more features",
    ),
    "SIGKILL": Cause(
        "the process was killed from outside, most often by the kernel for using too much memory",
        "look for `Out of memory` in the kernel log, or lower the engine's memory settings",
    ),
    "SIGSEGV": Cause("the engine crashed (segmentation fault)", "its log's last lines show where"),
    "SIGBUS": Cause(
        "the engine crashed on memory it could not get (bus error)", "check the size of /dev/shm and free memory"
    ),
}


TAIL_LINES = 600
"""A traceback over several processes is long; what went wrong is within its last lines."""

LOWEST_CAUSE = 10
"""Patterns below this priority match notes, which every log may have; they are no cause."""


UNITS = ("_gib", "_mib", "_gb", "_mb", "_bytes", "_tokens", "_seconds", "_len", "_blocks", "_seqs", "_requests")
NUMBERS = ("utilization", "tokens", "blocks")
"""Groups whose names end so, or are these words, are numbers of the message; all others are words."""


def explain(patterns: Sequence[FailurePattern], log: str, exit_status: str) -> Cause | None:
    """The most telling pattern that the end of the log matches; else what the signal says; else nothing."""
    lines = log.splitlines()[-TAIL_LINES:]
    for entry in patterns:
        if entry.priority < LOWEST_CAUSE:
            continue
        if match := _last_match(entry, lines):
            return _cause(entry, match)
    return next((cause for name, cause in SIGNALS.items() if name in exit_status), None)


def _cause(entry: FailurePattern, match: re.Match[str]) -> Cause:
    said = {name: value for name, value in match.groupdict().items() if value is not None}
    groups = {name: said.get(name, "?") for name in match.groupdict()}
    return Cause(
        entry.cause.format_map(groups).rstrip("."),
        entry.advice.format_map(groups),
        stage=entry.stage,
        fits=_filled(entry.fits, said),
        numbers={name: value for name, value in said.items() if name in NUMBERS or name.endswith(UNITS)},
        line=_around(match),
    )


def _filled(sentence: str | None, said: Mapping[str, str]) -> str | None:
    """The sentence with what was said; ``None`` when a group of it took no part."""
    try:
        return sentence.format_map(said) if sentence else None
    except KeyError:
        return None


def _around(match: re.Match[str]) -> str:
    """The whole line of a match; of one over several lines, all of them."""
    text = match.string
    start = text.rfind("\n", 0, match.start()) + 1
    end = text.find("\n", match.end())
    return text[start : end if end >= 0 else len(text)]


def _last_match(entry: FailurePattern, lines: Sequence[str]) -> re.Match[str] | None:
    if entry.multiline:
        return max(entry.pattern.finditer("\n".join(lines)), key=lambda match: match.start(), default=None)
    for line in reversed(lines):
        match = entry.pattern.search(line)
        if match and not (entry.unless and entry.unless.search(line)):
            return match
    return None
