"""A History for reading: the values by release, then each move with what is known of it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from engdiff.report.page import INDENT, Page
from engdiff.report.wording import ORIGINS, count
from engdiff.schema.history import Account, History, Moved, Span
from engdiff.schema.values import Unknown
from engdiff.schema.wording import show

SOURCE = "read in "
MOST_ACCOUNTS = 5


def print_history(history: History, console: Console, newer: Sequence[str] = (), *, everything: bool = False) -> None:
    """Print it; ``newer`` are releases for which no profile is shipped. ``everything``: every known change in full."""
    page = Page(console)
    of = (history.engine, history.device, history.model, " ".join(history.arguments))
    page.line(Text.assemble((history.key, "title"), *(f" · {one}" for one in of if one)))
    page.line(_covered(history, newer), indent=INDENT)
    if history.spans:
        page.section()
        page.rows([_row(span, history.unit) for span in history.spans])
    for move in history.moves:
        _move(page, move, history)
    _also(page, history.accounts, everything=everything)
    if history.without:
        page.section("Without a value")
        for left in history.without:
            page.line(left.because, lead=Text(f"{' ' * INDENT}{left.version}  "))
    if history.notes:
        page.section("Notes")
        for note in history.notes:
            page.line(note, lead=Text(f"{' ' * INDENT}· "))


def _also(page: Page, accounts: Sequence[Account], *, everything: bool) -> None:
    """Changes under this key that moved nothing here: other devices, models or options, or behaviour behind a value."""
    if not accounts:
        return
    page.section(f"{count(len(accounts), 'more known change')} that moved no value here")
    shown = accounts if everything else accounts[-MOST_ACCOUNTS:]
    for account in shown:
        lead = Text(f"{' ' * INDENT}{account.since}  ", style="title")
        if everything:
            _account(page, account, lead)
        else:
            page.line(account.summary, lead=lead)
    if len(shown) < len(accounts) or not everything:
        older = len(accounts) - len(shown)
        page.line(
            Text(f"{f'{older} older; ' if older else ''}--all: each with what it costs and its source", style="quiet"),
            indent=INDENT,
        )


def _covered(history: History, newer: Sequence[str]) -> str:
    if not history.spans:
        return "no release has it"
    releases = sum(span.releases for span in history.spans)
    moves = count(len(history.moves), "move") if history.moves else "it never moved"
    text = f"{count(releases, 'release')}, {history.spans[0].first} to {history.spans[-1].last}: {moves}"
    if newer:
        text += f"; not covered, as no profile is shipped: {', '.join(newer)}"
    return text


def _row(span: Span, unit: str) -> tuple[str, str, str]:
    where = span.first if span.first == span.last else f"{span.first} to {span.last}"
    value = "unknown" if isinstance(span.value, Unknown) else show(span.value, unit)
    if isinstance(span.value, Unknown):
        return where, value, span.value.because
    told = [ORIGINS[span.origin]] if span.origin else []
    return where, value, ": ".join((*told, *([span.because] if span.because else ())))


def _move(page: Page, move: Moved, history: History) -> None:
    page.section(f"{move.since}, from {move.before}")
    if move.headline:
        page.line(move.headline, indent=INDENT)
    for account in move.accounts:
        _account(page, account, Text(" " * INDENT))
    if not move.accounts:
        page.line("engdiff's knowledge holds no account of it", indent=INDENT)
    if move.pin.text:
        page.whole(Text(move.pin.text, style="pin"), lead=Text(f"{' ' * INDENT}pin   "))
    elif move.pin.because:
        page.line(move.pin.because, lead=Text(f"{' ' * INDENT}pin   none: "))
    page.whole(Text(_diff(move, history), style="quiet"), lead=Text(f"{' ' * INDENT}more  "))


def _diff(move: Moved, history: History) -> str:
    """What shows everything that moved between the two releases."""
    sides = (f"{history.engine}@{version}/{history.device}" for version in (move.before, move.since))
    model = ("--model", history.model) if history.model else ()
    words = ("--", *history.arguments) if history.arguments else ()
    return shlex.join(("engdiff", "diff", *sides, *model, *words))


def _account(page: Page, account: Account, lead: Text) -> None:
    page.line(f"{account.summary} {account.matters}", lead=lead)
    page.line(Text(f"{SOURCE}{account.source}", style="quiet"), indent=INDENT + 2)
