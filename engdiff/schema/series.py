"""Series: three or more captures in order, and what moved at which step."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from engdiff.schema.diff import Area, Diff, Pin, Side
from engdiff.schema.values import Frozen, Value

SERIES_SCHEMA = 1


class SeriesMove(Frozen):
    """One move of a row: at side ``at`` (from 0), against side ``before``, the last one before it that knows the value.

    The rest is that of the finding between the two.
    """

    at: int
    before: int
    kind: str
    headline: str
    why: str
    since: str | None = None
    pin: Pin
    asked: bool = False


class SeriesRow(Frozen):
    """One thing that moved at some step, with its value on every side.

    ``steps`` are the sides (from 0) at which it moved. ``pin`` is that of the last of them. ``returned``: the last
    known value is the first one again. ``asked``: every move was asked for. ``explained``: engdiff has an account of
    what one of them costs.
    """

    key: str
    name: str
    area: Area
    unit: str = ""
    values: tuple[Value, ...]
    steps: tuple[int, ...]
    moves: tuple[SeriesMove, ...]
    pin: Pin | None = None
    returned: bool = False
    asked: bool = False
    explained: bool = True


class Series(Frozen):
    """The whole answer. ``rows`` are ranked as the findings of a Diff; ``diffs`` are those of neighbours, in order.

    ``worst`` is the side at which the most costly move happened, and ``next_command`` shows that step in full.
    """

    document: Literal["series"] = "series"
    schema_version: int = SERIES_SCHEMA
    sides: tuple[Side, ...] = Field(min_length=2)
    rows: tuple[SeriesRow, ...]
    diffs: tuple[Diff, ...]
    worst: int | None = None
    next_command: str | None = None
