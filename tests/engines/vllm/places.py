"""What stands at a place of a capture, in words: how the tables of facts name what they expect."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from engdiff.schema.capture import Capture, Rank
from engdiff.schema.values import plain


def at(capture: Capture, place: str) -> object:
    """What stands at a place, by the words of :data:`PLACES`."""
    head, _, rest = place.partition(" ")
    return PLACES[head](capture, rest)


def _rank(capture: Capture, index: str) -> Rank:
    return capture.instances[0].ranks[int(index)]


def _ledger(capture: Capture, rest: str) -> object:
    index, _, name = rest.partition(" ")
    return next(plain(term.bytes) for term in _rank(capture, index).ledger if term.name == name)


def _pool(capture: Capture, rest: str) -> object:
    index, name = rest.split()
    return plain(getattr(_rank(capture, index).pools[0], name))


def _graphs(capture: Capture, rest: str) -> object:
    index, name = rest.split()
    return plain(getattr(_rank(capture, index).graphs, name))


def _log(capture: Capture, rest: str) -> object:
    name, _, group = rest.rpartition(" ")
    said = capture.native["log"]
    assert isinstance(said, dict)
    groups = said[name]
    assert isinstance(groups, dict)
    return groups[group]


def _config(capture: Capture, name: str) -> object:
    tree = capture.native["config"]
    assert isinstance(tree, dict)
    return tree[name]


def _failure(capture: Capture, name: str) -> object:
    assert capture.failure is not None
    return getattr(capture.failure, name)


def _number(capture: Capture, name: str) -> object:
    assert capture.failure is not None
    return plain(capture.failure.numbers[name])


PLACES: Mapping[str, Callable[[Capture, str], object]] = {
    "ledger": _ledger,
    "pool": _pool,
    "graphs": _graphs,
    "log": _log,
    "config": _config,
    "number": _number,
    "stage": lambda capture, _: _failure(capture, "stage"),
    "would": lambda capture, _: _failure(capture, "would_fit"),
    "cause": lambda capture, _: _failure(capture, "cause"),
    "failure": lambda capture, _: capture.failure,
    "final": lambda capture, key: plain(capture.settings[key].final),
    "configured": lambda capture, key: plain(capture.settings[key].configured),
    "origin": lambda capture, key: capture.settings[key].origin,
    "boot": lambda capture, name: next(plain(p.seconds) for p in capture.boot if p.name == name),
    "backend": lambda capture, _: plain(capture.runner.attention_backend),
    "candidates": lambda capture, _: plain(capture.runner.candidates),
    "version": lambda capture, _: plain(capture.identity.version),
    "model": lambda capture, _: capture.launch.model,
    "warnings": lambda capture, _: len(capture.warnings),
    "note": lambda capture, _: "\n".join(capture.notes),
    "ranks": lambda capture, _: len(capture.instances[0].ranks),
    "ended": lambda capture, _: capture.reading.starts[0].ended if capture.reading else None,
    "dp": lambda capture, index: _rank(capture, index).dp,
    "tp": lambda capture, index: _rank(capture, index).tp,
    "ep": lambda capture, index: _rank(capture, index).ep,
}
