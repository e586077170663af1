"""Shared words of all faces."""

from __future__ import annotations

from engdiff.schema.diff import Diff, Finding, Side

ORIGINS = {"user": "set by you", "default": "default", "derived": "derived", "forced": "forced"}


def side_name(side: Side) -> str:
    """``vllm 0.32.0``."""
    return f"{side.engine} {side.version or '(version unknown)'}"


def count(number: int, thing: str) -> str:
    """``1 finding``, ``2 findings``."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def origins(finding: Finding) -> str:
    """``default → derived``; empty when neither side has one."""
    old, new = (ORIGINS.get(o or "", "") for o in (finding.old_origin, finding.new_origin))
    if not old and not new:
        return ""
    return old if old == new else f"{old or 'unknown'} → {new or 'unknown'}"


def verdict(diff: Diff) -> str:
    """The answer in one line."""
    unasked = sum(not f.asked for f in diff.findings)
    asked = len(diff.findings) - unasked
    if not diff.findings:
        return "nothing moved" + (f" ({count(len(diff.accepted), 'accepted difference')})" if diff.accepted else "")
    parts = [f"{count(unasked, 'thing')} moved that nobody asked for" if unasked else "nothing moved unasked"]
    if asked:
        parts.append(f"{asked} because the command lines differ")
    if diff.accepted:
        parts.append(f"{len(diff.accepted)} accepted")
    return "; ".join(parts)
