"""Shared words of all faces."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Literal

from engdiff.schema.diff import Across, Beside, Diff, Finding, Meanings, Move, OneSided, Pin, Side
from engdiff.schema.values import Known, Unknown, Value
from engdiff.schema.wording import show

STARTS = frozenset({"StartRefused", "DiedServing", "FailureChanged", "FailureMoved", "NeitherStarts"})
"""Kinds of findings whose pin is advice on what to do next."""

NOT_STATED = "does not state it"
"""The end of a reason that says no more than that."""

ORIGINS = {"user": "set by you", "default": "default", "derived": "derived", "forced": "forced"}


@dataclass(frozen=True)
class Sections:
    """How the parts of a page are called: between different engines nothing moved, and neither is new."""

    old_words: str = "old words"
    new_words: str = "new words"
    asked: str = "Asked for: the command lines differ"
    pinned: str = "The new version with every pin"
    packages: str = "moved"
    warnings_new: str = "New warnings"
    warnings_gone: str = "Warnings that are gone"


def sections(diff: Diff) -> Sections:
    """The names for this Diff."""
    if diff.across is None:
        return Sections()
    old, new = diff.across.old_title, diff.across.new_title
    return Sections(
        old_words=f"words for {old}",
        new_words=f"words for {new}",
        asked="You set it on both",
        pinned=f"{new} with what you had set on {old}",
        packages=f"that both have, at other versions ({old} / {new})",
        warnings_new=f"Warnings of {new}",
        warnings_gone=f"Warnings of {old}",
    )


def side_name(side: Side) -> str:
    """``vllm 0.32.0``."""
    return f"{side.engine} {side.version or '(version unknown)'}"


def label(side: Side) -> str:
    """How the user called it, and what it is when it is no launch: ``boot.log (read from a log)``."""
    return side.label + (f" (read from {side.read_from})" if side.read_from else "")


def model(diff: Diff) -> str:
    """The model that was served, as far as a side states it; engines want it in different forms."""
    if diff.across and diff.old.model and diff.new.model and diff.old.model != diff.new.model:
        return f"{diff.old.model} / {diff.new.model}"
    return diff.new.model or diff.old.model or "not stated"


def count(number: int, thing: str) -> str:
    """``1 finding``, ``2 findings``."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def minor(finding: Finding) -> bool:
    """Whether a line is enough for it: cosmetic, and nothing that the user set and another engine does not have."""
    return finding.area == "cosmetic" and finding.kind != "SettingNotCarried"


def origins(finding: Finding) -> str:
    """``default → derived``; empty when that did not move, since the headline says it then."""
    old, new = (ORIGINS.get(o or "", "unknown") for o in (finding.old_origin, finding.new_origin))
    return f"{old} → {new}" if old != new else ""


def place(pin: Pin) -> str:
    """Where a pin that is no word of the command line goes: `` (a line of the file of --config)``."""
    return f" ({pin.because})" if pin.style == "file" else ""


def move(one: Move, across: Across | None = None) -> str:
    """``torch 2.11.0 → 2.13.0``, ``gguf 0.19.0 gone``, ``oss-harmony 0.0.11 added``; of two engines, both values."""
    if across:
        return f"{one.name}: {across.old_title} {one.old or 'none'}; {across.new_title} {one.new or 'none'}"
    if one.old is None:
        return f"{one.name} {one.new} added"
    return f"{one.name} {one.old} → {one.new}" if one.new is not None else f"{one.name} {one.old} gone"


def package(one: Move, across: Across | None) -> str:
    """``torch 2.11.0 → 2.13.0``; of two engines, ``torch 2.11.0 / 2.13.0``."""
    return f"{one.name} {one.old} / {one.new}" if across else move(one)


def shortened(text: str, longest: int) -> str:
    """The text without runs of spaces, cut with an ellipsis where it is longer."""
    text = " ".join(text.split())
    return text if len(text) <= longest else text[: longest - 1].rstrip() + "…"


def verdict(diff: Diff) -> str:
    """The answer in one line."""
    if diff.across:
        return _verdict_across(diff, diff.across)
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


def _verdict_across(diff: Diff, across: Across) -> str:
    """How much of what both engines have differs, and what the user wrote that does not come along."""
    parts = []
    if across.compared:
        apart = across.compared - across.same
        parts.append(f"{apart} of {count(across.compared, 'setting')} that both engines state differ")
    unlike = sum(f.meanings is not None and not f.meanings.comparable for f in diff.findings)
    if unlike:
        parts.append(f"{unlike} of them with another meaning on each")
    if lost := sum(f.kind == "SettingNotCarried" for f in diff.findings):
        parts.append(f"{lost} that you set on {across.old_title} not carried over")
    if gone := sum(one.by_user and one.side == "old" and not one.counterpart for one in across.one_sided):
        parts.append(f"{gone} that you wrote for {across.old_title} without a known counterpart")
    return "; ".join(["two engines", *parts])


@dataclass(frozen=True)
class OneSide:
    """What one of two engines has alone, in parts of falling importance."""

    title: str
    other: str
    lost: tuple[OneSided, ...]
    """What the user wrote."""

    renamed: tuple[OneSided, ...]
    """What the user wrote, and the other engine calls otherwise."""

    rest: tuple[OneSided, ...]
    """What nobody wrote."""


def one_sides(across: Across) -> tuple[OneSide, OneSide]:
    """The settings without a counterpart, of the old engine and of the new one."""
    titles = {"old": across.old_title, "new": across.new_title}

    def of(side: Literal["old", "new"], other: str) -> OneSide:
        mine = [one for one in across.one_sided if one.side == side]
        return OneSide(
            title=titles[side],
            other=titles[other],
            lost=tuple(one for one in mine if one.by_user and not one.counterpart),
            renamed=tuple(one for one in mine if one.counterpart),
            rest=tuple(one for one in mine if not one.by_user),
        )

    return of("old", "new"), of("new", "old")


def lost_title(side: OneSide) -> str:
    """Over what the user wrote for one engine in vain."""
    return f"You wrote it for {side.title}, and engdiff knows no counterpart in {side.other}"


def lost(one: OneSided) -> str:
    """``kv.watermark 0.1: why``, or the flag as it was typed."""
    return f"{written(one)}: {one.why}" if one.why else written(one)


def written(one: OneSided) -> str:
    """``kv.watermark 0.1``, or the flag as it was typed."""
    return one.what + (f" {show(one.value, one.unit)}" if one.value is not None else "")


def cell(value: Value, unit: str) -> str:
    """One cell of a table of two engines; the reason of an unknown one is a remark."""
    if isinstance(value, Unknown):
        return "not stated" if value.because.endswith(NOT_STATED) else "unknown"
    return value.value if isinstance(value.value, str) else show(value, unit)


def remark(one: Beside, across: Across) -> str:
    """What each engine calls it, and why a value is not known."""
    said = [
        called if isinstance(value, Known) else value.because if not value.because.endswith(NOT_STATED) else None
        for value, called in ((one.old, one.old_as), (one.new, one.new_as))
    ]
    titles = (across.old_title, across.new_title)
    return "; ".join(f"{title}: {text}" for title, text in zip(titles, said, strict=True) if text)


def comparable(meanings: Meanings) -> str:
    """Whether the two values can be held against each other."""
    if meanings.comparable:
        return "the two mean the same and can be compared"
    return "the two cannot be compared" + (f"; {meanings.instead}" if meanings.instead else "")


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
