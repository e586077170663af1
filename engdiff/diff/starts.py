"""How the two starts ended: what came up and does not any more, and how two failures differ."""

from __future__ import annotations

from collections.abc import Iterator

from engdiff.diff.findings import DiedServing, FailureChanged, FailureMoved, Found, StartMended, StartRefused
from engdiff.diff.settings import key_moved
from engdiff.diff.sides import LOADED, ending
from engdiff.diff.tolerance import moved
from engdiff.knowledge.settings import registry
from engdiff.schema.capture import Capture, Failure
from engdiff.schema.diff import NotCompared
from engdiff.schema.values import Known, Unknown, Value, plain
from engdiff.schema.wording import show

UNITS = ("bytes", "tokens", "seconds", "blocks")
"""Last words of a number's name that are its unit."""


def start_found(old: Capture, new: Capture) -> Iterator[Found]:
    """The start that is refused or mended, the server that died, or what moved between two failures."""
    before, after = ending(old), ending(new)
    if before == after == "failed":
        yield from _failures(old, new)
    elif after == "failed":
        yield start_finding(StartRefused, old, new)
    elif after == "died serving" and before != "died serving":
        yield start_finding(DiedServing, old, new)
    elif before in ("failed", "died serving") and after == "ready":
        yield start_finding(StartMended, old, new)


def start_not_compared(old: Capture, new: Capture) -> Iterator[NotCompared]:
    """A log that breaks off does not show how the start ended, and that is told."""
    for side, capture in (("old", old), ("new", new)):
        if ending(capture) == "not shown":
            yield NotCompared(what="start-up", because=f"the log of the {side} side breaks off before its end")


def start_finding(cls: type[Found], old: Capture, new: Capture, titles: tuple[str, str] = ("", "")) -> Found:
    """A finding about the start, of this kind. ``titles``: the two engines, where they are different ones."""
    failure = new.failure or old.failure
    assert failure is not None, "only called where one side failed"
    return cls(
        key="start",
        name=_called(new),
        old=said(old),
        new=said(new),
        area="startup",
        why=_serves(titles) if new.failure is None else _why(new.failure),
        evidence=failure.last_words[-1:],
        titles=titles,
    )


def _serves(titles: tuple[str, str]) -> str:
    return f"{titles[1]} serves." if titles[1] else "It serves again."


def _why(failure: Failure) -> str:
    """What it costs, how far it came, and the numbers of the message."""
    text = "Nothing is served any more" if failure.stage == LOADED else "Nothing is served"
    if failure.stage not in (LOADED, "start"):
        text += f": it stopped at the stage “{failure.stage}”"
    numbers = ", ".join(f"{_words(name)} {show(v, _unit(name))}" for name, v in _known(failure).items())
    parts = [text, numbers, failure.would_fit or ""]
    return " ".join(_sentence(part) for part in parts if part)


def _known(failure: Failure) -> dict[str, Value]:
    return {name: value for name, value in failure.numbers.items() if isinstance(value, Known)}


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}".rstrip(".") + "."


def _called(capture: Capture) -> str:
    return f"{capture.identity.engine} {plain(capture.identity.version) or ''}".strip()


def said(capture: Capture) -> Known | Unknown:
    """How the start ended, in words."""
    if capture.failure is not None:
        return Known(value=_cause(capture.failure), basis="measured")
    if ending(capture) == "not shown":
        return Unknown(because="the log breaks off before its end")
    return Known(value="it started", basis="measured")


def _cause(failure: Failure) -> str:
    return failure.cause or failure.exit


# --- two failures -----------------------------------------------------------------------------------------------


def _failures(old: Capture, new: Capture) -> Iterator[Found]:
    """Another cause, or the same with other numbers."""
    before, after = old.failure, new.failure
    assert before is not None, "only called for two failures"
    assert after is not None, "only called for two failures"
    if before.cause and after.cause and _shape(before.cause) != _shape(after.cause):
        yield FailureChanged(
            key="start",
            name=_called(new),
            old=said(old),
            new=said(new),
            area="startup",
            why=_why(after),
            evidence=after.last_words[-1:],
        )
        return
    for name in before.numbers.keys() & after.numbers.keys():
        a, b = before.numbers[name], after.numbers[name]
        if moved(a, b) and not _is_setting(name, old, new):
            yield _number(name, a, b, old, new)


def _number(name: str, a: Value, b: Value, old: Capture, new: Capture) -> Found:
    failure = new.failure
    assert failure is not None, "only called for two failures"
    return FailureMoved(
        key=f"start.{name}",
        name=f"{_called(new)} still does not start; {_words(name)} moved",
        old=a,
        new=b,
        unit=_unit(name),
        area="startup",
        why=" ".join(_sentence(part) for part in (_cause(failure), failure.would_fit or "") if part),
        evidence=failure.last_words[-1:],
        follows_from=tuple(key for key in _asked_for(failure) if key_moved(key, old, new)),
    )


def _asked_for(failure: Failure) -> tuple[str, ...]:
    """Canonical settings among the numbers of the message: what it needs follows from them."""
    names = {key.rpartition(".")[2]: key for key in registry()}
    return tuple(names[name] for name in failure.numbers if name in names)


def _is_setting(name: str, old: Capture, new: Capture) -> bool:
    """Whether the number is a setting that both sides have, which is told by itself."""
    return any(key.rpartition(".")[2] == name and key in old.settings and key in new.settings for key in registry())


def _shape(text: str) -> str:
    """A cause without its numbers."""
    return " ".join("".join("" if c.isdigit() or c in ",." else c for c in text).split())


def _unit(name: str) -> str:
    last = name.rpartition("_")[2]
    return last if last in UNITS else ""


def _words(name: str) -> str:
    """``needed`` for ``needed_bytes``."""
    stem, _, last = name.rpartition("_")
    return (stem if stem and last in UNITS else name).replace("_", " ")
