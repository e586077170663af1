"""A Diff as workflow commands of GitHub Actions: one annotation for each finding."""

from __future__ import annotations

from engdiff.report.wording import side_name
from engdiff.schema.diff import Diff, Finding

LEVELS = {
    "startup": "error",
    "memory": "warning",
    "scheduling": "warning",
    "kernels": "warning",
    "numerics": "warning",
    "cosmetic": "notice",
}


def diff_github(diff: Diff) -> str:
    """One line per unaccepted finding; empty when nothing moved."""
    title = f"{side_name(diff.old)} to {side_name(diff.new)}"
    return "".join(_line(f, title) for f in diff.findings)


def _line(finding: Finding, title: str) -> str:
    pin = f" Pin: {finding.pin.text}" if finding.pin.text else ""
    text = _escape(f"{finding.headline}. {finding.why}{pin}")
    return f"::{LEVELS[finding.area]} title={_escape(title, values=True)}::{text}\n"


def _escape(text: str, *, values: bool = False) -> str:
    text = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return text.replace(":", "%3A").replace(",", "%2C") if values else text
