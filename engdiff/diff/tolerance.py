"""When two values are the same: exact ones when equal, measured ones within what repeated launches differ by."""

from __future__ import annotations

from engdiff.engines.layers import same
from engdiff.schema.values import REPEAT_RELATIVE, Known, Unknown, number


def equal(old: Known | Unknown, new: Known | Unknown) -> bool:
    """Whether the two say the same: within the bounds of what was rounded or repeats; an unknown equals nothing."""
    if isinstance(old, Unknown) or isinstance(new, Unknown):
        return False
    if same(old.value, new.value):
        return True
    left, right = _bounds(old), _bounds(new)
    if left is None or right is None:
        return False
    if left[0] <= right[1] and right[0] <= left[1]:
        return True
    return not (_bounded(old) and _bounded(new)) and _repeats(old, new)


def about_equal(old: Known | Unknown, new: Known | Unknown) -> bool:
    """The same, for what no setting decides to the byte: the bounds of a printed number do not make it repeatable."""
    return equal(old, new) or (isinstance(old, Known) and isinstance(new, Known) and _repeats(old, new))


def moved(old: Known | Unknown, new: Known | Unknown) -> bool:
    """Whether both are known and say different things: an unknown value is never said to have moved."""
    return isinstance(old, Known) and isinstance(new, Known) and not equal(old, new)


def _bounded(value: Known) -> bool:
    return value.low is not None and value.high is not None


def _bounds(value: Known) -> tuple[float, float] | None:
    """Where the true number lies; a number without bounds is its own."""
    size = number(value)
    if size is None:
        return None
    return (size if value.low is None else value.low, size if value.high is None else value.high)


def _repeats(old: Known, new: Known) -> bool:
    left, right = number(old), number(new)
    if left is None or right is None or "measured" not in (old.basis, new.basis):
        return False
    return abs(left - right) <= REPEAT_RELATIVE * max(abs(left), abs(right))
