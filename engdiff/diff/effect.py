"""Whether a setting that moved has any effect on this machine, with this model and these other settings."""

from __future__ import annotations

from engdiff.engines.contract import Engine
from engdiff.engines.layers import MISSING, lookup
from engdiff.schema.capture import Capture
from engdiff.schema.values import plain

OFF: tuple[object, ...] = (None, False, "", "none", "None", [], {})


def no_effect(key: str, new: Capture, engine: Engine) -> str | None:
    """The sentence that says why a move of ``key`` does nothing here; ``None`` when it may do something."""
    condition = engine.knowledge.acts_if(key.removeprefix(engine.native_root))
    if condition is None or _holds(condition.needs, new, engine):
        return None
    return condition.says


def _holds(needs: str, new: Capture, engine: Engine) -> bool:
    kind, colon, name = needs.partition(":")
    if not colon:
        setting = new.settings.get(kind)
        return setting is None or plain(setting.final) not in OFF
    if kind == "device":
        return any(device.kind == name for device in new.identity.devices)
    if kind == "group":
        groups = [g for i in new.instances for r in i.ranks for p in r.pools for g in p.groups]
        return not groups or any(group.kind == name for group in groups)
    value = lookup(new.native, f"{engine.native_root}{name}")
    return value is not MISSING and value not in OFF
