"""Pins: what each finding gets, and the one command that takes everything back."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from engdiff.diff.effect import no_effect
from engdiff.diff.findings import (
    DiedServing,
    FailureChanged,
    FailureMoved,
    Found,
    MemoryMoved,
    NativeMoved,
    PoolShrank,
    StartMended,
    StartRefused,
)
from engdiff.diff.sides import words_known
from engdiff.engines.contract import Engine, PinStyle
from engdiff.engines.contract import Pin as EnginePin
from engdiff.engines.layers import MISSING, lookup
from engdiff.knowledge.tables import Change
from engdiff.knowledge.versions import is_version, older
from engdiff.redact import REDACTED
from engdiff.references import HERE
from engdiff.schema.capture import Capture, Environment
from engdiff.schema.diff import Finding, Pin
from engdiff.schema.values import Unknown, Value, plain

STDIN = "-"
"""A label that names nothing that could be read again."""

STARTS = (StartRefused, StartMended, DiedServing, FailureChanged, FailureMoved)
"""Findings about the start: their advice stands in place of a pin."""


def known_change(found: Found, old: Capture, new: Capture, engine: Engine) -> Change | None:
    """What the engine's knowledge says of this very move, between these versions, on this kind of device."""
    releases = between(old, new)
    if releases is None:
        return None
    key = found.key.removeprefix(engine.native_root)
    return engine.knowledge.change(key, releases, platform_of(new), plain(found.new), known_settings(new, engine))


def between(old: Capture, new: Capture) -> tuple[str, str] | None:
    """The two releases, where both are known and the new one is not the older."""
    before, after = (plain(c.identity.version) for c in (old, new))
    if not isinstance(before, str) or not isinstance(after, str):
        return None
    if not (is_version(before) and is_version(after)) or older(after, before):
        return None
    return before, after


def known_settings(capture: Capture, engine: Engine) -> dict[str, object]:
    """What the conditions of changes look at, by canonical key and by native path."""
    leaves = {name: lookup(capture.native, f"{engine.native_root}{name}") for name in engine.knowledge.conditions}
    settings = {name: value for name, value in leaves.items() if value is not MISSING}
    return settings | {name: plain(setting.final) for name, setting in capture.settings.items()}


def platform_of(capture: Capture) -> str:
    """What the knowledge calls this kind of device; a word of no platform where no device is stated."""
    devices = capture.identity.devices
    if not devices:
        return "not stated"
    return "cuda" if any(d.kind == "gpu" for d in devices) else "cpu"


def informed(found: Found, change: Change | None, new: Capture, engine: Engine) -> Found:
    """The finding with what the engine's knowledge adds: what changed, why it matters, since when, and if it acts."""
    nothing = no_effect(found.key, new, engine)
    if nothing:
        return replace(
            found, why=f"No effect here: {nothing}", since=change.since if change else None, area="cosmetic", inert=True
        )
    if change is None:
        return found
    why = f"{sentence(change.summary)} {sentence(change.matters)}"
    return replace(found, why=why, since=change.since, area=found.area if found.asked else change.area or found.area)


def sentence(text: str) -> str:
    """With a capital and a full stop."""
    return f"{text[:1].upper()}{text[1:]}".rstrip(".") + "."


def pin_for(found: Found, change: Change | None, old: Capture, new: Capture, engine: Engine, style: PinStyle) -> Pin:
    """The pin, or why there is none. What is known of the change goes before what the flag's name suggests."""
    if isinstance(found, STARTS):
        return Pin(text=None, because=new.failure.advice if new.failure else "it starts")
    if found.inert:
        return Pin(text=None, because="it has no effect here")
    if change and change.no_pin:
        return Pin(text=None, because=change.no_pin)
    made = engine.pin(found.key, old, new, style)
    if made is not None and isinstance(found, PoolShrank):
        return Pin(text=None, because=f"{made.text()} forces the old size, where the memory for it is there")
    if made is not None:
        return pin_of(made)
    if change and change.pin:
        return known_pin(change, found.old)
    if style == "env" and engine.pin(found.key, old, new, "flags") is not None:
        return Pin(text=None, because="only a flag restores it")
    return Pin(text=None, because=_no_pin(found))


def pin_of(made: EnginePin) -> Pin:
    """An engine's pin as the document holds it."""
    return Pin(text=made.text(), style=made.style, because=made.where())


def known_pin(change: Change, old: Value | None = None) -> Pin:
    """What the knowledge says restores the old state; ``old``: the value to restore, where it is known."""
    if change.pin is None:
        return Pin(text=None, because=change.no_pin or "no flag or variable of this version restores it")
    if not change.pin_is_complete or (old is None and "{old}" in change.pin):
        return Pin(text=None, because=f"fill in: {change.pin.replace('{old}', 'OLD')}")
    text = change.pin.replace("{old}", str(plain(old) if old else ""))
    return Pin(text=text, style="flags" if text.startswith("-") else "env")


def inherited(finding: Finding, findings: Sequence[Finding]) -> Finding:
    """The finding with the pins of those it follows from."""
    sources = [f for f in findings if f.key in finding.follows_from]
    if not sources:
        return finding
    names = ", ".join(f.key for f in sources)
    pins = list(dict.fromkeys(f.pin.text for f in sources if f.pin.text))
    if not pins:
        return finding.model_copy(update={"pin": Pin(text=None, because=f"it follows from {names}, which has none")})
    style = next(f.pin.style for f in sources if f.pin.text)
    return finding.model_copy(update={"pin": Pin(text=" ".join(pins), style=style, because=f"it follows from {names}")})


def _no_pin(found: Found) -> str:
    if isinstance(found, MemoryMoved):
        return "no setting of its own; libraries and settings that moved decide it"
    if isinstance(found, NativeMoved) and plain(found.old) is None:
        return "it was unset before"
    if isinstance(found, NativeMoved):
        return "this version has no flag of that name"
    return "no flag or variable of this version restores it"


@dataclass(frozen=True)
class Commands:
    """The whole command with all pins, as the engine's users write it, and what proves it with engdiff."""

    native: str | None
    prove: str | None


@dataclass(frozen=True)
class Command:
    """What the pinned command is made of. ``old_launched``: the old label names an engine started for this."""

    old_label: str
    old_launched: bool
    pins: Sequence[Pin]


def costly_pins(findings: Sequence[Finding]) -> list[Pin]:
    """Pins of every unasked finding that costs something and follows from no other."""
    return [f.pin for f in findings if not f.asked and not f.follows_from and f.area != "cosmetic"]


def pinned_commands(old: Capture, new: Capture, engine: Engine, command: Command) -> Commands:
    """The new side's command with these pins.

    Nothing if none has one, or if the command is not known: half a command would start another engine.
    """
    flags = tuple(w for text in _texts(command.pins, "flags") for w in shlex.split(text))
    pinned = dict(w.split("=", 1) for text in _texts(command.pins, "env") for w in shlex.split(text))
    lines = _texts(command.pins, "file")
    model = new.launch.model if words_known(new) else None
    if model is None or not (flags or pinned or lines):
        return Commands(None, None)
    arguments, variables = (*new.launch.arguments, *flags), {**_variables(new), **pinned}
    native = shlex.join(engine.native_command(model, arguments))
    prefix = [f"{name}={shlex.quote(value)}" for name, value in variables.items()]
    if lines:
        return Commands(" ".join((*prefix, native, _first_the_file(lines, command.pins))), None)
    prove = None if command.old_label == STDIN else _prove(old, new, arguments, variables, command)
    return Commands(" ".join((*prefix, native)), prove)


def _prove(
    old: Capture,
    new: Capture,
    arguments: Sequence[str],
    variables: Mapping[str, str],
    command: Command,
) -> str | None:
    """The same comparison with the pins on the new side alone: words after ``--`` would reach an old side launched."""
    pinned = _launch_words(new, arguments, variables)
    again = _launch_words(old, old.launch.arguments, _variables(old)) if command.old_launched else None
    if pinned is None or (command.old_launched and again is None):
        return None
    if again is None:
        return shlex.join(("engdiff", "diff", command.old_label, *pinned))
    return f"{shlex.join(('engdiff', 'capture', *again))} | {shlex.join(('engdiff', 'diff', '-', *pinned))}"


def _launch_words(capture: Capture, arguments: Sequence[str], variables: Mapping[str, str]) -> tuple[str, ...] | None:
    """What launches this side again. Variables go as ``--env``, which holds over those of a capture."""
    reference, model = _reference(capture), capture.launch.model_given
    if reference is None or model is None:
        return None
    given = (word for name, value in variables.items() for word in ("--env", f"{name}={value}"))
    words = (*reference, "--model", model, *given)
    return (*words, "--", *arguments) if arguments else words


def _variables(capture: Capture) -> dict[str, str]:
    """What the user set, without what a capture does not keep."""
    return {k: v for k, v in capture.launch.variables.items() if REDACTED not in v}


def _first_the_file(lines: Sequence[str], pins: Sequence[Pin]) -> str:
    """A comment that a shell reads over: the command is not whole without these lines, and no word carries them."""
    where = next(pin.because for pin in pins if pin.style == "file")
    return f"# and first, as {where}: {'; '.join(lines)}"


def _texts(pins: Sequence[Pin], style: PinStyle | Literal["file"]) -> list[str]:
    """The pins of one style as typed, each once."""
    return list(dict.fromkeys(p.text for p in pins if p.text and p.style == style))


def _reference(capture: Capture) -> tuple[str, ...] | None:
    """How to launch this engine again: by image, version, or the interpreter that has it; ``None`` when not known."""
    identity, image = capture.identity, capture.launch.image
    if capture.simulated:
        return (f"{identity.engine}@{plain(identity.version)}/{capture.simulated.device or HERE}",)
    managed = isinstance(identity.environment, Environment) and identity.environment.managed
    if identity.source == "launch" and image and not managed:
        return (identity.engine, "--container", image)
    if isinstance(identity.environment, Unknown) or isinstance(identity.version, Unknown):
        return None
    if managed:
        return (f"{identity.engine}@{plain(identity.version)}",)
    return (identity.engine, "--python", identity.environment.interpreter)
