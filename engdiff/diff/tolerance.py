"""When two values are the same: exact ones when equal, measured ones within what repeated launches differ by."""

from __future__ import annotations

from engdiff.engines.layers import same
from engdiff.schema.values import REPEAT_RELATIVE, Known, Unknown, number


def equal(old: Known | Unknown, new: Known | Unknown) -> bool:
    """Whether the two say the same. Bounds count where both have them; an unknown equals nothing."""
    if isinstance(old, Unknown) or isinstance(new, Unknown):
        return False
    if same(old.value, new.value):
        return True
    left, right = number(old), number(new)
    if left is None or right is None:
        return False
    if old.low is not None and old.high is not None and new.low is not None and new.high is not None:
        return old.low <= new.high and new.low <= old.high
    if "measured" in (old.basis, new.basis):
        return abs(left - right) <= REPEAT_RELATIVE * max(abs(left), abs(right))
    return False


def moved(old: Known | Unknown, new: Known | Unknown) -> bool:
    """Whether both are known and say different things: an unknown value is never said to have moved."""
    return isinstance(old, Known) and isinstance(new, Known) and not equal(old, new)
