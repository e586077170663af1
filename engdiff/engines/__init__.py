"""The engines. Adding one is adding its package and one line here.

A fork adds one entry point of group ``engdiff.engines`` in its own distribution.
"""

from __future__ import annotations

from difflib import get_close_matches
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points

from engdiff.engines.contract import Engine
from engdiff.errors import UnknownEngine

_BUILT_IN = {
    "vllm": "engdiff.engines.vllm.engine",
    "sglang": "engdiff.engines.sglang.engine",
    "trtllm": "engdiff.engines.trtllm.engine",
    "llamacpp": "engdiff.engines.llamacpp.engine",
}


@cache
def names() -> tuple[str, ...]:
    """Every engine that can be named in a reference."""
    return (*_BUILT_IN, *sorted(e.name for e in entry_points(group="engdiff.engines")))


@cache
def get(name: str) -> Engine:
    """The engine of this name. Raises :class:`~engdiff.errors.UnknownEngine` with the nearest name."""
    if name in _BUILT_IN:
        engine: Engine = import_module(_BUILT_IN[name]).ENGINE
        return engine
    for entry in entry_points(group="engdiff.engines"):
        if entry.name == name:
            forked: Engine = entry.load()
            return forked
    close = get_close_matches(name.lower().replace(".", "").replace("-", ""), names(), n=1)
    raise UnknownEngine(name, names(), close[0] if close else None)
