"""Arithmetic of values with bounds: what is summed keeps the bounds of all that it is a sum of."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from engdiff.schema.values import Basis, Evidence, Known, Unknown, Value

WEAKEST: tuple[Basis, ...] = ("fitted", "measured", "engine rule", "exact")
"""A sum is as good as the weakest of what it is a sum of."""


def bounds(value: Known) -> tuple[float, float, float]:
    """Low, value and high."""
    middle = float(value.value)  # type: ignore[arg-type]
    return (middle if value.low is None else value.low, middle, middle if value.high is None else value.high)


def combined(
    values: Sequence[Value], compute: Callable[[Sequence[float]], float], where: str, *, falls: bool = False
) -> Value:
    """``compute`` of all values, of all their lows, of all their highs; ``falls``: more of them makes less of it.

    Unknown where one of them is, for its reason.
    """
    missing = next((value for value in values if isinstance(value, Unknown)), None)
    if missing is not None:
        return missing
    known = [bounds(value) for value in values if isinstance(value, Known)]
    low, middle, high = (compute([one[at] for one in known]) for at in range(3))
    bases: list[Basis] = [value.basis for value in values if isinstance(value, Known)]
    basis: Basis = min(bases, key=WEAKEST.index, default="exact")
    if falls:
        low, high = high, low
    told = {} if low == middle == high else {"low": low, "high": high}
    return Known(
        value=round(middle),
        basis="engine rule" if basis == "exact" else basis,
        evidence=Evidence(source="rule", where=where),
        **told,
    )


def total(values: Sequence[Value], where: str) -> Value:
    """The sum."""
    return combined(values, sum, where)
