"""What each side can say: a launch shows everything; of a log or a server, what it leaves out proves nothing."""

from __future__ import annotations

from typing import Literal

from engdiff.schema.capture import Capture, Reading

WHOLE = frozenset({"launch", "simulate", "profile"})
"""Sources that show the whole configuration: what they do not have is not there."""

LOADED = "serving"
"""Stage of a failure that came after the server was up."""

READ = {"log": "a log", "attach": "a running server", "simulate": "a simulation", "profile": "a profile"}

Ending = Literal["ready", "failed", "died serving", "not shown"]


def whole(capture: Capture) -> bool:
    """Whether what this side does not state is not there, rather than not told."""
    return capture.identity.source in WHOLE


def both_whole(old: Capture, new: Capture) -> bool:
    """Whether a thing that one side alone has was added or removed."""
    return whole(old) and whole(new)


def words_known(capture: Capture) -> bool:
    """Whether the command and the variables of this side are known."""
    return capture.launch.unknown_because is None


def ending(capture: Capture) -> Ending:
    """How the start ended, as far as this side shows it."""
    if capture.failure is not None:
        return "died serving" if capture.failure.stage == LOADED else "failed"
    breaks_off = capture.reading is not None and _ended(capture.reading) == "breaks off"
    return "not shown" if breaks_off else "ready"


def _ended(reading: Reading) -> str | None:
    return reading.starts[reading.chosen].ended if 0 <= reading.chosen < len(reading.starts) else None


def resolved(capture: Capture) -> bool:
    """Whether the settings that are known here are what the engine made of them: a log prints no others."""
    return ending(capture) != "failed" or not whole(capture)


def read_from(capture: Capture) -> str | None:
    """Where the capture comes from, in words; ``None`` for a launch."""
    what = READ.get(capture.identity.source)
    reading = capture.reading
    if what is None or reading is None or len(reading.starts) < 2 or len(reading.files) > 1:
        return what
    return f"start {reading.chosen + 1} of {len(reading.starts)} in {what}"


def silent_because(side: str, capture: Capture, what: str = "it") -> str:
    """Why this side does not state a thing: ``the old side was read from a log, which does not state it``."""
    source = READ.get(capture.identity.source)
    if source is None:
        return f"the {side} side does not state {what}"
    return f"the {side} side was read from {source}, which does not state {what}"
