"""A Diff as Markdown, for a pull request or a ticket."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from engdiff.report.wording import count, move, origins, side_name, verdict
from engdiff.schema.diff import Diff, Finding, Waterfall
from engdiff.units import format_bytes


def diff_markdown(diff: Diff) -> str:
    """The whole document: costly findings as a table, commands as code blocks, the rest folded away."""
    unasked = [f for f in diff.findings if not f.asked]
    costly, cosmetic = ([f for f in unasked if (f.area == "cosmetic") is minor] for minor in (False, True))
    parts = [
        f"## {_text(side_name(diff.old))} → {_text(side_name(diff.new))}",
        f"model {_code(diff.new.model)} · {verdict(diff)}",
        _table(costly),
        *map(_waterfall, diff.waterfalls),
        _command("The new version with every pin", diff.pinned_command),
        _command("Prove it", diff.prove_command),
        _list("Asked for: the command lines differ", (_text(f.headline) for f in diff.findings if f.asked)),
        _list("Accepted", (f"{_text(a.finding.headline)} (accepted: {_text(a.reason)})" for a in diff.accepted)),
        _list("The machines differ", (_text(move(m)) for m in diff.machine)),
        _list("Not compared", (f"{_text(n.what)}: {_text(n.because)}" for n in diff.not_compared)),
        _folded(f"{len(cosmetic)} cosmetic", _table(cosmetic)),
        _folded(f"{count(len(diff.packages), 'package')} moved", ", ".join(_text(move(m)) for m in diff.packages)),
        _folded(count(len(diff.warnings_new), "new warning"), _items(map(_text, diff.warnings_new))),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _table(findings: Sequence[Finding]) -> str:
    if not findings:
        return ""
    head = "| area | what moved | why it matters | pin |\n| --- | --- | --- | --- |"
    return head + "\n" + "\n".join(_row(f) for f in findings)


def _row(finding: Finding) -> str:
    who = origins(finding)
    headline = _text(finding.headline) + (f" _({who})_" if who else "")
    why = _text(finding.why) + (f" (since {_text(finding.since)})" if finding.since else "")
    none = "" if finding.kind == "StartRefused" else "none: "
    pin = _code(finding.pin.text) if finding.pin.text else none + _text(finding.pin.because or "")
    return f"| {finding.area} | {headline} | {why} | {pin} |"


def _text(text: str) -> str:
    """A text that stays within its cell, and whose marks are no tags and no code."""
    return _cell(text).replace("<", "&lt;").replace("`", "\\`")


def _code(text: str) -> str:
    """Code, fenced with one more backtick than it holds in a row."""
    fence = "`"
    while fence in text:
        fence += "`"
    space = " " if len(fence) > 1 else ""
    return f"{fence}{space}{_cell(text)}{space}{fence}"


def _cell(text: str) -> str:
    return " ".join(text.split("\n")).replace("|", "\\|")


def _list(title: str, entries: Iterable[str]) -> str:
    text = _items(entries)
    return f"**{title}**\n\n{text}" if text else ""


def _items(entries: Iterable[str]) -> str:
    return "\n".join(f"- {entry}" for entry in entries)


def _command(title: str, command: str | None) -> str:
    return f"**{title}**\n\n```sh\n{command}\n```" if command else ""


def _folded(title: str, text: str) -> str:
    return f"<details><summary>{title}</summary>\n\n{text}\n\n</details>" if text else ""


def _waterfall(waterfall: Waterfall) -> str:
    rows = [f"| before | | {format_bytes(waterfall.old_bytes)} |"]
    for step in waterfall.steps:
        sign = "+" if step.bytes > 0 else "−"
        change = f"{_text(step.old)} → {_text(step.new)}" if step.old or step.new else ""
        rows.append(f"| {_text(step.name)} | {change} | {sign}{format_bytes(abs(step.bytes))} |")
    rows.append(f"| after | | {format_bytes(waterfall.new_bytes)} |")
    head = "| | | |\n| --- | --- | ---: |\n"
    return f"**Where the bytes of {_text(waterfall.pool)} went**\n\n{head}" + "\n".join(rows)
