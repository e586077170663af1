"""Lines that an engine writes again and again while it serves, summarised as they stream by."""

from __future__ import annotations

from dataclasses import dataclass, field

from pydantic import JsonValue


@dataclass
class Series:
    """One number that run-time lines state: how often, least, most, mean and last, and the lines of the extremes."""

    count: int = 0
    total: float = 0.0
    least: float = float("inf")
    most: float = float("-inf")
    last: float = 0.0
    first_line: int = 0
    last_line: int = 0

    def add(self, value: float, line: int) -> None:
        """Take in one more."""
        self.first_line = self.first_line or line
        self.count += 1
        self.total += value
        self.least, self.most = min(self.least, value), max(self.most, value)
        self.last, self.last_line = value, line

    def summary(self) -> dict[str, JsonValue]:
        """As JSON: ``lines`` is how many lines stated it."""
        return {
            "lines": self.count,
            "least": self.least,
            "mean": self.total / self.count,
            "most": self.most,
            "last": self.last,
            "first_line": self.first_line,
            "last_line": self.last_line,
        }


@dataclass
class RunTotals:
    """By pattern name and group: the series."""

    series: dict[tuple[str, str], Series] = field(default_factory=dict)

    def add(self, name: str, groups: dict[str, float], line: int) -> None:
        """Take in one line."""
        for group, value in groups.items():
            self.series.setdefault((name, group), Series()).add(value, line)
