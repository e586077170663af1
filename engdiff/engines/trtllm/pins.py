"""Which flag of ``trtllm-serve``, or which line of its YAML file, restores an old value.

Most settings have no flag. A line of the YAML holds in every version; a flag does not where the file says something
else of the same field, since up to some release of 1.3 the file overrides the words (pull request 14812). So the line
is given wherever a file is used already.
"""

from __future__ import annotations

import json
import re
from typing import Any

from pydantic import JsonValue

from engdiff.engines.contract import Pin, PinStyle
from engdiff.engines.layers import MISSING, lookup
from engdiff.engines.trtllm import words
from engdiff.engines.trtllm.admission import POLICY_PATH, SECOND_MANAGERS, SECOND_SCHEDULER
from engdiff.engines.trtllm.normalize import DECODE, KNOWLEDGE, NEWEST
from engdiff.knowledge.tables import Names
from engdiff.knowledge.versions import holds
from engdiff.schema.capture import Capture
from engdiff.schema.values import Known, number, plain

SECOND_MANAGER = "kv_cache_config.use_kv_cache_manager_v2"
POLICY_KEYS = ("scheduler.capacity_policy", "scheduler.class", "admission.rule", "admission.preemption")
"""What the capacity policy and the scheduler decide together."""

POOL = "kv.pool_bytes"
POOL_FIELD = "kv_cache_config.max_gpu_total_bytes"
FIRST_FILE = "0.20.0"
"""Release of 2025-06, the first whose ``trtllm-serve`` lets a YAML file say what flags say (pull request 4164)."""

FIRST_FIELDS = "1.0.0"
"""Before it, fields of the PyTorch back end lay in ``pytorch_backend_config``; these parents are older."""
OLDER_PARENTS = ("kv_cache_config.", "scheduler_config.")

OTHER_WORDS = frozenset({"parallel.ep", "parallel.eplb", "parallel.executor", "lora.enabled", "model.path"})
"""Settings whose value in the registry's words does not say what the field was."""

ADJUSTED = frozenset({"model.max_model_len"})
"""Fields that the worker adds to: what it ended with is not what must be written."""

_BARE = re.compile(r"[A-Za-z_][\w./-]*")
_KEYWORDS = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})


def pin(key: str, old: Capture, new: Capture, style: PinStyle) -> Pin | None:
    """What restores ``old``'s value of a canonical key, or of a leaf of LlmArgs, on ``new``'s version."""
    if style == "env":
        return None
    version = str(plain(new.identity.version) or NEWEST)
    if key in POLICY_KEYS:
        return _policy(old, new, version)
    if key == POOL:
        return _pool(old, version)
    names = KNOWLEDGE.names(version).get(key)
    if names is None:
        return _leaf(key, old, version)
    value = _written(key, old)
    if value is MISSING:
        return None
    flag = _flag(names, value)
    if flag is not None and words.yaml_path(new.launch.arguments) is None:
        return flag
    return (_line(names.arg, value, version) if names.arg else None) or flag


def second_manager_runs(capture: Capture) -> bool:
    """Whether the scheduler is the one of KVCacheManagerV2."""
    setting = capture.settings.get("scheduler.class")
    return setting is not None and plain(setting.final) == SECOND_SCHEDULER


def _policy(old: Capture, new: Capture, version: str) -> Pin | None:
    """The policy itself; under KVCacheManagerV2, which runs one policy only, the way back to the first manager."""
    setting = old.settings.get(POLICY_KEYS[0])
    wanted = plain(setting.final) if setting else None
    if not isinstance(wanted, str):
        return None
    if second_manager_runs(new):
        return None if wanted == SECOND_MANAGERS else _line(SECOND_MANAGER, value=False, version=version)
    return _line(POLICY_PATH, wanted, version)


def _pool(old: Capture, version: str) -> Pin | None:
    """The pool's size set outright, in bytes of one rank."""
    size = number(old.first_pool.bytes) if old.first_pool else None
    arg = KNOWLEDGE.names(version)["kv.configured_bytes"].arg
    return _line(POOL_FIELD, int(size), version) if size and arg else None


def _written(key: str, old: Capture) -> Any:
    """The old value as its field takes it; :data:`MISSING` where that is not known, or was unset."""
    setting = old.settings.get(key)
    if setting is None or key in OTHER_WORDS:
        return MISSING
    known = setting.resolved if key in ADJUSTED else setting.final
    value = known.value if isinstance(known, Known) else None
    if value is None:
        return MISSING
    if key == "scheduler.async_scheduling" and isinstance(value, bool):
        return not value
    if key == "graphs.mode":
        return {} if value == DECODE else None
    return value


def _flag(names: Names, value: Any) -> Pin | None:
    """Words for a value that a flag takes; a switch has no word for off."""
    if names.flag is None or isinstance(value, list | dict) or value is None:
        return None
    if isinstance(value, bool):
        return Pin(style="flags", words=(names.flag,)) if value and names.flag in words.SWITCHES else None
    return Pin(style="flags", words=(names.flag, str(value)))


def _leaf(key: str, old: Capture, version: str) -> Pin | None:
    """A field without a canonical key; both sides have it, or there would be nothing to restore."""
    path = key.removeprefix("config.")
    value = lookup(old.native, key) if path != key else MISSING
    if value is MISSING or value is None or isinstance(value, dict):
        return None
    return _line(path, value, version)


def _line(path: str, value: Any, version: str) -> Pin | None:
    """A line of the YAML file, whole in itself: ``kv_cache_config: {enable_block_reuse: false}``."""
    first = FIRST_FILE if path.startswith(OLDER_PARENTS) else FIRST_FIELDS
    if not holds(version, since=first):
        return None
    *parents, last = path.split(".")
    text = f"{last}: {_yaml(value)}"
    for parent in reversed(parents):
        text = f"{parent}: {{{text}}}"
    new_name, old_name = words.YAML_FLAGS
    return Pin(style="file", line=text, file_flag=new_name if holds(version, since="1.2.0") else old_name)


def _yaml(value: JsonValue) -> str:
    """In flow form, which is JSON but for words that need no quotes."""
    if isinstance(value, str) and _BARE.fullmatch(value) and value.lower() not in _KEYWORDS:
        return value
    return json.dumps(value)
