"""A Diff for a person with ten minutes and an outage: what moved, why it matters, what pins it back, what to type."""

from __future__ import annotations

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from engdiff.report.wording import count, origins, side_name, verdict
from engdiff.schema.diff import Diff, Finding, Move, Waterfall
from engdiff.units import format_bytes

FEW_PACKAGES = 12
FEW_LEAVES = 12
LONGEST_BAR = 24


def print_diff(diff: Diff, console: Console, *, everything: bool = False) -> None:
    """Print it all; ``everything`` lists what is otherwise only counted."""
    console.print(_heading(diff))
    for part in _findings(diff, everything):
        console.print(part)
    for waterfall in diff.waterfalls:
        console.print(_waterfall(waterfall))
    _commands(diff, console)
    console.print(_ground(diff, everything))
    console.print(_rest(diff, everything))


def _heading(diff: Diff) -> RenderableType:
    title = Text.assemble(
        (side_name(diff.old), "old"), " → ", (side_name(diff.new), "new"), ("   model " + diff.new.model, "quiet")
    )
    labels = Text(f"{diff.old.label} → {diff.new.label}", style="quiet")
    return Group(Rule(style="quiet"), title, labels, Text(verdict(diff), style="title"), Rule(style="quiet"))


def _findings(diff: Diff, everything: bool) -> list[RenderableType]:
    unasked = [f for f in diff.findings if not f.asked]
    asked = [f for f in diff.findings if f.asked]
    minor = [f for f in unasked if f.area == "cosmetic"] if not everything else []
    parts: list[RenderableType] = [
        _finding(i, f) for i, f in enumerate((f for f in unasked if f not in minor), start=1)
    ]
    if minor:
        parts.append(_brief("Cosmetic", minor))
    if asked:
        parts.append(_brief("Asked for: the command lines differ", asked))
    if diff.accepted:
        parts.append(_accepted(diff))
    return parts


def _finding(number: int, finding: Finding) -> RenderableType:
    grid = Table.grid(padding=(0, 1))
    grid.add_column(justify="right", width=3, style="quiet")
    grid.add_column(width=10, no_wrap=True)
    grid.add_column(ratio=1, overflow="fold")
    who = origins(finding)
    head = Text(finding.headline, style="new")
    if who:
        head.append(f"  [{who}]", style="quiet")
    grid.add_row(str(number), Text(finding.area, style=finding.area), head)
    grid.add_row("", "", Text(finding.why + (f" (since {finding.since})" if finding.since else "")))
    for line in finding.evidence[:2]:
        grid.add_row("", "", Text(line, style="quiet"))
    grid.add_row("", Text("pin", style="pin"), _pin(finding))
    return Padding(grid, (0, 0, 1, 0))


def _pin(finding: Finding) -> Text:
    if finding.pin.text:
        because = f"  ({finding.pin.because})" if finding.pin.because else ""
        return Text.assemble((finding.pin.text, "pin"), (because, "quiet"))
    return Text(f"none: {finding.pin.because}", style="quiet")


def _brief(title: str, findings: list[Finding]) -> RenderableType:
    grid = Table.grid(padding=(0, 1))
    grid.add_column(width=3)
    grid.add_column(ratio=1, overflow="fold")
    for finding in findings:
        pin = f"   pin: {finding.pin.text}" if finding.pin.text and not finding.asked else ""
        grid.add_row("", Text.assemble(finding.headline, (pin, "pin")))
    return Padding(Group(Text(title, style="title"), grid), (0, 0, 1, 0))


def _accepted(diff: Diff) -> RenderableType:
    lines = [Text.assemble("   ", a.finding.headline, (f"   accepted: {a.reason}", "quiet")) for a in diff.accepted]
    return Padding(Group(Text("Accepted", style="title"), *lines), (0, 0, 1, 0))


def _waterfall(waterfall: Waterfall) -> RenderableType:
    how = "one factor after the other" if waterfall.how == "product" else "what is left of what the engine may use"
    grid = Table.grid(padding=(0, 2))
    for justify in ("left", "left", "right", "left"):
        grid.add_column(justify=justify)
    biggest = max(abs(s.bytes) for s in waterfall.steps)
    grid.add_row("   before", "", format_bytes(waterfall.old_bytes), "")
    for step in waterfall.steps:
        change = f"{step.old} → {step.new}" if step.old or step.new else ""
        bar = "█" * max(1, round(LONGEST_BAR * abs(step.bytes) / biggest))
        grid.add_row(
            f"   {step.name}", change, _signed(step.bytes), Text(bar, style="green" if step.bytes > 0 else "red")
        )
    grid.add_row("   after", "", format_bytes(waterfall.new_bytes), "")
    return Padding(Group(Text(f"Where the bytes of {waterfall.pool} went ({how})", style="title"), grid), (0, 0, 1, 0))


def _signed(size: int) -> str:
    return ("+" if size > 0 else "−") + format_bytes(abs(size))


def _commands(diff: Diff, console: Console) -> None:
    """Commands are never wrapped by us: they are there to be copied."""
    for title, command in (("The new version with every pin", diff.pinned_command), ("Prove it", diff.prove_command)):
        if command:
            console.print(Text(title, style="title"))
            console.print(Text(command, style="pin"), soft_wrap=True)
            console.print()


def _ground(diff: Diff, everything: bool) -> RenderableType:
    lines: list[RenderableType] = []
    if diff.machine:
        lines.append(Text("The machines differ", style="title"))
        lines += [Text("   " + _move(m)) for m in diff.machine]
        lines.append(Text("   the same build can behave differently on them", style="quiet"))
    if diff.packages:
        shown = diff.packages if everything else diff.packages[:FEW_PACKAGES]
        lines.append(Text(f"Packages: {len(diff.packages)} differ", style="title"))
        lines.append(Text("   " + ", ".join(_move(m) for m in shown) + (_more(diff.packages, shown)), style="quiet"))
    return Group(*lines) if lines else Text("", end="")


def _more(whole: tuple[Move, ...], shown: tuple[Move, ...]) -> str:
    rest = len(whole) - len(shown)
    return f", and {rest} more (--all)" if rest else ""


def _move(move: Move) -> str:
    if move.old is None:
        return f"{move.name} added {move.new}"
    return f"{move.name} {move.old} → {move.new or 'gone'}"


def _rest(diff: Diff, everything: bool) -> RenderableType:
    lines: list[RenderableType] = []
    for title, texts in (("New warnings", diff.warnings_new), ("Warnings that are gone", diff.warnings_gone)):
        if texts:
            lines.append(Text(title, style="title"))
            lines += [Text(f"   {t}", style="quiet") for t in texts]
    if diff.not_compared:
        lines.append(Text("Not compared", style="title"))
        lines += [Text(f"   {n.what}: {n.because}", style="quiet") for n in diff.not_compared]
    if diff.native_compared or diff.native_only:
        lines.append(_native(diff, everything))
    return Group(*lines)


def _native(diff: Diff, everything: bool) -> RenderableType:
    new = [leaf for leaf in diff.native_only if leaf.side == "new"]
    old = [leaf for leaf in diff.native_only if leaf.side == "old"]
    text = (
        f"Native configuration: {count(diff.native_compared, 'option')} compared, "
        f"{len(new)} only in the new version, {len(old)} only in the old"
    )
    lines: list[RenderableType] = [
        Text(text + ("" if everything or not (new or old) else " (--all lists them)"), style="quiet")
    ]
    if everything:
        lines += [
            Text(f"   {'+' if leaf.side == 'new' else '-'} {leaf.path} = {leaf.value}", style="quiet")
            for leaf in diff.native_only
        ]
    return Group(*lines)
