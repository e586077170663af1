"""A Diff as workflow commands of GitHub Actions: one annotation for each finding that costs something."""

from __future__ import annotations

from collections.abc import Iterator

from engdiff.report.wording import STARTS, count, side_name
from engdiff.schema.diff import Diff, Finding


def diff_github(diff: Diff) -> str:
    """One line per unaccepted finding, cosmetic ones in one together, since a step shows ten notices; may be empty."""
    title = f"{side_name(diff.old)} to {side_name(diff.new)}"
    return "".join(f"::{level} title={_escape(title, values=True)}::{_escape(text)}\n" for level, text in _lines(diff))


def _lines(diff: Diff) -> Iterator[tuple[str, str]]:
    cosmetic = [f for f in diff.findings if f.area == "cosmetic" and not f.asked]
    for finding in diff.findings:
        if finding not in cosmetic:
            yield _level(finding), _text(finding)
    if cosmetic:
        headlines = "; ".join(f.headline for f in cosmetic)
        yield "notice", f"{count(len(cosmetic), 'cosmetic difference')}: {headlines}"


def _level(finding: Finding) -> str:
    if finding.asked:
        return "notice"
    return "error" if finding.kind in STARTS else "warning"


def _text(finding: Finding) -> str:
    if finding.asked:
        return f"Asked for: {finding.headline}"
    pin = f" Pin: {finding.pin.text}" if finding.pin.text else ""
    return f"{finding.headline}. {finding.why}{pin}"


def _escape(text: str, *, values: bool = False) -> str:
    text = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return text.replace(":", "%3A").replace(",", "%2C") if values else text
