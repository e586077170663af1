"""A Diff as Markdown, for a pull request or a ticket."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from engdiff.report.across_markdown import across_parts, meanings
from engdiff.report.markdown import code, fenced, folded, text
from engdiff.report.wording import (
    STARTS,
    count,
    label,
    minor,
    model,
    move,
    origins,
    package,
    place,
    sections,
    side_name,
    verdict,
)
from engdiff.schema.diff import Across, Behaviour, Diff, Finding, Waterfall
from engdiff.units import format_bytes


def diff_markdown(diff: Diff) -> str:
    """The whole document: costly findings as a table, commands as code blocks, the rest folded away."""
    unasked = [f for f in diff.findings if not f.asked]
    costly, cosmetic = ([f for f in unasked if minor(f) is small] for small in (False, True))
    names = sections(diff)
    lost, *about_both = across_parts(diff.across) if diff.across else ("",)
    parts = [
        f"## {text(side_name(diff.old))} → {text(side_name(diff.new))}",
        _origin(diff),
        f"model {code(model(diff))} · {verdict(diff)}",
        lost,
        _table(costly, diff.across),
        *map(_waterfall, diff.waterfalls),
        *about_both,
        fenced(names.pinned, diff.pinned_command),
        fenced("Prove it", diff.prove_command),
        _list(names.asked, (text(f.headline) for f in diff.findings if f.asked)),
        _list("Accepted", (f"{text(a.finding.headline)} (accepted: {text(a.reason)})" for a in diff.accepted)),
        _list("The machines differ", (text(move(m, diff.across)) for m in diff.machine)),
        _list("Not compared", (f"{text(n.what)}: {text(n.because)}" for n in diff.not_compared)),
        folded(f"{len(cosmetic)} cosmetic", _table(cosmetic, diff.across)),
        folded(
            f"{count(len(diff.packages), 'package')} {names.packages}",
            ", ".join(text(package(m, diff.across)) for m in diff.packages),
        ),
        _behaviours(diff),
        *_warnings(diff),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _origin(diff: Diff) -> str:
    """What the two sides are, where one is no launch."""
    sides = (diff.old, diff.new)
    return " → ".join(text(label(side)) for side in sides) if any(side.read_from for side in sides) else ""


def _behaviours(diff: Diff) -> str:
    """Known changes that no value shows; cosmetic ones are left out."""
    costly = [one for one in diff.behaviours if one.area != "cosmetic"]
    return folded(f"{count(len(costly), 'known change')} shown by no value", _items(map(_known, costly)))


def _known(one: Behaviour) -> str:
    pin = f" Pin: {code(one.pin.text)}" if one.pin.text else ""
    return text(f"since {one.since}, {one.area}: {one.says}") + pin


def _warnings(diff: Diff) -> tuple[str, ...]:
    """New ones; of different engines those of each."""
    names, new, old = sections(diff), diff.warnings_new, diff.warnings_gone
    if diff.across is None:
        return (folded(count(len(new), "new warning"), _items(map(text, new))),)
    return (
        folded(f"{names.warnings_gone}: {len(old)}", _items(map(text, old))),
        folded(f"{names.warnings_new}: {len(new)}", _items(map(text, new))),
    )


def _table(findings: Sequence[Finding], across: Across | None) -> str:
    if not findings:
        return ""
    moved = "differs" if across else "moved"
    head = f"| area | what {moved} | why it matters | pin |\n| --- | --- | --- | --- |"
    return head + "\n" + "\n".join(_row(f, across) for f in findings)


def _row(finding: Finding, across: Across | None) -> str:
    who = origins(finding)
    headline = text(finding.headline) + (f" _({who})_" if who else "")
    why = text(finding.why) + (f" (since {text(finding.since)})" if finding.since else "")
    if across and finding.meanings:
        why += meanings(finding.meanings, across)
    none = "" if finding.kind in STARTS else "none: "
    pin = code(finding.pin.text) + place(finding.pin) if finding.pin.text else none + text(finding.pin.because or "")
    return f"| {finding.area} | {headline} | {why} | {pin} |"


def _list(title: str, entries: Iterable[str]) -> str:
    items = _items(entries)
    return f"**{title}**\n\n{items}" if items else ""


def _items(entries: Iterable[str]) -> str:
    return "\n".join(f"- {entry}" for entry in entries)


def _waterfall(waterfall: Waterfall) -> str:
    rows = [f"| before | | {format_bytes(waterfall.old_bytes)} |"]
    for step in waterfall.steps:
        sign = "+" if step.bytes > 0 else "−"
        change = f"{text(step.old)} → {text(step.new)}" if step.old or step.new else ""
        rows.append(f"| {text(step.name)} | {change} | {sign}{format_bytes(abs(step.bytes))} |")
    rows.append(f"| after | | {format_bytes(waterfall.new_bytes)} |")
    head = "| | | |\n| --- | --- | ---: |\n"
    return f"**Where the bytes of {text(waterfall.pool)} went**\n\n{head}" + "\n".join(rows)
