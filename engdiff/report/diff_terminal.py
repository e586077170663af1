"""A Diff for a person with ten minutes and an outage: what moved, why it matters, what pins it back, what to type."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from engdiff.report import across_terminal
from engdiff.report.page import GAP, INDENT, Page
from engdiff.report.wording import (
    STARTS,
    count,
    label,
    minor,
    model,
    move,
    origins,
    package,
    sections,
    shortened,
    side_name,
    verdict,
    words,
)
from engdiff.schema.diff import Diff, Finding, Waterfall
from engdiff.units import format_bytes

FEW_PACKAGES = 12
LONGEST_BAR = 24
SHORTEST_BAR = 4
LONGEST_LINE = 160
MOST_BEHAVIOURS = 8
"""Lines of a log are cut here unless everything is asked for."""

HOW = {"product": "one factor after the other", "remainder": "it is what the others leave"}


def print_diff(diff: Diff, console: Console, *, everything: bool = False) -> None:
    """Print it all; ``everything`` lists what is otherwise only counted."""
    page = Page(console)
    _heading(page, diff)
    unasked = [f for f in diff.findings if not f.asked]
    brief = [f for f in unasked if (minor(f) or not f.explained) and not everything]
    if diff.across:
        across_terminal.lost_first(page, diff.across)
    for number, finding in enumerate((f for f in unasked if f not in brief), start=1):
        _finding(page, number, finding, diff, everything=everything)
    for waterfall in diff.waterfalls:
        _waterfall(page, waterfall)
    if diff.across:
        across_terminal.tables(page, diff.across)
    _commands(page, diff)
    _brief(page, brief)
    _known(page, diff)
    if diff.across:
        across_terminal.words(page, diff.across)
        across_terminal.rest(page, diff.across, everything=everything)
    _ground(page, diff, everything)
    _behaviours(page, diff, everything)
    _warnings(page, diff, everything)
    _rest(page, diff, everything)


def _heading(page: Page, diff: Diff) -> None:
    page.rule()
    page.line(
        Text.assemble(
            (side_name(diff.old), "old"), " → ", (side_name(diff.new), "new"), (f"   model {model(diff)}", "quiet")
        )
    )
    page.line(Text(f"{label(diff.old)} → {label(diff.new)}", style="quiet"))
    if words(diff.old) != words(diff.new):
        names = sections(diff)
        page.line(Text(f"{names.old_words}: {words(diff.old) or 'none'}", style="quiet"))
        page.line(Text(f"{names.new_words}: {words(diff.new) or 'none'}", style="quiet"))
    page.line(Text(verdict(diff), style="title"))
    page.rule()


def _brief(page: Page, findings: Sequence[Finding]) -> None:
    """What moved and is no reason to stop reading: a line each, and why it does nothing here."""
    unknown = [f for f in findings if not f.explained]
    if unknown:
        page.section("Moved, and engdiff has no account of what it costs")
        for finding in unknown:
            _item(page, Text(finding.headline))
            if finding.pin.text:
                _copied(page, "pin  ", finding.pin.text)
    minor = [f for f in findings if f.explained]
    if minor:
        page.section("Cosmetic (--all gives every reason and pin)")
        for finding in minor:
            _item(page, Text(finding.headline), finding.why if finding.why.startswith("No effect here") else "")


def _known(page: Page, diff: Diff) -> None:
    """What the user asked for or has accepted."""
    asked = [f for f in diff.findings if f.asked]
    if asked:
        page.section(sections(diff).asked)
        for finding in asked:
            _item(page, Text(finding.headline))
    if diff.accepted:
        page.section("Accepted")
        for one in diff.accepted:
            _item(page, Text(one.finding.headline), f"accepted: {one.reason}")


def _item(page: Page, text: Text, aside: str = "") -> None:
    """One entry of a list; further lines are set in, so that entries stay apart. An aside goes below."""
    page.line(text, lead=Text(" " * INDENT + "· ", style="quiet"))
    if aside:
        page.line(Text(aside, style="quiet"), indent=INDENT + GAP)


def _copied(page: Page, lead: str, text: str) -> None:
    """What belongs to an entry of a list and is there to be copied: never broken."""
    page.whole(Text(text, style="pin"), lead=Text(" " * (INDENT + GAP) + lead, style="quiet"))


def _finding(page: Page, number: int, finding: Finding, diff: Diff, *, everything: bool) -> None:
    page.section()
    lead = Text.assemble((f"{number:>3} ", "quiet"), (f"{finding.area:<10} ", finding.area))
    margin = lead.cell_len
    who = origins(finding)
    page.line(Text.assemble((finding.headline, "new"), (f"  [{who}]" if who else "", "quiet")), lead=lead)
    page.line(finding.why + (f" (since {finding.since})" if finding.since else ""), indent=margin)
    if diff.across and finding.meanings:
        across_terminal.meanings(page, finding.meanings, diff.across, margin)
    for line in finding.evidence if everything else _own_words(finding):
        page.line(Text(line, style="quiet"), indent=margin)
    _pin(page, finding, margin)


def _own_words(finding: Finding) -> tuple[str, ...]:
    """Evidence that explains by itself; log lines are for --all."""
    if finding.kind in STARTS:
        return finding.evidence
    return tuple(line for line in finding.evidence if line.startswith("the engine's own"))


def _pin(page: Page, finding: Finding, margin: int) -> None:
    """The pin is there to be copied: it is never broken. A start that is refused has advice in its place."""
    pin = finding.pin
    lead = Text.assemble("    ", ("next" if finding.kind in STARTS else "pin", "pin"))
    lead.append(" " * (margin - lead.cell_len))
    because = f"({pin.because})" if pin.because else ""
    if pin.text is None:
        none = "" if finding.kind in STARTS else "none: "
        page.line(Text(f"{none}{pin.because}", style="" if not none else "quiet"), lead=lead)
    elif margin + len(pin.text) + GAP + len(because) <= page.width:
        page.line(Text.assemble((pin.text, "pin"), (f"  {because}" if because else "", "quiet")), lead=lead)
    else:
        page.whole(Text(pin.text, style="pin"), lead=lead)
        if because:
            page.line(Text(because, style="quiet"), indent=margin)


def _waterfall(page: Page, waterfall: Waterfall) -> None:
    page.section(f"Where the bytes of {waterfall.pool} went ({HOW[waterfall.how]})")
    rows = [
        ("before", "", format_bytes(waterfall.old_bytes)),
        *((s.name, f"{s.old} → {s.new}" if s.old or s.new else "", _signed(s.bytes)) for s in waterfall.steps),
        ("after", "", format_bytes(waterfall.new_bytes)),
    ]
    room = page.width - INDENT - sum(max(len(row[n]) + GAP for row in rows) for n in range(3))
    longest = min(LONGEST_BAR, room)
    biggest = max(abs(step.bytes) for step in waterfall.steps)
    bars = [Text(), *(_bar(step.bytes, biggest, longest) for step in waterfall.steps), Text()]
    page.rows([(*row, bar) for row, bar in zip(rows, bars, strict=True)], right=(2,))


def _bar(size: int, biggest: int, longest: int) -> Text:
    """A bar as long as the step is big; none where there is no room for it."""
    if longest < SHORTEST_BAR or not biggest:
        return Text()
    return Text("█" * max(1, round(longest * abs(size) / biggest)), style="green" if size > 0 else "red")


def _signed(size: int) -> str:
    return ("+" if size > 0 else "−") + format_bytes(abs(size))


def _commands(page: Page, diff: Diff) -> None:
    """Commands are never wrapped by us: they are there to be copied."""
    for title, command in ((sections(diff).pinned, diff.pinned_command), ("Prove it", diff.prove_command)):
        if command:
            page.section(title)
            page.whole(Text(command, style="pin"))


def _ground(page: Page, diff: Diff, everything: bool) -> None:
    if diff.machine:
        page.section("The machines differ, so the same build can behave differently")
        for one in diff.machine:
            _item(page, Text(move(one, diff.across)))
    if diff.packages:
        page.section(f"{count(len(diff.packages), 'package')} {sections(diff).packages}")
        shown = diff.packages if everything else diff.packages[:FEW_PACKAGES]
        rest = len(diff.packages) - len(shown)
        more = f", and {rest} more (--all)" if rest else ""
        page.line(Text(", ".join(package(m, diff.across) for m in shown) + more, style="quiet"), indent=INDENT)


def _behaviours(page: Page, diff: Diff, everything: bool) -> None:
    """What is known to have changed and what no value shows; the first few of those that can cost something."""
    costly = [one for one in diff.behaviours if one.area != "cosmetic"]
    shown = diff.behaviours if everything else costly[:MOST_BEHAVIOURS]
    if not diff.behaviours:
        return
    page.section(f"Known to have changed between these releases, shown by no value: {len(costly)}")
    for one in shown:
        lead = Text.assemble("   ", (f"{one.since:<8}", "title"), " ", (f"{one.area:<10}", one.area), " ")
        limit = f" (on {one.applies_to})" if one.applies_to else ""
        page.line(f"{one.says}{limit}", lead=lead)
        if one.pin.text:
            page.whole(Text(one.pin.text, style="pin"), lead=Text("            pin        "))
        if everything:
            page.line(Text(f"read in {one.source}", style="quiet"), indent=lead.cell_len)
    if len(shown) < len(diff.behaviours):
        rest = len(diff.behaviours) - len(shown)
        page.line(Text(f"{rest} more, and the sources of all (--all)", style="quiet"), indent=3)


def _warnings(page: Page, diff: Diff, everything: bool) -> None:
    names = sections(diff)
    for title, texts in ((names.warnings_new, diff.warnings_new), (names.warnings_gone, diff.warnings_gone)):
        if texts and diff.across and not everything:
            page.section()
            page.line(Text(f"{title}: {len(texts)} (--all lists them)", style="quiet"))
        elif texts:
            page.section(title)
            for text in texts:
                _item(page, Text(text if everything else shortened(text, LONGEST_LINE), style="quiet"))


def _rest(page: Page, diff: Diff, everything: bool) -> None:
    if diff.not_compared:
        page.section("Not compared")
        for one in diff.not_compared:
            _item(page, Text(f"{one.what}: {one.because}", style="quiet"))
    if diff.native_compared or diff.native_only:
        _native(page, diff, everything)


def _native(page: Page, diff: Diff, everything: bool) -> None:
    new, old = ([leaf for leaf in diff.native_only if leaf.side == side] for side in ("new", "old"))
    text = f"Native configuration: {count(diff.native_compared, 'option')} compared"
    if new or old:
        hint = "" if everything else " (--all lists them)"
        text += f", {len(new)} only in the new version, {len(old)} only in the old{hint}"
    page.section()
    page.line(Text(text, style="quiet"))
    for leaf in diff.native_only if everything else ():
        mark = "+ " if leaf.side == "new" else "− "
        page.line(Text(f"{leaf.path} = {leaf.value}", style="quiet"), lead=Text(" " * INDENT + mark, style="quiet"))
