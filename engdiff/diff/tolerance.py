"""When two values are the same: exact ones when equal, measured ones within what repeated launches differ by."""

from __future__ import annotations

from engdiff.engines.layers import same
from engdiff.schema.values import Known, Unknown

MEASURED_RELATIVE = 0.02
"""Two launches of one version differ in resident memory by up to 1.1 % (vLLM 0.32.0 on CPU, tiny model, measured here)."""


def equal(old: Known | Unknown, new: Known | Unknown) -> bool:
    """Whether the two say the same. Bounds from the engine's rounding count; an unknown equals nothing."""
    if isinstance(old, Unknown) or isinstance(new, Unknown):
        return False
    if same(old.value, new.value):
        return True
    if not (_is_number(old) and _is_number(new)):
        return False
    if old.low is not None and old.high is not None and new.low is not None and new.high is not None:
        return old.low <= new.high and new.low <= old.high
    if "measured" in (old.basis, new.basis):
        left, right = float(old.value), float(new.value)  # type: ignore[arg-type]
        return abs(left - right) <= MEASURED_RELATIVE * max(abs(left), abs(right))
    return False


def _is_number(value: Known) -> bool:
    return isinstance(value.value, int | float) and not isinstance(value.value, bool)
