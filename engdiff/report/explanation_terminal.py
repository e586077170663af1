"""An Explanation for reading: here, in general, then engine by engine."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from engdiff.report.page import INDENT, Page
from engdiff.report.wording import count
from engdiff.schema.explanation import Explanation, InCapture, OfEngine, Spelling
from engdiff.schema.values import Unknown
from engdiff.schema.wording import show

EFFECTS = {"memory": "memory", "throughput": "throughput", "latency": "latency", "startup": "start-up"}
MOST_FACTS = 6


def print_explanation(told: Explanation, console: Console, *, everything: bool = False) -> None:
    """Print it; ``everything``: every fact, with its source."""
    page = Page(console)
    unit = f" · {told.unit}" if told.unit else ""
    page.line(Text.assemble((told.key, "title"), unit, " · ", (told.area, told.area)))
    for text in (told.meaning, told.why):
        if text:
            page.line(text, indent=INDENT)
    if told.effects:
        page.section("When it goes up, is turned on or is chosen")
        page.rows([(EFFECTS[name], sentence) for name, sentence in told.effects.items()])
    if told.depends_on:
        page.line(f"follows from or is bounded by: {', '.join(told.depends_on)}", indent=INDENT)
    if told.here:
        _here(page, told.here, told.unit)
    for one in told.engines:
        _engine(page, one, told.unit, everything=everything)


def _here(page: Page, here: InCapture, unit: str) -> None:
    page.section(f"In this capture ({here.engine} {here.version or 'of an unknown release'})")
    value = show(here.value, unit)
    page.line(f"{value}, {here.origin}" if here.origin else value, indent=INDENT)
    if here.unknown_because:
        page.line(here.unknown_because, indent=INDENT)
    for number, reason in enumerate(here.because, start=1):
        page.line(reason, lead=Text(f"{' ' * INDENT}{number}  "))


def _engine(page: Page, one: OfEngine, unit: str, *, everything: bool) -> None:
    page.section(one.title)
    if one.means:
        page.line(one.means, indent=INDENT)
    if one.spellings:
        page.rows([(_range(spelling), _spelt(spelling)) for spelling in one.spellings])
    if one.defaults:
        where = f"on {one.device} with {one.model}, " if one.model else ""
        page.line(f"{where}nothing set:", indent=INDENT)
        page.rows(
            [
                (span.first if span.first == span.last else f"{span.first} to {span.last}", _value(span.value, unit))
                for span in one.defaults
            ],
            indent=2 * INDENT,
        )
    shown = one.facts if everything else one.facts[:MOST_FACTS]
    for fact in shown:
        page.line(fact.says, lead=Text(f"{' ' * INDENT}· "))
        if everything:
            page.line(Text(f"read in {fact.source}", style="quiet"), indent=INDENT + 2)
    if len(shown) < len(one.facts):
        more = count(len(one.facts) - len(shown), "more fact")
        page.line(Text(f"{more}, and the sources of all (--all)", style="quiet"), indent=INDENT)


def _range(spelling: Spelling) -> str:
    return spelling.first if spelling.first == spelling.last else f"{spelling.first} to {spelling.last}"


def _spelt(spelling: Spelling) -> Text:
    parts = [(spelling.flag, "pin"), (spelling.variable, "pin"), (spelling.native, "quiet")]
    return Text(" · ").join(Text(text, style=style) for text, style in parts if text)


def _value(value: object, unit: str) -> str:
    return value.because if isinstance(value, Unknown) else show(value, unit)  # type: ignore[arg-type]
