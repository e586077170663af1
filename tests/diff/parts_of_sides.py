"""Sides as logs and failures leave them."""

from __future__ import annotations

from typing import Any, Literal

from engdiff.schema.capture import Capture, LogStart, Reading, Setting
from engdiff.schema.values import Known, Unknown, Value
from tests import factories as make
from tests.factories import Change

SILENT = Unknown(because="a log does not state it")
READING = Reading(
    files=("boot.log",),
    lines=400,
    recognised="9 kinds of its lines",
    starts=(LogStart(first_line=1, last_line=400, ended="ready"),),
    chosen=0,
)


def from_log(capture: Capture) -> Capture:
    """What a log of this very start states: no machine, no command; settings and sizes as far as it prints them."""
    launch: dict[str, Any] = {
        "model": None,
        "model_given": None,
        "arguments": (),
        "command": (),
        "native_command": (),
        "variables": {},
    }
    changed = make.both(
        make.with_identity(source="log", host=SILENT, environment=SILENT, driver=SILENT),
        make.with_launch(**launch, unknown_because="a log does not state it"),
    )(capture)
    return changed.model_copy(
        update={"reading": READING, "native": {"log": {"kv_cache_size": {"tokens": 1, "line": 2}}}, "warnings": ()}
    )


def ended(how: Literal["ready", "failed", "breaks off"], *, of: int = 1) -> Change:
    """A log of ``of`` starts, of which the last ended so."""
    starts = tuple(LogStart(first_line=n, last_line=n, ended="ready") for n in range(1, of))
    last = LogStart(first_line=of, last_line=of, ended=how)
    reading = READING.model_copy(update={"starts": (*starts, last), "chosen": of - 1})
    return lambda capture: capture.model_copy(update={"reading": reading})


def without_words(setting: Setting) -> Setting:
    """As a log states it that does not say who wrote it."""
    return setting.model_copy(update={"configured": None, "origin": None})


def stated(value: Any, low: float | None = None, high: float | None = None) -> Setting:
    """A setting as a log prints it, rounded."""
    known = Known(value=value, low=low, high=high, basis="measured")
    return Setting(resolved=known, effective=SILENT, origin=None)


def failed_with(cause: str, *, stage: str = "start", would_fit: str | None = None, **numbers: Value) -> Change:
    """A start that ended with these numbers in its message."""

    def apply(capture: Capture) -> Capture:
        made = make.failed(cause)(capture)
        assert made.failure is not None
        more = {"stage": stage, "would_fit": would_fit, "numbers": numbers}
        return made.model_copy(update={"failure": made.failure.model_copy(update=more)})

    return apply


def died_serving() -> Change:
    """A server that came up and ended later: everything was resolved, and is still known."""

    def apply(capture: Capture) -> Capture:
        failure = failed_with("out of memory: a request of 40,000 tokens", stage="serving")(capture).failure
        return capture.model_copy(update={"failure": failure})

    return apply
