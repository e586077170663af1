"""Canonical settings of the two sides: what moved, and who moved it."""

from __future__ import annotations

from collections.abc import Iterator

from engdiff.diff.findings import (
    DefaultMoved,
    DerivedMoved,
    Found,
    PolicyForced,
    SettingChanged,
    SettingGone,
    SettingMoved,
)
from engdiff.diff.sides import both_whole, resolved, silent_because, whole, words_known
from engdiff.diff.tolerance import moved
from engdiff.engines.contract import Engine
from engdiff.engines.layers import same
from engdiff.knowledge.settings import SettingInfo, registry
from engdiff.schema.capture import Capture, Setting
from engdiff.schema.diff import NotCompared
from engdiff.schema.values import Known, Unknown, plain

NOT_DECISIONS = frozenset({"model.path"})
"""Keys that say what was loaded, not what the engine decided; another model is told by its own line."""


def settings_found(old: Capture, new: Capture, engine: Engine) -> Iterator[Found]:
    """A finding for every canonical setting that moved, and for every one that the user set and that is gone.

    Where one side did not start, only what the user wrote differently: the rest was never resolved.
    """
    started = resolved(old) and resolved(new)
    follows = _follows(new, engine)
    for key, info in registry().items():
        if key in NOT_DECISIONS:
            continue
        a, b = old.settings.get(key), new.settings.get(key)
        if a and b:
            found = _moved(info, a, b, follows.get(key, ()), old, new)
            yield from (one for one in found if started or one.asked)
        elif a and started and both_whole(old, new) and _unheard(a, new, engine):
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
    if setting.configured is None or setting.configured.evidence is None or isinstance(new.identity.version, Unknown):
        return False
    written_as = setting.configured.evidence.where
    names = engine.knowledge.names(str(plain(new.identity.version))).values()
    return written_as not in {word for n in names for word in (n.flag, n.variable)}


def _follows(new: Capture, engine: Engine) -> dict[str, tuple[str, ...]]:
    """Keys that the engine computes from others, by its own knowledge."""
    version = str(plain(new.identity.version))
    return {key: names.derived_from for key, names in engine.knowledge.names(version).items() if names.derived_from}


def _moved(
    info: SettingInfo, a: Setting, b: Setting, sources: tuple[str, ...], old: Capture, new: Capture
) -> Iterator[Found]:
    if not moved(a.final, b.final):
        return
    cls, asked = _kind(a, b, old, new)
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


def _asked(a: Setting, b: Setting, old: Capture, new: Capture) -> bool:
    """Whether the user wrote two different things. Under the very same words nothing counts as asked."""
    if same(plain(a.configured), plain(b.configured)) or same(_wish(a), _wish(b)):
        return False
    if words_known(old) and words_known(new):
        return _words(old) != _words(new)
    return _told(a, old) and _told(b, new)


def _wish(setting: Setting) -> object:
    """What the user wrote, or the default that nobody touched: to write a default out asks for nothing new."""
    if setting.configured is not None:
        return setting.configured.value
    return plain(setting.final) if setting.origin == "default" else None


def _told(setting: Setting, capture: Capture) -> bool:
    """Whether it is known what the user wrote for this setting, or that it was nothing."""
    return words_known(capture) or setting.configured is not None or setting.origin is not None


def _kind(a: Setting, b: Setting, old: Capture, new: Capture) -> tuple[type[Found], bool]:
    """Which kind of finding, and whether the user asked for it by writing two different things."""
    if _asked(a, b, old, new):
        return SettingChanged, True
    if not (_told(a, old) and _told(b, new)):
        return SettingMoved, False
    if b.origin == "forced" and a.origin != "forced":
        return PolicyForced, False
    if a.origin == b.origin == "default":
        return DefaultMoved, False
    return DerivedMoved, False


def settings_not_compared(old: Capture, new: Capture) -> Iterator[NotCompared]:
    """Settings that one side does not know: by name where that is odd, in one number where it was never to know."""
    silent = {"old": 0, "new": 0}
    for key in registry():
        a, b = old.settings.get(key), new.settings.get(key)
        for side, capture, mine, other in (("old", old, a, b), ("new", new, b, a)):
            if not whole(capture):
                silent[side] += _states(other) and not _states(mine)
            elif mine and other and isinstance(mine.final, Unknown):
                yield NotCompared(what=key, because=f"unknown on the {side} side: {mine.final.because}")
                break
    for side, capture in (("old", old), ("new", new)):
        if count := silent[side]:
            what, them = ("1 setting", "it") if count == 1 else (f"{count} settings", "them")
            yield NotCompared(what=what, because=silent_because(side, capture, them))


def _states(setting: Setting | None) -> bool:
    return setting is not None and isinstance(setting.final, Known)
