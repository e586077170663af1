"""The simple commands that a container runs, with shells and wrappers taken off."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from engdiff.deployments.container import Container
from engdiff.deployments.references import REFERENCE
from engdiff.deployments.shell_lexer import ShellUnreadable
from engdiff.deployments.shell_scope import scope_of
from engdiff.deployments.shell_script import simple_commands
from engdiff.deployments.told import told
from engdiff.deployments.wrappers import ShellCall, peel, shell_call

MAX_SHELLS = 8
"""Shells within shells that are followed."""

MAX_COMMANDS = 2_000
"""A container that runs more than this is not understood by reading it."""


@dataclass(frozen=True)
class Command:
    """One simple command.

    ``appended`` words come after the image's own entrypoint; otherwise they are the whole command.
    ``variables`` and ``unknown_variables`` are those of the container with those that the script and wrappers
    set. ``unknown`` says what in it is not known, each with the reason; that text stays in ``words`` as it was
    written. A command without words is a part of a script that was not followed. Nothing is redacted in ``words``;
    ``unknown`` is fit for a message.
    """

    words: tuple[str, ...]
    variables: Mapping[str, str]
    unknown: tuple[str, ...] = ()
    unknown_variables: Mapping[str, str] = field(default_factory=dict)
    appended: bool = False


def commands(container: Container) -> tuple[Command, ...]:
    """Every command of the container, in order; what it runs under a condition as well, loops and branches not."""
    words = (*(container.entrypoint or ()), *container.arguments)
    appended = container.entrypoint is None
    start = _Start(container.variables, container.unknown_variables)
    found: list[Command] = []
    for command in _unwrapped(words, start, appended=appended, shells=0):
        if len(found) == MAX_COMMANDS:
            found.append(Command((), {}, (f"more than {MAX_COMMANDS} commands: the rest is not followed",)))
            break
        found.append(command)
    return tuple(found)


@dataclass(frozen=True)
class _Start:
    """The variables that a program is given."""

    variables: Mapping[str, str]
    unknown: Mapping[str, str]


def _unwrapped(words: tuple[str, ...], start: _Start, *, appended: bool, shells: int) -> Iterator[Command]:
    peeled = peel(words)
    kept = {} if peeled.is_clean else {n: v for n, v in start.variables.items() if n not in peeled.removed}
    hidden = {} if peeled.is_clean else {n: w for n, w in start.unknown.items() if n not in peeled.removed}
    hidden = {n: w for n, w in hidden.items() if n not in peeled.variables}
    inner = _Start({**kept, **peeled.variables}, hidden)
    call = shell_call(peeled.words)
    if call is None:
        unknown = (*peeled.unknown, *_references(peeled.words, inner))
        still = appended and peeled.words == words  # a wrapper is a whole command
        yield Command(peeled.words, inner.variables, tuple(map(told, unknown)), inner.unknown, still)
    elif call.script is None:
        yield Command(peeled.words, inner.variables, (_not_read(call),), inner.unknown)
    elif shells == MAX_SHELLS:
        yield Command((), inner.variables, (f"more than {MAX_SHELLS} shells within shells",), inner.unknown)
    else:
        yield from _script(call, inner, shells + 1)


def _script(call: ShellCall, start: _Start, shells: int) -> Iterator[Command]:
    assert call.script is not None
    scope = scope_of(start.variables, start.unknown, call.positional)
    sets = {name: why for name, why in start.unknown.items() if " " in name}
    try:
        for simple in simple_commands(call.script, scope):
            unknown = tuple(map(told, simple.unknown))
            if not simple.words:
                yield Command((), simple.variables, unknown)
                continue
            given = _Start(simple.variables, {**simple.unknown_variables, **sets})
            for inner in _unwrapped(simple.words, given, appended=False, shells=shells):
                yield Command(inner.words, inner.variables, (*unknown, *inner.unknown), inner.unknown_variables)
    except ShellUnreadable as error:
        yield Command((), start.variables, (f"the shell script cannot be read: {error}",))


def _not_read(call: ShellCall) -> str:
    return f"`{told(call.file)}` is a script in the image, which is not read"


def _references(words: tuple[str, ...], start: _Start) -> Iterator[str]:
    """``$(NAME)`` that stayed because the variable's value is not in the file."""
    for word in words:
        for match in REFERENCE.finditer(word):
            if match["name"] in start.unknown:
                yield f"`{match[0]}`: {start.unknown[match['name']]}"
