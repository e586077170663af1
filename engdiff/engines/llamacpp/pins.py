"""Which flag or variable restores an old value, in llama-server's syntax."""

from __future__ import annotations

from typing import Any

from engdiff.engines.contract import Pin, PinStyle
from engdiff.engines.layers import MISSING, lookup
from engdiff.engines.llamacpp import flags
from engdiff.engines.llamacpp.normalize import KNOWLEDGE
from engdiff.schema.capture import Capture
from engdiff.schema.values import plain
from engdiff.units import MIB

ENUM_PREFIX = {
    "kv.dtype": "GGML_TYPE_",
    "kv.dtype_values": "GGML_TYPE_",
    "kernels.flash_attention": "LLAMA_FLASH_ATTN_TYPE_",
    "reasoning.format": "COMMON_REASONING_FORMAT_",
}
STATED_OTHERWISE = ("kernels.flash_attention",)
"""Settings whose effective value is a statement, not something that a flag takes: the resolved value is restored."""


def pin(key: str, old: Capture, new: Capture, style: PinStyle) -> Pin | None:
    """What restores ``old``'s value of a canonical key or of ``params.<field>`` on ``new``'s version."""
    version = str(plain(new.identity.version))
    field, value = _native_value(key, old, version)
    if field is None or value is MISSING or value is None:
        return None
    flag = flags.flag_for(field, version)
    if flag is None:
        return None
    if style == "env":
        variable = flags.render_env(flag, value)
        return Pin(style="env", variable=variable) if variable else None
    words = flags.render(flag, value)
    return Pin(style="flags", words=tuple(words)) if words else None


def _native_value(key: str, old: Capture, version: str) -> tuple[str | None, Any]:
    """The field on the new version and the old value as that field takes it."""
    if key.startswith("params."):
        return key.removeprefix("params."), lookup(old.native.get("params"), key.removeprefix("params."))
    names = KNOWLEDGE.names(version).get(key)
    setting = old.settings.get(key)
    if names is None or setting is None:
        return None, MISSING
    value = plain(setting.resolved if key in STATED_OTHERWISE else setting.final)
    return names.native, _as_field(key, value)


def _as_field(key: str, value: Any) -> Any:
    """Back from the registry's words to the field's."""
    if key in ENUM_PREFIX and isinstance(value, str):
        return ENUM_PREFIX[key] + value.upper()
    if key == "kv.offload_bytes" and isinstance(value, int) and value > 0:
        return value // MIB
    if key == "kv.offloaded_to_device" and isinstance(value, bool):
        return not value
    return value
