"""The line patterns of one engine, read from its ``knowledge/log.toml``."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from typing import Any, Literal

Role = Literal["start", "boot", "ready", "run", "stop", "died"]
"""start: begins another start when one has been said already. boot: states a decision. ready: requests are served now.
run: said again and again while serving; its groups are numbers, summarised. stop: the server went down on request.
died: the process says that an error ends it."""


@dataclass(frozen=True)
class LinePattern:
    """One kind of line. ``anchors`` are literal texts; a line that has none of them is never looked at.

    Several entries may share a ``name`` where the wording differs by version; the first that matches holds. Groups end
    in their unit where they have one: ``_gib``, ``_gb``, ``_mib``, ``_mb``, ``_bytes``, ``_seconds``, ``_percent``.
    ``telling`` is how much a match says for this engine when it is not known which one wrote the log: 0 for lines
    that other programs write as well. ``again``: a ready line that is said again whenever there is nothing to do;
    of those only so many are looked at, as of run-time lines.
    """

    name: str
    anchors: tuple[str, ...]
    expression: str | re.Pattern[str]
    role: Role = "boot"
    telling: int = 1
    again: bool = False

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """The expression, compiled when the first line is held against it: most verbs read no log."""
        return re.compile(self.expression)

    @property
    def abundant(self) -> bool:
        """Whether a busy server writes little else."""
        return self.role == "run" or self.again


def load(package: str) -> tuple[LinePattern, ...]:
    """The table in ``package``'s knowledge folder, in the order of the file."""
    resource = files(package) / "knowledge" / "log.toml"
    rows = tomllib.loads(resource.read_text(encoding="utf-8"))["line"]
    return tuple(_pattern(row) for row in rows)


def _pattern(row: Mapping[str, Any]) -> LinePattern:
    return LinePattern(
        name=row["name"],
        anchors=tuple(row["anchors"]),
        expression=row["pattern"],
        role=row.get("role", "boot"),
        telling=row.get("telling", 1),
        again=row.get("again", False),
    )
