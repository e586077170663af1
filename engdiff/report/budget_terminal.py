"""A Budget for reading: whether it starts, the ledger, the checks, what to change, and neighbouring settings."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from engdiff.report.page import INDENT, Page
from engdiff.schema.budget import Budget, Cell, Guess, StartCheck
from engdiff.schema.capture import Term
from engdiff.schema.values import Known, Unknown, Value, number, plain
from engdiff.units import GIB

SAYS = {
    "starts": "It starts, at the worst of what is estimated as well.",
    "is refused": "It is refused, at the best of what is estimated as well.",
    "within the bounds": "It may start or be refused: the estimates' bounds lie on both sides.",
    "unknown": "Whether it starts is not known.",
}


def print_budget(budget: Budget, console: Console) -> None:
    """Print it."""
    page = Page(console)
    made = budget.capture
    of = (f"{made.identity.engine} {plain(made.identity.version)}", made.launch.model, _devices(budget))
    page.line(Text(" · ".join(str(one) for one in of), style="title"))
    page.line(SAYS[budget.verdict], indent=INDENT)
    page.section("Memory of one rank (low to high where it is estimated)")
    page.rows([_term(term) for term in made.instances[0].ranks[0].ledger])
    _cache(page, budget)
    page.section("Checks at start, in the engine's order")
    for check in budget.checks:
        _check(page, check)
    page.line(f"longest context that starts: {_count(budget.longest)} tokens", indent=INDENT)
    if budget.changes:
        page.section("Any one of these makes it start, at the best estimate")
        rows = [
            (one.flag, _shown(one.value), f"was {_shown(one.was)}", f"costs: {one.costs}") for one in budget.changes
        ]
        page.rows(rows)
    page.section("Neighbouring settings")
    page.rows([_head(budget.table[0]), *(_cell(one) for one in budget.table)])
    page.section("Not said by you")
    page.rows([_guess(one) for one in budget.guesses])
    if made.notes:
        page.section("Notes")
        for note in made.notes:
            page.line(note, lead=Text(f"{' ' * INDENT}· "))


def _devices(budget: Budget) -> str:
    devices = budget.capture.identity.devices
    return f"{len(devices)} x {devices[0].name}, {_gib(devices[0].memory_bytes)} each"


def _term(term: Term) -> tuple[str, str, str, str]:
    lead = "  " if term.draws_on and term.kind != "limit" else ""
    return f"{lead}{term.name}", _gib(term.bytes), _span(term.bytes), f"{term.meaning} [{_basis(term.bytes)}]".strip()


def _basis(value: Value) -> str:
    return value.basis if isinstance(value, Known) else value.because


def _cache(page: Page, budget: Budget) -> None:
    pool = budget.capture.first_pool
    assert pool is not None
    page.section("KV cache of one rank")
    kept = ", ".join(f"{size:,} B in {kind} layers" for kind, size in budget.kept_of_token.items())
    page.line(f"one token: {kept}", indent=INDENT)
    page.line(f"{_count(pool.blocks)} blocks of {_count(pool.block_tokens)} tokens", indent=INDENT)
    at = _count(pool.concurrency_at_tokens)
    page.line(
        f"{_count(pool.tokens)} tokens; {_count(pool.max_concurrency)} requests of {at} tokens at once", indent=INDENT
    )


def _check(page: Page, check: StartCheck) -> None:
    page.line(
        f"{check.verdict}: {check.name}, {_gib(check.margin_bytes)} left ({_span(check.margin_bytes)})", indent=INDENT
    )
    if check.verdict != "starts":
        page.line(Text(f"it prints: {check.message}", style="quiet"), indent=INDENT * 2)


def _head(cell: Cell) -> tuple[str, ...]:
    return (*(key.rpartition(".")[2] for key in cell.settings), "KV cache", "tokens", "requests", "")


def _cell(cell: Cell) -> tuple[str, ...]:
    settings = (_shown(value) for value in cell.settings.values())
    return (*settings, _gib(cell.pool_bytes), _count(cell.tokens), _count(cell.concurrency), cell.verdict)


def _guess(guess: Guess) -> tuple[str, str, str]:
    return guess.name, _shown(guess.value), guess.because


MOST_SHOWN = 6


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list) and len(value) > MOST_SHOWN:
        return f"{len(value)} from {value[0]} to {value[-1]}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _gib(value: Value) -> str:
    size = number(value)
    return "unknown" if size is None else f"{size / GIB:.2f} GiB"


def _span(value: Value) -> str:
    if isinstance(value, Unknown) or value.low is None or value.high is None:
        return ""
    return f"{value.low / GIB:.2f} to {value.high / GIB:.2f}"


def _count(value: Value) -> str:
    found = number(value)
    if found is None or isinstance(value, Unknown):
        return "unknown"
    middle = f"{found:,.2f}" if found != int(found) else f"{int(found):,}"
    if value.low is None or value.high is None:
        return middle
    return f"{middle} ({value.low:,.0f} to {value.high:,.0f})"
