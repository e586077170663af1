"""Where the bytes of a pool went: a sum when the pool is what remains, a product when it was asked for."""

from __future__ import annotations

from collections.abc import Mapping

from engdiff.schema.capture import Pool, Rank, Term
from engdiff.schema.diff import Step, Waterfall
from engdiff.schema.values import REPEAT_RELATIVE, Known, number
from engdiff.schema.wording import show, show_plain


def waterfall(
    name: str,
    old_rank: Rank,
    new_rank: Rank,
    old_pool: Pool,
    new_pool: Pool,
    *,
    complete: tuple[bool, bool] = (True, True),
) -> Waterfall | None:
    """The steps from the old size to the new one; ``None`` when a number that is needed is unknown.

    ``complete``: whether the ledger of each side has every line.
    """
    before, after = number(old_pool.bytes), number(new_pool.bytes)
    if before is None or after is None:
        return None
    if old_pool.factors and new_pool.factors:
        return _product(name, old_pool, new_pool, before, after)
    left, right = _lines(old_rank.ledger), _lines(new_rank.ledger)
    if left is None or right is None:
        return None
    if (not complete[0] and right.keys() - left.keys()) or (not complete[1] and left.keys() - right.keys()):
        return None
    return _remainder(name, left, right, before, after)


def closes(ledger: tuple[Term, ...], pool: Pool) -> bool:
    """Whether the lines of a ledger leave just this pool: then no line is missing."""
    lines, size = _lines(ledger), number(pool.bytes)
    if lines is None or size is None:
        return False
    rest = sum(sign * taken for sign, taken in lines.values())
    return abs(rest - size) <= REPEAT_RELATIVE * max(abs(rest), abs(size))


def _product(name: str, old: Pool, new: Pool, before: float, after: float) -> Waterfall | None:
    """Replace one factor after the other, in order; each step is the change that this made."""
    pairs = list(zip(old.factors, new.factors, strict=False))
    sizes = [(number(a.value), number(b.value)) for a, b in pairs]
    if [f.name for f in old.factors] != [f.name for f in new.factors] or any(not a or b is None for a, b in sizes):
        return None
    steps, at = [], before
    for (a, b), (left, right) in zip(pairs, sizes, strict=True):
        to = at * float(right) / float(left)  # type: ignore[arg-type]
        if left != right:
            steps.append(Step(name=b.name, old=show(a.value), new=show(b.value), bytes=round(to - at)))
        at = to
    return _closed(name, "product", before, after, steps)


Lines = Mapping[str, tuple[int, float]]


def _remainder(name: str, left: Lines, right: Lines, before: float, after: float) -> Waterfall | None:
    """Limits add, uses take away; a line that only one side has counts from nothing."""
    steps = []
    for term in dict.fromkeys((*left, *right)):
        sign, was = left.get(term, (0, 0.0))
        sign_now, now = right.get(term, (sign, 0.0))
        change = (sign_now or sign) * (now - was)
        if round(change):
            steps.append(Step(name=term, old=_size(left, term), new=_size(right, term), bytes=round(change)))
    return _closed(name, "remainder", before, after, steps)


def _size(lines: Lines, term: str) -> str:
    return show_plain(lines[term][1], "bytes") if term in lines else "—"


def _lines(ledger: tuple[Term, ...]) -> dict[str, tuple[int, float]] | None:
    """Sign and bytes of every line that the pool is made from; ``None`` when one of them is unknown."""
    limits = [t for t in ledger if t.kind == "limit"]
    if not limits:
        return None
    limit = limits[-1]
    lines: dict[str, tuple[int, float]] = {}
    for term in ledger:
        mine = term is limit or (term.draws_on == limit.name and term.name != "KV cache")
        if not mine:
            continue
        if not isinstance(term.bytes, Known):
            return None
        lines[term.name] = (1 if term is limit else -1, float(term.bytes.value))  # type: ignore[arg-type]
    return lines


def _closed(name: str, how: str, before: float, after: float, steps: list[Step]) -> Waterfall | None:
    """The steps with what they leave unexplained, so that they sum to the difference."""
    rest = round(after - before) - sum(step.bytes for step in steps)
    if abs(rest) > 1 and abs(rest) > 0.001 * max(before, after):
        steps = [*steps, Step(name="unexplained", old="", new="", bytes=rest)]
    elif rest and steps:
        steps[-1] = steps[-1].model_copy(update={"bytes": steps[-1].bytes + rest})
    if not steps:
        return None
    return Waterfall(pool=name, old_bytes=round(before), new_bytes=round(after), how=how, steps=tuple(steps))  # type: ignore[arg-type]
