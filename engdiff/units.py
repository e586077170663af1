"""Units for people: bytes as powers of 1,024, seconds, counts with separators."""

from __future__ import annotations

KIB = 2**10
MIB = 2**20
GIB = 2**30

_STEPS = ((2**40, "TiB"), (GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB"))


def format_bytes(count: float) -> str:
    """Bytes with a power-of-two unit: ``16.0 MiB``, ``512 B``; the sign is kept."""
    size = abs(count)
    for step, unit in _STEPS:
        if size >= step:
            value = count / step
            return f"{value:.0f} {unit}" if abs(value) >= 1000 else f"{value:.4g} {unit}"
    return f"{count:.0f} B"


def format_seconds(seconds: float) -> str:
    """Seconds as ``0.27 s``, ``41 s`` or ``3 min 05 s``."""
    if seconds < 10:
        return f"{seconds:.2f} s"
    whole = round(seconds)
    return f"{whole} s" if whole < 100 else f"{whole // 60} min {whole % 60:02} s"


def format_count(count: float) -> str:
    """A number with thousands separators; whole numbers without a decimal point."""
    if float(count).is_integer():
        return f"{count:,.0f}"
    return f"{count:,.4g}" if abs(count) < 1000 else f"{count:,.1f}"


def format_ratio(old: float, new: float) -> str:
    """How two values relate, in the words people use: ``×4``, ``÷2``, ``−8.0 %``, ``+2.2 %``."""
    if old <= 0 or new <= 0:
        return "—"
    ratio = new / old
    if ratio >= 1.995:
        return f"×{_factor(ratio)}"
    if ratio <= 1 / 1.995:
        return f"÷{_factor(old / new)}"
    change = (ratio - 1) * 100
    return f"{'+' if change >= 0 else '−'}{abs(change):.1f} %"


def _factor(ratio: float) -> str:
    """Three digits, and never an exponent."""
    return f"{ratio:.3g}" if ratio < 999.5 else f"{ratio:,.0f}"
