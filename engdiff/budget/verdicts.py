"""Whether it starts: yes, no, or between the bounds of what is estimated."""

from __future__ import annotations

from collections.abc import Sequence

from engdiff.engines.intervals import bounds
from engdiff.schema.budget import Verdict
from engdiff.schema.values import Known, Value

WORST_FIRST: tuple[Verdict, ...] = ("is refused", "unknown", "within the bounds", "starts")


def verdict(margin: Value) -> Verdict:
    """What a check says of a margin and its bounds: it passes from nought on."""
    if not isinstance(margin, Known):
        return "unknown"
    low, _, high = bounds(margin)
    if low > 0:
        return "starts"
    return "is refused" if high <= 0 else "within the bounds"


def overall(verdicts: Sequence[Verdict]) -> Verdict:
    """The worst of all checks."""
    return min(verdicts, key=WORST_FIRST.index, default="unknown")
