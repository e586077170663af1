"""From what a user calls a setting to the key under which engdiff knows it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from engdiff.engines.contract import Engine
from engdiff.engines.layers import MISSING, lookup
from engdiff.errors import UsageError
from engdiff.knowledge.decisions import decisions, short_names
from engdiff.knowledge.settings import registry
from engdiff.schema.capture import Capture


def key_of(text: str, engines: Sequence[Engine], newest: Capture | None) -> str:
    """The key of a canonical name, a flag, a short name, or a path of the engine's own configuration.

    Raises :class:`~engdiff.errors.UsageError` for what is none of them.
    """
    wanted = text.strip()
    if wanted in registry() or wanted in decisions():
        return wanted
    if wanted in short_names():
        return short_names()[wanted]
    if by_flag := flagged(wanted, engines):
        return by_flag
    roots = ("", *(engine.native_root for engine in engines), "variables.")
    for path in (f"{root}{wanted}" for root in roots):
        if newest is not None and lookup(newest.native, path) is not MISSING:
            return path
    raise unknown(text)


def flagged(text: str, engines: Iterable[Engine]) -> str | None:
    """The canonical key of a flag or variable of some engine: ``--max-num-seqs``, ``max_num_seqs``."""
    wanted = text.lstrip("-").replace("_", "-").lower()
    for engine in engines:
        for version in _versions(engine):
            for key, names in engine.knowledge.names(version).items():
                spoken = (names.flag, names.arg, names.variable)
                if any(one and one.lstrip("-").replace("_", "-").lower() == wanted for one in spoken):
                    return key
    return None


def _versions(engine: Engine) -> tuple[str, ...]:
    """The newest and the oldest release: a flag that went was there at first."""
    known = engine.known_versions(engine.distributions[0])
    return tuple(dict.fromkeys((known[0], known[-1]))) if known else ()


def unknown(text: str) -> UsageError:
    """No such setting, with what is nearest."""
    near = get_close_matches(text, [*registry(), *short_names()], n=4, cutoff=0.4)
    return UsageError(
        f"`{text}`: no setting, flag or decision of this name is known",
        f"near: {', '.join(near)}" if near else "engdiff explain lists them all",
    )
