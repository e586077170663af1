"""A Diff as workflow commands of GitHub Actions: one annotation for each finding that costs something."""

from __future__ import annotations

from collections.abc import Iterator

from engdiff.report.wording import STARTS, count, lost, minor, one_sides, place, side_name
from engdiff.schema.diff import Across, Diff, Finding


def diff_github(diff: Diff) -> str:
    """One line per unaccepted finding, cosmetic ones in one together, since a step shows ten notices; may be empty."""
    title = f"{side_name(diff.old)} to {side_name(diff.new)}"
    return "".join(f"::{level} title={_escape(title, values=True)}::{_escape(text)}\n" for level, text in _lines(diff))


def _lines(diff: Diff) -> Iterator[tuple[str, str]]:
    yield from (("warning", text) for text in _lost(diff.across))
    cosmetic = [f for f in diff.findings if minor(f) and not f.asked]
    for finding in diff.findings:
        if finding not in cosmetic:
            yield _level(finding), _text(finding, diff.across)
    if cosmetic:
        headlines = "; ".join(f.headline for f in cosmetic)
        yield "notice", f"{count(len(cosmetic), 'cosmetic difference')}: {headlines}"


def _level(finding: Finding) -> str:
    if finding.asked:
        return "notice"
    return "error" if finding.kind in STARTS else "warning"


def _text(finding: Finding, across: Across | None) -> str:
    if finding.asked:
        return f"{'Set on both' if across else 'Asked for'}: {finding.headline}"
    pin = f" Pin: {finding.pin.text}{place(finding.pin)}" if finding.pin.text else ""
    return f"{finding.headline}. {finding.why}{_meanings(finding, across)}{pin}"


def _meanings(finding: Finding, across: Across | None) -> str:
    """What two engines mean by it, where they mean different things."""
    found = finding.meanings
    if across is None or found is None or found.comparable:
        return ""
    return f" {across.old_title}: {found.old}. {across.new_title}: {found.new}."


def _lost(across: Across | None) -> Iterator[str]:
    """What the user wrote for the old engine, and the new one has nothing like it."""
    if across:
        old, _ = one_sides(across)
        for one in old.lost:
            yield f"engdiff knows no counterpart in {across.new_title} of {lost(one)}"


def _escape(text: str, *, values: bool = False) -> str:
    text = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return text.replace(":", "%3A").replace(",", "%2C") if values else text
