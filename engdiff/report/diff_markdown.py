"""A Diff as Markdown, for a pull request or a ticket."""

from __future__ import annotations

from engdiff.report.wording import origins, side_name, verdict
from engdiff.schema.diff import Diff, Finding, Waterfall
from engdiff.units import format_bytes


def diff_markdown(diff: Diff) -> str:
    """The whole document; findings as a table, commands as code blocks."""
    parts = [f"## {side_name(diff.old)} → {side_name(diff.new)}", f"model `{diff.new.model}` · {verdict(diff)}"]
    unasked = [f for f in diff.findings if not f.asked]
    asked = [f for f in diff.findings if f.asked]
    if unasked:
        parts.append(_table(unasked))
    if asked:
        parts.append("**Asked for: the command lines differ**\n\n" + "\n".join(f"- {_cell(f.headline)}" for f in asked))
    if diff.accepted:
        parts.append(
            "**Accepted**\n\n" + "\n".join(f"- {_cell(a.finding.headline)}: {_cell(a.reason)}" for a in diff.accepted)
        )
    parts += [_waterfall(w) for w in diff.waterfalls]
    for title, command in (("The new version with every pin", diff.pinned_command), ("Prove it", diff.prove_command)):
        if command:
            parts.append(f"**{title}**\n\n```\n{command}\n```")
    if diff.machine:
        moves = "\n".join(f"- {m.name}: {m.old or 'none'} → {m.new or 'none'}" for m in diff.machine)
        parts.append(f"**The machines differ**\n\n{moves}")
    if diff.packages:
        moves = ", ".join(f"{m.name} {m.old or 'none'} → {m.new or 'none'}" for m in diff.packages)
        parts.append(f"<details><summary>{len(diff.packages)} packages differ</summary>\n\n{moves}\n\n</details>")
    if diff.not_compared:
        parts.append(
            "**Not compared**\n\n" + "\n".join(f"- {_cell(n.what)}: {_cell(n.because)}" for n in diff.not_compared)
        )
    return "\n\n".join(parts) + "\n"


def _table(findings: list[Finding]) -> str:
    head = "| area | what moved | why it matters | pin |\n| --- | --- | --- | --- |"
    return head + "\n" + "\n".join(_row(f) for f in findings)


def _row(finding: Finding) -> str:
    who = origins(finding)
    headline = _cell(finding.headline) + (f" _({who})_" if who else "")
    pin = f"`{finding.pin.text}`" if finding.pin.text else f"none: {_cell(finding.pin.because or '')}"
    return f"| {finding.area} | {headline} | {_cell(finding.why)} | {pin} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _waterfall(waterfall: Waterfall) -> str:
    rows = [f"| before | | {format_bytes(waterfall.old_bytes)} |"]
    for step in waterfall.steps:
        sign = "+" if step.bytes > 0 else "−"
        rows.append(
            f"| {_cell(step.name)} | {_cell(step.old)} → {_cell(step.new)} | {sign}{format_bytes(abs(step.bytes))} |"
        )
    rows.append(f"| after | | {format_bytes(waterfall.new_bytes)} |")
    return f"**Where the bytes of {waterfall.pool} went**\n\n| | | |\n| --- | --- | ---: |\n" + "\n".join(rows)
