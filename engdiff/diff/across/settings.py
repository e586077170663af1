"""Canonical settings that both engines have: which differ, and which cannot be held against each other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from engdiff.diff.across.capacity import budget_words
from engdiff.diff.across.party import Party, meanings
from engdiff.diff.effect import OFF, no_effect
from engdiff.diff.findings import Found, MeaningDiffers, SettingDiffers, SettingNotCarried
from engdiff.diff.settings import NOT_DECISIONS
from engdiff.diff.sides import resolved, silent_because, whole
from engdiff.diff.tolerance import equal
from engdiff.knowledge.settings import SettingInfo, registry
from engdiff.schema.capture import Setting
from engdiff.schema.diff import Meanings, NotCompared, OtherMeaning
from engdiff.schema.values import Known, Unknown, plain

TOLD_ELSEWHERE = NOT_DECISIONS | {"kv.pool_bytes"}
"""Keys that a line of their own tells."""

FRACTION = "kv.gpu_memory_utilization"
"""The one setting whose two values come to bytes that can be shown side by side."""


@dataclass(frozen=True)
class Shared:
    """One canonical setting that both sides state."""

    info: SettingInfo
    old: Setting
    new: Setting
    same: bool
    """Whether the values are the same, in shared words."""

    meanings: Meanings | None

    @property
    def comparable(self) -> bool:
        """Whether both mean the same by it."""
        return self.meanings is None or self.meanings.comparable

    @property
    def agrees(self) -> bool:
        """Whether there is nothing to tell: the same value, and it means the same or is no number."""
        return self.same and (self.comparable or _is_off(self.old) or not _is_number(self.old))


def shared_settings(old: Party, new: Party) -> tuple[Shared, ...]:
    """What both state, in the order of the registry. Nothing where one did not come so far as to resolve it."""
    if not (resolved(old.capture) and resolved(new.capture)):
        return ()
    return tuple(
        Shared(info, old.capture.settings[key], new.capture.settings[key], _same(key, old, new), _meant(key, old, new))
        for key, info in registry().items()
        if key not in TOLD_ELSEWHERE and _stated(key, old) and _stated(key, new)
    )


def _stated(key: str, party: Party) -> bool:
    return key in party.capture.settings and isinstance(party.shared(key), Known)


def _same(key: str, old: Party, new: Party) -> bool:
    left, right = old.shared(key), new.shared(key)
    return equal(left, right) or (plain(left) in OFF and plain(right) in OFF)


def _meant(key: str, old: Party, new: Party) -> Meanings | None:
    found = meanings(key, old, new)
    if found and key == FRACTION and (words := budget_words(old, new)):
        return found.model_copy(update={"instead": words})
    return found


def _is_off(setting: Setting) -> bool:
    return plain(setting.final) in OFF


def _is_number(setting: Setting) -> bool:
    value = plain(setting.final)
    return isinstance(value, int | float | list) and not isinstance(value, bool)


def settings_found(shared: tuple[Shared, ...], old: Party, new: Party) -> Iterator[Found]:
    """A finding for each that does not agree."""
    for one in shared:
        if one.agrees:
            continue
        key, idle = one.info.key, _idle(one.info.key, old, new)
        yield _kind(one)(
            key=key,
            name=key,
            old=one.old.final,
            new=one.new.final,
            unit=one.info.unit,
            area="cosmetic" if idle else one.info.area,
            why=idle or " ".join((one.info.why, *_spelt_out(key, old), *_spelt_out(key, new))),
            inert=idle is not None,
            units=(old.sense(key).unit or one.info.unit, new.sense(key).unit or one.info.unit),
            old_origin=one.old.origin,
            new_origin=one.new.origin,
            evidence=tuple(filter(None, (one.new.because,))),
            asked=_by_user(one.old) and _by_user(one.new) and one.comparable,
            titles=(old.title, new.title),
            meanings=one.meanings,
        )


SWITCHES = {"graphs.": "graphs.mode", "lora.": "lora.enabled", "speculative.": "speculative.method"}
"""Settings that do nothing while another one is off, by how their keys begin."""


def _idle(key: str, old: Party, new: Party) -> str | None:
    """The sentence that says why neither value does anything here; ``None`` when one of them may."""
    reasons = [_why_idle(key, party) for party in (old, new)]
    if None in reasons:
        return None
    said = [f"on {p.title} {why}" for p, why in zip((old, new), reasons, strict=True) if why]
    return f"No effect here: {'; '.join(said)}"


def _why_idle(key: str, party: Party) -> str | None:
    """Why the value does nothing on this side; empty where it is simply off."""
    why = no_effect(key, party.capture, party.engine)
    if why:
        return why.rstrip(".")
    switch = next((switch for start, switch in SWITCHES.items() if key.startswith(start) and key != switch), None)
    if switch in party.capture.settings and plain(party.shared(str(switch))) in OFF:
        return f"{switch} is off"
    return "" if plain(party.shared(key)) in OFF else None


def _spelt_out(key: str, party: Party) -> Iterator[str]:
    """What a word such as auto comes to, where another setting decides it."""
    said, meant = plain(party.capture.settings[key].final), plain(party.shared(key))
    if isinstance(said, str) and party.refers(key, said):
        yield f"On {party.title} {said} is {meant} here."


def _by_user(setting: Setting) -> bool:
    return setting.configured is not None


def _kind(one: Shared) -> type[Found]:
    if _by_user(one.old) and not _by_user(one.new):
        return SettingNotCarried
    return SettingDiffers if one.comparable else MeaningDiffers


def other_meanings(shared: tuple[Shared, ...]) -> Iterator[OtherMeaning]:
    """Settings whose values agree and mean different things: no finding, and worth a line."""
    for one in shared:
        if one.agrees and one.meanings and not one.comparable and not (_is_off(one.old) and _is_off(one.new)):
            yield OtherMeaning(name=one.info.key, meanings=one.meanings)


def settings_not_compared(old: Party, new: Party) -> Iterator[NotCompared]:
    """Settings that both engines have and one side does not state: in one number where it was never to know."""
    for mine, other in ((old, new), (new, old)):
        silent = [key for key in registry() if key not in TOLD_ELSEWHERE and _silent(key, mine, other)]
        if whole(mine.capture):
            for key in silent:
                yield NotCompared(what=key, because=_because(key, mine))
        elif silent:
            what, them = ("1 setting", "it") if len(silent) == 1 else (f"{len(silent)} settings", "them")
            yield NotCompared(what=what, because=silent_because(mine.title, mine.capture, them))


def _silent(key: str, mine: Party, other: Party) -> bool:
    """Whether this engine has the setting and does not state it, and the other one does."""
    if not _stated(key, other) or _stated(key, mine):
        return False
    return key in mine.capture.settings or (key in mine.names and not whole(mine.capture))


def _because(key: str, party: Party) -> str:
    value = party.shared(key)
    return f"unknown on the {party.title} side: {value.because}" if isinstance(value, Unknown) else "not stated"
