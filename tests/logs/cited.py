"""The promise that nothing is invented: every value that cites a line of a log stands in that line."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

from engdiff.logs.unwrap import unwrap
from engdiff.redact import redact_text
from engdiff.schema.capture import Capture

NUMBER = re.compile(r"\d[\d,_]*(?:\.\d+)?(?:[eE][+-]?\d+)?|\.\d+")
UNITS = (1, 2**10, 2**20, 2**30, 10**3, 10**6, 10**9, 0.01)


def claims(tree: Any, path: str = "") -> Iterator[tuple[str, Any, dict[str, Any]]]:
    """Path, value and evidence of everything that cites a log."""
    if isinstance(tree, dict):
        evidence = tree.get("evidence")
        if "value" in tree and isinstance(evidence, dict) and evidence.get("source") == "log":
            yield path, tree["value"], evidence
        for key, value in tree.items():
            yield from claims(value, f"{path}.{key}" if path else str(key))
    elif isinstance(tree, list):
        for index, value in enumerate(tree):
            yield from claims(value, f"{path}[{index}]")


def invented(capture: Capture, log: str) -> list[str]:
    """What does not stand in the line that it cites, or cites a line that is not there."""
    lines = [unwrap(line)[0] for line in log.replace("\r\n", "\n").split("\n")]
    found = []
    for path, value, evidence in claims(capture.model_dump(mode="json")):
        number, where = evidence["line"], evidence["where"]
        if number is None or not 1 <= number <= len(lines):
            found.append(f"{path}: cites line {number} of {len(lines)}")
        elif not _is_there(where, lines, number):
            found.append(f"{path}: cites {where!r}, line {number} is {lines[number - 1]!r}")
        elif not stands_in(value, where):
            found.append(f"{path}: {value!r} is not in {where!r}")
    return found


def _is_there(where: str, lines: list[str], number: int) -> bool:
    """The cited text is the line, or the line and those that continue it."""
    block = " ".join(lines[number - 1 : number + 4])
    return _bare(redact_text(where)) in _bare(redact_text(block))


def _bare(text: str) -> str:
    return "".join(text.split())


def stands_in(value: Any, where: str) -> bool:
    """Whether a value can be read off a text."""
    if isinstance(value, bool) or value is None:
        return bool(where)
    if isinstance(value, int | float):
        return any(_same(abs(float(value)), float(t.replace(",", "").replace("_", ""))) for t in NUMBER.findall(where))
    if isinstance(value, list):
        spaced = where.replace(",", ", ")
        return all(stands_in(item, where) or stands_in(item, spaced) for item in value)
    if isinstance(value, dict):
        return all(stands_in(item, where) for item in value.values())
    return all(word.lower() in where.lower() for word in re.findall(r"\w+", str(value).replace("[redacted]", "")))


def _same(value: float, printed: float) -> bool:
    return any(math.isclose(value, printed * unit, rel_tol=1e-9, abs_tol=0.51 if unit > 1 else 1e-12) for unit in UNITS)
