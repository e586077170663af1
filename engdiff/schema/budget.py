"""Budget: what an engine would hold and whether it would start, computed before it does."""

from __future__ import annotations

from typing import Literal

from pydantic import JsonValue

from engdiff.schema.capture import Capture
from engdiff.schema.values import Frozen, Value

BUDGET_SCHEMA = 1

Verdict = Literal["starts", "is refused", "within the bounds", "unknown"]
"""within the bounds: it starts at one end of what is estimated, and is refused at the other."""


class Guess(Frozen):
    """Something that the user did not say, what was taken instead, and why."""

    name: str
    value: JsonValue
    because: str


class StartCheck(Frozen):
    """One of the engine's own checks at start, in its order.

    ``margin_bytes`` is what is left of one rank's memory (negative: missing); ``message`` is what the engine prints
    when it refuses.
    """

    name: str
    verdict: Verdict
    margin_bytes: Value
    message: str
    source: str


class Cell(Frozen):
    """The answer for one combination of settings: ``settings`` says which."""

    settings: dict[str, JsonValue]
    pool_bytes: Value
    tokens: Value
    concurrency: Value
    verdict: Verdict


class Change(Frozen):
    """The smallest change of one setting with which it starts, and what that costs."""

    setting: str
    flag: str
    value: JsonValue
    was: JsonValue
    costs: str


class Budget(Frozen):
    """A predicted Capture, and what follows from it.

    ``kept_of_token``: bytes that one rank keeps of a token, by kind of layer, over all its layers. ``longest``: tokens
    of the longest context that starts. ``table``: neighbouring settings.
    """

    document: Literal["budget"] = "budget"
    schema_version: int = BUDGET_SCHEMA
    capture: Capture
    guesses: tuple[Guess, ...]
    kept_of_token: dict[str, int]
    checks: tuple[StartCheck, ...]
    verdict: Verdict
    longest: Value
    table: tuple[Cell, ...]
    changes: tuple[Change, ...]


__all__ = ["BUDGET_SCHEMA", "Budget"]
