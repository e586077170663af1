"""Which flag or variable restores an old value, checked against the flags that the new version really has."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any

from engdiff.engines.contract import Pin, PinStyle
from engdiff.engines.layers import MISSING, lookup
from engdiff.engines.vllm import releases
from engdiff.engines.vllm.environment import CPU
from engdiff.engines.vllm.normalize import KNOWLEDGE
from engdiff.knowledge.tables import Names
from engdiff.knowledge.versions import holds
from engdiff.schema.capture import Capture
from engdiff.schema.values import number, plain
from engdiff.units import GIB

POOL = "kv.pool_bytes"
RUNNER = "runner.name"
FIRST_EXPLICIT_ON_CPU = "0.20.0"

GENERIC = ("config.",)


def pin(key: str, old: Capture, new: Capture, style: PinStyle) -> Pin | None:
    """What restores ``old``'s value of a canonical key, or of a native leaf, on ``new``'s version."""
    version = str(plain(new.identity.version) or releases.KNOWN[CPU][0])
    if key == RUNNER:
        return _runner_pin(old, version)
    if key == POOL:
        return _pool_pin(old, new, version) if style == "flags" else None
    names = KNOWLEDGE.names(version).get(key)
    if names is None:
        return _leaf_pin(key, old, new) if style == "flags" else None
    setting = old.settings.get(key)
    value = plain(setting.final) if setting else None
    if value is None:
        return None
    if key == "kv.configured_bytes" and not _hears_bytes(new, version):
        return _variable_pin(names, value)
    if style == "env" or (names.flag is None and not _is_words(names.pin)):
        return _variable_pin(names, value)
    return _flag_pin(names, value, new)


def _runner_pin(old: Capture, version: str) -> Pin | None:
    """The variable that chooses the runner, in releases that have it (vllm/envs.py)."""
    names = KNOWLEDGE.names(version).get("runner.v2")
    runner = plain(old.runner.name)
    if names is None or names.variable is None or runner not in ("V1", "V2"):
        return None
    return Pin("env", variable=(names.variable, str(int(runner == "V2"))))


def _pool_pin(old: Capture, new: Capture, version: str) -> Pin | None:
    """The pool's size set outright."""
    if not _hears_bytes(new, version):
        return None
    size = number(old.first_pool.bytes) if old.first_pool else None
    if not size:
        return None
    names = KNOWLEDGE.names(version)["kv.configured_bytes"]
    return _flag_pin(names, int(size), new)


def _hears_bytes(new: Capture, version: str) -> bool:
    """Whether --kv-cache-memory-bytes is read: on a CPU from 0.20 on (vllm/v1/worker/cpu_worker.py)."""
    on_gpu = any(device.kind == "gpu" for device in new.identity.devices)
    return on_gpu or holds(version, since=FIRST_EXPLICIT_ON_CPU)


def _is_words(syntax: str | Mapping[str, str] | None) -> bool:
    text = syntax if isinstance(syntax, str) else (syntax or {}).get("true", "")
    return text.startswith("-")


def _variable_pin(names: Names, value: Any) -> Pin | None:
    if names.variable is None:
        return None
    if names.variable_unit == "GiB":
        if not isinstance(value, int) or value % GIB:
            return None
        value //= GIB
    return Pin(style="env", variable=(names.variable, _text(value)))


def _flag_pin(names: Names, value: Any, new: Capture) -> Pin | None:
    """By the table's syntax where it has one, else by what the new version's own parser says of the flag."""
    if isinstance(names.pin, Mapping):
        written = names.pin.get("true" if value is True else "false")
        return _written(written, value) if written and isinstance(value, bool) else None
    if names.pin is not None:
        return _written(names.pin, value)
    if "flags" not in new.native:
        return _by_table(names, value)
    return _by_parser(names.arg, value, new) if names.arg else None


def _by_table(names: Names, value: Any) -> Pin | None:
    """Where nobody asked the parser (a log does not print it): the table's flag, for what takes one plain value."""
    if names.flag is None or isinstance(value, bool | dict | list):
        return None
    return Pin(style="flags", words=(names.flag, _text(value)))


def _written(syntax: str, value: Any) -> Pin | None:
    """The syntax with the value in it; it is split first, so that a space or a quote in the value stays in its word."""
    if not syntax.startswith("-"):
        name, equals, text = syntax.partition("=")
        return Pin(style="env", variable=(name, text.format(value=_text(value)))) if equals else None
    words: list[str] = []
    for word in shlex.split(syntax):
        several = word == "{value}" and isinstance(value, list)
        words += map(_text, value) if several else [word.format(value=_nested(value))]
    return Pin(style="flags", words=tuple(words))


def _by_parser(dest: str, value: Any, new: Capture) -> Pin | None:
    """Words for a flag of the new version's own parser; ``None`` when it has no such flag or takes no such value."""
    flag = lookup(new.native.get("flags"), dest)
    if not isinstance(flag, dict):
        return None
    names = [n for n in flag["names"] if n.startswith("--")]
    if not names:
        return None
    if isinstance(value, bool):
        return _switch(names, value, flag["takes"])
    if isinstance(value, list):
        return Pin(style="flags", words=(names[0], *map(_text, value))) if flag["takes"] == "list" and value else None
    if isinstance(value, dict):
        return Pin(style="flags", words=(names[0], json.dumps(value)))
    choices = flag.get("choices")
    if isinstance(choices, list) and choices and _text(value) not in choices:
        return None
    return Pin(style="flags", words=(names[0], _text(value)))


def _switch(names: list[str], value: bool, takes: str) -> Pin | None:
    positive = next((n for n in names if not n.startswith("--no-")), None)
    negative = next((n for n in names if n.startswith("--no-")), None)
    if takes == "flag" and not value:
        return None
    word = positive if value else negative
    return Pin(style="flags", words=(word,)) if word else None


def _leaf_pin(path: str, old: Capture, new: Capture) -> Pin | None:
    """A leaf without a canonical key: a flag whose destination is the leaf's name, or a variable."""
    if path.startswith("variables."):
        name = path.removeprefix("variables.")
        value = lookup(old.native.get("variables"), name)
        return None if value in (MISSING, None) else Pin(style="env", variable=(name, _text(value)))
    if not path.startswith(GENERIC):
        return None
    value = lookup(old.native, path)
    if value in (MISSING, None) or isinstance(value, dict):
        return None
    return _by_parser(path.rsplit(".", 1)[-1], value, new) or _part_pin(path.split("."), value, new)


def _part_pin(parts: list[str], value: Any, new: Capture) -> Pin | None:
    """A dotted flag, for a leaf of a sub-configuration that one flag takes: ``--eplb-config.window_size=10``."""
    for at in range(len(parts) - 2, 0, -1):
        flag = lookup(new.native.get("flags"), parts[at])
        if not isinstance(flag, dict):
            continue
        inner = ".".join(parts[at + 1 :])
        name = next((n for n in flag["names"] if n.startswith("--")), None)
        if name is None or lookup(flag["default"], inner) is MISSING:
            return None
        return Pin(style="flags", words=(f"{name}.{inner}={_nested(value)}",))
    return None


def _nested(value: Any) -> str:
    """A value inside a dotted or JSON flag: booleans as true and false."""
    return json.dumps(value) if isinstance(value, list | dict | bool) else _text(value)


def _text(value: Any) -> str:
    """As typed on a command line or in a variable: booleans as 1 and 0."""
    if isinstance(value, bool):
        return "1" if value else "0"
    return str(value)
