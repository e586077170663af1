"""The smallest change of one setting with which it starts at the best estimate, and what that costs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pydantic import JsonValue

from engdiff.budget.accounting import account
from engdiff.budget.question import Question
from engdiff.engines.sizing import Account
from engdiff.schema.budget import Change
from engdiff.schema.values import number

STEP = 0.01
HIGHEST = 0.98
"""Of the device; above it nothing is left for what lies outside the engine's count."""

CONTEXT, UTILISATION, REQUESTS, KV_TYPE, EAGER = (
    "model.max_model_len",
    "kv.gpu_memory_utilization",
    "scheduler.max_num_seqs",
    "kv.dtype",
    "model.enforce_eager",
)


def changes(question: Question, made: Account) -> tuple[Change, ...]:
    """Nothing where it starts; else every kind of change that helps, the cheapest first."""
    if _starts(made):
        return ()
    tries: tuple[Callable[[Question, Account], Change | None], ...] = (
        utilisation,
        requests,
        context,
        eager,
        kv_type,
        ranks,
    )
    return tuple(found for one in tries if (found := one(question, made)))


def _starts(made: Account) -> bool:
    return all((number(check.margin_bytes) or 0) > 0 for check in made.checks)


def _account(question: Question, settings: dict[str, JsonValue]) -> Account:
    return account(question.having(settings))


def _change(question: Question, key: str, value: JsonValue, costs: str) -> Change:
    names = question.engine.knowledge.names(question.version).get(key)
    return Change(
        setting=key,
        flag=(names.flag if names else None) or key,
        value=value,
        was=question.settings.get(key),
        costs=costs,
    )


def utilisation(question: Question, _: Account) -> Change | None:
    """More of the device, in steps of a hundredth."""
    now = question.settings.get(UTILISATION)
    share = round(float(now), 2) + STEP if isinstance(now, int | float) else HIGHEST + 1
    while share <= HIGHEST:
        if _starts(_account(question, {UTILISATION: round(share, 2)})):
            return _change(question, UTILISATION, round(share, 2), "less memory for graphs, other processes and peaks")
        share += STEP
    return None


def requests(question: Question, _: Account) -> Change | None:
    """Fewer requests at once, halved until it starts: sampling needs less memory."""
    now = question.settings.get(REQUESTS)
    count = now // 2 if isinstance(now, int) else 0
    while count >= 1:
        if _starts(_account(question, {REQUESTS: count})):
            return _change(question, REQUESTS, count, "no more than so many requests run at once")
        count //= 2
    return None


def context(question: Question, made: Account) -> Change | None:
    """A shorter context: the longest that starts."""
    longest = number(made.longest)
    if not longest or longest < 1:
        return None
    return _change(question, CONTEXT, int(longest), "longer requests are refused")


def eager(question: Question, _: Account) -> Change | None:
    """No graphs, where they are charged."""
    if not _starts(_account(question, {EAGER: True})):
        return None
    return _change(question, EAGER, True, "decode without graphs: slower at small batches")


def kv_type(question: Question, _: Account) -> Change | None:
    """A cache of half the size."""
    if question.settings.get(KV_TYPE) not in (None, "auto") or not _starts(_account(question, {KV_TYPE: "fp8"})):
        return None
    return _change(question, KV_TYPE, "fp8", "numerics of the cache change")


def ranks(question: Question, _: Account) -> Change | None:
    """Twice the devices."""
    more = replace(question.parallel, tensor=question.parallel.tensor * 2)
    if not _starts(account(replace(question, parallel=more))):
        return None
    return Change(
        setting="parallel.tp",
        flag="--tensor-parallel-size",
        value=more.tensor,
        was=question.parallel.tensor,
        costs="twice the devices",
    )
