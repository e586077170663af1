"""The processes of an engine, named by their command lines, and which step of a request each owns."""

from __future__ import annotations

from collections.abc import Sequence

from engdiff.process.supervise import ProcessFact
from engdiff.schema.capture import Process, Step
from engdiff.schema.values import Known

Role = tuple[str, str, tuple[Step, ...]]
"""A mark in the command line, the name of the process, and its steps."""


def processes(facts: Sequence[ProcessFact], roles: Sequence[Role]) -> tuple[Process, ...]:
    """Each process by the first role whose mark it bears; one that bears none keeps its own name."""
    named = {fact.pid: _role(fact, roles) for fact in facts}
    return tuple(
        Process(
            name=named[fact.pid][0],
            parent=named[fact.parent_pid][0] if fact.parent_pid in named else None,
            threads=Known(value=fact.threads, basis="measured"),
            steps=named[fact.pid][1],
        )
        for fact in facts
    )


def _role(fact: ProcessFact, roles: Sequence[Role]) -> tuple[str, tuple[Step, ...]]:
    command = " ".join(fact.command)
    for mark, name, steps in roles:
        if mark in fact.title or mark in command:
            return name, steps
    return fact.name, ()
