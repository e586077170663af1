"""Shared words of all faces."""

from __future__ import annotations

import shlex

from engdiff.schema.diff import Diff, Finding, Move, Side

STARTS = frozenset({"StartRefused", "DiedServing", "FailureChanged", "FailureMoved"})
"""Kinds of findings whose pin is advice on what to do next."""

ORIGINS = {"user": "set by you", "default": "default", "derived": "derived", "forced": "forced"}


def side_name(side: Side) -> str:
    """``vllm 0.32.0``."""
    return f"{side.engine} {side.version or '(version unknown)'}"


def label(side: Side) -> str:
    """How the user called it, and what it is when it is no launch: ``boot.log (read from a log)``."""
    return side.label + (f" (read from {side.read_from})" if side.read_from else "")


def model(diff: Diff) -> str:
    """The model that was served, as far as a side states it."""
    return diff.new.model or diff.old.model or "not stated"


def count(number: int, thing: str) -> str:
    """``1 finding``, ``2 findings``."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def origins(finding: Finding) -> str:
    """``default → derived``; empty when that did not move, since the headline says it then."""
    old, new = (ORIGINS.get(o or "", "unknown") for o in (finding.old_origin, finding.new_origin))
    return f"{old} → {new}" if old != new else ""


def move(one: Move) -> str:
    """``torch 2.11.0 → 2.13.0``, ``gguf 0.19.0 gone``, ``oss-harmony 0.0.11 added``."""
    if one.old is None:
        return f"{one.name} {one.new} added"
    return f"{one.name} {one.old} → {one.new}" if one.new is not None else f"{one.name} {one.old} gone"


def shortened(text: str, longest: int) -> str:
    """The text without runs of spaces, cut with an ellipsis where it is longer."""
    text = " ".join(text.split())
    return text if len(text) <= longest else text[: longest - 1].rstrip() + "…"


def verdict(diff: Diff) -> str:
    """The answer in one line."""
    unasked = [f for f in diff.findings if not f.asked]
    asked = len(diff.findings) - len(unasked)
    if not diff.findings:
        return "nothing moved" + (f" ({count(len(diff.accepted), 'accepted difference')})" if diff.accepted else "")
    known = all(side.words_unknown_because is None for side in (diff.old, diff.new))
    parts = [unasked_words(len(unasked), sum(f.area == "cosmetic" for f in unasked), known=known)]
    if asked:
        parts.append(f"{asked} because the command lines differ")
    if diff.accepted:
        parts.append(f"{len(diff.accepted)} accepted")
    return "; ".join(parts)


def unasked_words(number: int, cosmetic: int, *, known: bool) -> str:
    """How much moved unasked. ``known``: what the user wrote; else nobody can say what was asked for."""
    if not number:
        return "nothing moved unasked" if known else "nothing else moved"
    text = f"{count(number, 'thing')} moved" + (" that nobody asked for" if known else "")
    if not cosmetic:
        return text
    share = ("cosmetic" if number == 1 else "all cosmetic") if cosmetic == number else f"{cosmetic} of them cosmetic"
    return f"{text}, {share}"


def words(side: Side) -> str:
    """What the user wrote for this side: variables, then the words after ``--``."""
    if side.words_unknown_because:
        return f"not known: {side.words_unknown_because}"
    return " ".join((*(f"{k}={shlex.quote(v)}" for k, v in sorted(side.variables.items())), shlex.join(side.arguments)))
