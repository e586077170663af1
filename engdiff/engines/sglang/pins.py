"""Which flag or variable restores an old value, checked against the flags or fields that the new version really has."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Mapping
from typing import Any

from engdiff.engines.contract import Pin, PinStyle
from engdiff.engines.layers import MISSING, lookup
from engdiff.engines.sglang.normalize import HICACHE_UNIT, KNOWLEDGE, NAMINGS
from engdiff.knowledge.tables import Names
from engdiff.knowledge.versions import is_version
from engdiff.schema.capture import Capture
from engdiff.schema.values import number, plain

ROOT = "server_args."
VARIABLES = "variables."
POOL = "kv.pool_bytes"

OTHER_FLAGS = {
    "fp8_gemm_runner_backend": "--fp8-gemm-backend",
    "fp4_gemm_runner_backend": "--fp4-gemm-backend",
    "ep_join_mode": "--elastic-ep-join-mode",
    "ep_join_rank_offset": "--elastic-ep-join-rank-offset",
}
"""Every other field has the flag of its own name (server_args.py of all releases from 0.4.6 to 0.5.23)."""

NO_FLAG = re.compile(
    r"_.*|stat_loggers|custom_sigquit_handler|uses_mamba_radix_cache|grpc_worker_threads|speculative_boundary_reduction"
    r"|watermark_(?!config$).*|enable_cp_tp_group_sharing|aux_hidden_state_capture|cuda_graph_config"
)
"""Fields that SGLang fills in by itself, in every release that has them."""

Words = tuple[str, ...]


def pin(key: str, old: Capture, new: Capture, style: PinStyle) -> Pin | None:
    """What restores ``old``'s value of a canonical key, or of a native leaf, on ``new``'s version."""
    if key.startswith(VARIABLES):
        return _variable(key.removeprefix(VARIABLES), old, new)
    if style == "env":
        return None
    words = _words(key, old, new)
    return Pin(style="flags", words=words) if words and _is_heard(words, new) else None


def _words(key: str, old: Capture, new: Capture) -> Words | None:
    if key == POOL:
        return _pool(old, new)
    if key.startswith(ROOT):
        return _leaf(key.removeprefix(ROOT), lookup(old.native, key), new)
    names, setting = _names(key, new), old.settings.get(key)
    value = plain(setting.final) if setting else None
    if names is None or value is None:
        return None
    special = _SPECIAL.get(key)
    return special(value, names, old, new) if special else _flag(value, names)


def _names(key: str, new: Capture) -> Names | None:
    """How the new version calls it; ``None`` when it has no such field. A log does not say which version wrote it."""
    version = plain(new.identity.version)
    versions = (version,) if isinstance(version, str) and is_version(version) else NAMINGS
    found = (KNOWLEDGE.names(name).get(key) for name in versions)
    return next((n for n in found if n and n.native and lookup(new.native, ROOT + n.native) is not MISSING), None)


def _flag(value: Any, names: Names) -> Words | None:
    """By the table's syntax where it has one, else the flag with its value."""
    if isinstance(names.pin, Mapping):
        written = names.pin.get("true" if value is True else "false")
        return tuple(shlex.split(written)) if written and isinstance(value, bool) else None
    if isinstance(names.pin, str):
        return (names.pin.split()[0], *map(str, value)) if isinstance(value, list) and value else None
    if names.flag is None or isinstance(value, bool | dict | list):
        return None
    return names.flag, str(value)


# --- keys that SGLang writes in another way ---------------------------------------------------------------------


def _chunks(value: Any, names: Names, old: Capture, new: Capture) -> Words | None:  # noqa: ARG001
    """Pieces are on by their size, and off by -1."""
    return _flag(-1 if value is False else _final(old, "scheduler.max_num_batched_tokens"), names)


def _experts(value: Any, names: Names, old: Capture, new: Capture) -> Words | None:  # noqa: ARG001
    size = 1 if value is False else lookup(old.native, f"{ROOT}{names.native}")
    return _flag(size, names) if isinstance(size, int) else None


def _host_memory(value: Any, names: Names, old: Capture, new: Capture) -> Words | None:  # noqa: ARG001
    return _flag(value // HICACHE_UNIT, names) if isinstance(value, int) and value % HICACHE_UNIT == 0 else None


def _graphs(value: Any, names: Names, old: Capture, new: Capture) -> Words | None:  # noqa: ARG001
    """A switch for both phases up to 0.5.13, a choice for decode steps since."""
    if names.native == "disable_cuda_graph":
        return ("--disable-cuda-graph",) if value == "none" else None
    return _flag("disabled" if value == "none" else value, names)


def _requests(value: Any, names: Names, old: Capture, new: Capture) -> Words | None:
    """The flag counts the requests of all data-parallel ranks, a scheduler reports its own."""
    alone = all(_final(side, "parallel.dp") in (None, 1) for side in (old, new))
    return _flag(value, names) if alone else None


def _attention(value: Any, names: Names, old: Capture, new: Capture) -> Words | None:  # noqa: ARG001
    both = re.fullmatch(r"decode (\S+), prefill (\S+)", str(value))
    if both is None:
        return _flag(value, names)
    return "--decode-attention-backend", both[1], "--prefill-attention-backend", both[2]


def _element_type(value: Any, names: Names, old: Capture, new: Capture) -> Words | None:  # noqa: ARG001
    """The flag has its own words for torch's types."""
    return _flag({"float8_e4m3fn": "fp8_e4m3", "float8_e5m2": "fp8_e5m2"}.get(str(value), value), names)


def _connector(value: Any, names: Names, old: Capture, new: Capture) -> Words | None:  # noqa: ARG001
    """Where the new side transfers at all: the roles of a deployment are no pin."""
    return _flag(value, names) if _final(new, "kv.connector") is not None else None


_SPECIAL: Mapping[str, Callable[[Any, Names, Capture, Capture], Words | None]] = {
    "scheduler.chunked_prefill": _chunks,
    "scheduler.max_num_seqs": _requests,
    "parallel.ep": _experts,
    "kv.offload_bytes": _host_memory,
    "kv.connector": _connector,
    "kv.dtype": _element_type,
    "graphs.mode": _graphs,
    "kernels.attention_backend": _attention,
}


def _final(capture: Capture, key: str) -> Any:
    setting = capture.settings.get(key)
    return plain(setting.final) if setting else None


def _pool(old: Capture, new: Capture) -> Words | None:
    """A cap on tokens takes a larger pool back to the old size; it makes no pool larger."""
    before, after = _tokens(old), _tokens(new)
    if not before or not after or after <= before:
        return None
    return "--max-total-tokens", str(before)


def _tokens(capture: Capture) -> int | None:
    tokens = number(capture.first_pool.tokens) if capture.first_pool else None
    return int(tokens) if tokens else None


# --- leaves without a canonical key -----------------------------------------------------------------------------


def _variable(name: str, old: Capture, new: Capture) -> Pin | None:
    """A variable that the new version declares as well."""
    value = lookup(old.native.get("variables"), name)
    if value in (MISSING, None) or lookup(new.native.get("variables"), name) is MISSING:
        return None
    return Pin(style="env", variable=(name, _text(value)))


GRAPHS = re.compile(r"cuda_graph_config\.(decode|prefill)\.(backend|max_bs|bs|max_seq_len|max_context_size)")


def _leaf(field: str, value: Any, new: Capture) -> Words | None:
    """The flag of a field's own name. A switch can only be set."""
    graphs = GRAPHS.fullmatch(field)
    if graphs:
        phase, part = graphs.groups()
        field = "cuda_graph_prefill_max_context" if part == "max_context_size" else f"cuda_graph_{part}_{phase}"
    flag = _flag_of(field, new)
    if flag is None or value in (MISSING, None):
        return None
    if isinstance(value, bool):
        return _switch(flag, value, new)
    if isinstance(value, list):
        return (flag, *map(_text, value)) if value else None
    return flag, json.dumps(value) if isinstance(value, dict) else _text(value)


def _flag_of(field: str, new: Capture) -> str | None:
    """What sets a field: by the new version's own parser, else by the rule, for fields that this version has."""
    own, flags = OTHER_FLAGS.get(field, f"--{field.replace('_', '-')}"), _flags(new)
    if flags is None:
        return None if NO_FLAG.fullmatch(field) or "." in field else own
    names = [name for name in flags.get(field, {}).get("names", ()) if name.startswith("--")]
    return own if own in names else next(iter(names), None)


def _switch(flag: str, value: bool, new: Capture) -> Words | None:
    if value:
        return (flag,)
    negative = f"--no-{flag.removeprefix('--')}"
    return (negative,) if _entry(negative, new) else None


# --- against the new version ------------------------------------------------------------------------------------


def _is_heard(words: Words, new: Capture) -> bool:
    """Whether the new version's own parser takes these words; where nobody asked it, the table is believed."""
    flags = [(word, after) for word, after in zip(words, (*words[1:], ""), strict=True) if word.startswith("--")]
    return _flags(new) is None or all(_takes(flag, value, new) for flag, value in flags)


def _takes(flag: str, value: str, new: Capture) -> bool:
    entry = _entry(flag, new)
    choices = entry.get("choices") if entry else None
    return entry is not None and (not isinstance(choices, list) or not choices or value in choices)


def _entry(flag: str, new: Capture) -> Mapping[str, Any] | None:
    """What the parser says of a flag: by its name, else by its field, which an older name may stand for."""
    flags = _flags(new) or {}
    by_field = flags.get(flag.removeprefix("--").replace("-", "_"))
    return next((entry for entry in flags.values() if flag in entry["names"]), by_field)


def _flags(new: Capture) -> Mapping[str, Mapping[str, Any]] | None:
    """The new version's own flags by field; ``None`` where nobody asked it: a log does not print them."""
    flags: Any = new.native.get("flags")
    return flags if isinstance(flags, dict) else None


def _text(value: Any) -> str:
    """As typed on a command line or in a variable: booleans as 1 and 0."""
    if isinstance(value, bool):
        return "1" if value else "0"
    return str(value)
