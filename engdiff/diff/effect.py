"""Whether a setting that moved has any effect on this machine, with this model and these other settings.

What a setting can need, in an engine's ``acts.toml``:

- ``KEY``: this canonical setting is on; ``!KEY``: it is off or unset; ``KEY=VALUE``; ``KEY>NUMBER``
- ``device:KIND``, ``group:KIND`` (a cache group), ``runner:NAME``
- ``native:PATH``: this leaf of the engine's own configuration holds something; ``native:!PATH``: it does not;
  ``native:PATH=VALUE``

What a capture does not say never makes a move harmless.
"""

from __future__ import annotations

import re

from engdiff.diff.sides import whole
from engdiff.engines.contract import Engine
from engdiff.engines.layers import MISSING, lookup, same
from engdiff.schema.capture import Capture
from engdiff.schema.values import Unknown, number, plain

OFF: tuple[object, ...] = (None, False, "", "none", "None", [], {})

_SETTING = re.compile(r"(?P<not>!?)(?P<key>[\w.]+)(?:(?P<relation>[=>])(?P<operand>.*))?")


def no_effect(key: str, new: Capture, engine: Engine) -> str | None:
    """The sentence that says why a move of ``key`` does nothing here; ``None`` when it may do something."""
    for condition in engine.knowledge.acts_if(key.removeprefix(engine.native_root)):
        if not any(_holds(need, new, engine) for need in condition.needs):
            return condition.says
    return None


def _holds(need: str, new: Capture, engine: Engine) -> bool:
    """Whether one need is met; what the capture does not say counts as met."""
    kind, colon, name = need.partition(":")
    if not colon:
        return _setting_holds(need, new)
    if kind == "device":
        devices = new.identity.devices
        return not devices or any(device.kind == name for device in devices)
    if kind == "group":
        groups = [g for i in new.instances for r in i.ranks for p in r.pools for g in p.groups]
        return not groups or any(group.kind == name for group in groups)
    if kind == "runner":
        return isinstance(new.runner.name, Unknown) or new.runner.name.value == name
    return _leaf_holds(new, engine, name)


def _setting_holds(need: str, new: Capture) -> bool:
    """``KEY``, ``!KEY``, ``KEY=VALUE`` or ``KEY>NUMBER``, of a canonical setting."""
    match = _SETTING.fullmatch(need)
    assert match is not None, need
    setting = new.settings.get(match["key"])
    if setting is None or isinstance(setting.final, Unknown):
        return True
    value = plain(setting.final)
    if match["not"]:
        return value in OFF
    if match["relation"] == "=":
        return same(value, match["operand"])
    if match["relation"] == ">":
        size = number(setting.final)
        return size is None or size > float(match["operand"])
    return value not in OFF


def _leaf_holds(new: Capture, engine: Engine, need: str) -> bool:
    """``PATH``, ``!PATH`` or ``PATH=VALUE``. Of a configuration that was read whole, what is not there is off."""
    path, relation, wanted = need.removeprefix("!").partition("=")
    value = lookup(new.native, f"{engine.native_root}{path}")
    if value is MISSING:
        return need.startswith("!") or not (whole(new) and new.native)
    if relation:
        return same(value, wanted)
    return (value in OFF) is need.startswith("!")
