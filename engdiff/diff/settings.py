"""Canonical settings of the two sides: what moved, and who moved it."""

from __future__ import annotations

from collections.abc import Iterator

from engdiff.diff.findings import DefaultMoved, DerivedMoved, Found, PolicyForced, SettingChanged, SettingGone
from engdiff.diff.tolerance import moved
from engdiff.engines.contract import Engine
from engdiff.engines.layers import same
from engdiff.knowledge.settings import SettingInfo, registry
from engdiff.schema.capture import Capture, Setting
from engdiff.schema.diff import NotCompared
from engdiff.schema.values import Unknown, plain

NOT_DECISIONS = frozenset({"model.path"})
"""Keys that say what was loaded, not what the engine decided; another model is told by its own line."""


def settings_found(old: Capture, new: Capture, engine: Engine | None) -> Iterator[Found]:
    """A finding for every canonical setting that moved, and for every one that the user set and that is gone.

    Where one side did not start, only what the user wrote differently: the rest was never resolved.
    """
    started = not old.failure and not new.failure
    follows = _follows(new, engine)
    for key, info in registry().items():
        if key in NOT_DECISIONS:
            continue
        a, b = old.settings.get(key), new.settings.get(key)
        if a and b:
            found = _moved(info, a, b, follows.get(key, ()), old, new)
            yield from (one for one in found if started or one.asked)
        elif a and engine and started and _unheard(a, new, engine):
            yield SettingGone(
                key=key,
                name=key,
                old=a.final,
                new=Unknown(because="this version has no such setting"),
                unit=info.unit,
                area="startup",
                why=info.why,
                old_origin=a.origin,
            )


def _unheard(setting: Setting, new: Capture, engine: Engine) -> bool:
    """Whether the user set it and the new version takes the word or variable for nothing else."""
    if setting.configured is None or setting.configured.evidence is None:
        return False
    written_as = setting.configured.evidence.where
    names = engine.knowledge.names(str(plain(new.identity.version))).values()
    return written_as not in {word for n in names for word in (n.flag, n.variable)}


def _follows(new: Capture, engine: Engine | None) -> dict[str, tuple[str, ...]]:
    """Keys that the engine computes from others, by its own knowledge."""
    if engine is None:
        return {}
    version = str(plain(new.identity.version))
    return {key: names.derived_from for key, names in engine.knowledge.names(version).items() if names.derived_from}


def _moved(
    info: SettingInfo, a: Setting, b: Setting, sources: tuple[str, ...], old: Capture, new: Capture
) -> Iterator[Found]:
    if not moved(a.final, b.final):
        return
    cls, asked = _kind(a, b, same_words=_words(old) == _words(new))
    yield cls(
        key=info.key,
        name=info.key,
        old=a.final,
        new=b.final,
        unit=info.unit,
        area=info.area,
        why=info.why,
        old_origin=a.origin,
        new_origin=b.origin,
        evidence=tuple(filter(None, (b.because,))),
        asked=asked,
        follows_from=tuple(key for key in sources if key_moved(key, old, new)),
    )


def key_moved(key: str, old: Capture, new: Capture) -> bool:
    """Whether a canonical setting that both sides know has another value on the new one."""
    a, b = old.settings.get(key), new.settings.get(key)
    return bool(a and b and moved(a.final, b.final))


def _words(capture: Capture) -> object:
    """Everything the user wrote."""
    return capture.launch.arguments, capture.launch.variables, capture.launch.model_given


def _kind(a: Setting, b: Setting, *, same_words: bool) -> tuple[type[Found], bool]:
    """Which kind of finding, and whether the user asked for it by writing two different things."""
    if not same_words and not same(plain(a.configured), plain(b.configured)):
        return SettingChanged, True
    if b.origin == "forced" and a.origin != "forced":
        return PolicyForced, False
    if a.origin == b.origin == "default":
        return DefaultMoved, False
    return DerivedMoved, False


def settings_not_compared(old: Capture, new: Capture) -> Iterator[NotCompared]:
    """Settings that both sides have and one of them does not know."""
    for key in registry():
        a, b = old.settings.get(key), new.settings.get(key)
        if not a or not b:
            continue
        for side, value in (("old", a.final), ("new", b.final)):
            if isinstance(value, Unknown):
                yield NotCompared(what=key, because=f"unknown on the {side} side: {value.because}")
                break
