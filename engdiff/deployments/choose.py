"""The one server of a deployment file, or the error that says what was found instead."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from engdiff.deployments.command import Command, commands
from engdiff.deployments.container import Container
from engdiff.deployments.told import told, told_words
from engdiff.errors import NoServerThere, NoSuchService, SeveralServers

Known = TypeVar("Known")

RecogniseAll = Callable[[str, Command], Known | None]
"""Asks every engine about an image and a command; ``None`` when no engine's server is started."""

MANY = 8
"""Containers and commands that an error lists before it stops."""


@dataclass(frozen=True)
class Chosen(Generic[Known]):
    """A container, the command in it that starts a server, and what the engine said of it."""

    container: Container
    command: Command
    served: Known


def choose(
    containers: Sequence[Container], recognise_all: Callable[[str, Command], Known | None], wanted: str | None
) -> Chosen[Known]:
    """The only server among the containers, or among those called ``wanted``.

    ``wanted`` is a container's name, its ``where``, or the name of the object it belongs to.
    """
    path = containers[0].path if containers else "deployment"
    looked_at = [c for c in containers if wanted is None or wanted in _names(c)]
    if not looked_at and wanted is not None:
        raise NoSuchService(path, told(wanted), _listed([told(name) for name in _distinct(containers)]))
    found = [chosen for container in looked_at for chosen in _servers(container, recognise_all)]
    if not found:
        raise NoServerThere(path, _listed([_described(c) for c in looked_at]))
    if len(found) > 1:
        raise SeveralServers(path, _listed([told(name) for name in _distinct([c.container for c in found])]))
    return found[0]


def _servers(container: Container, recognise_all: Callable[[str, Command], Known | None]) -> list[Chosen[Known]]:
    found: list[Chosen[Known]] = []
    for command in commands(container):
        served = recognise_all(container.image, command) if command.words or command.appended else None
        if served is not None:
            found.append(Chosen(container, command, served))
    return found


def _names(container: Container) -> tuple[str, ...]:
    owner = container.where.partition(":")[0]
    return container.name, container.where, owner, container.owner


def _distinct(containers: Sequence[Container]) -> list[str]:
    """A name for each by which ``--service`` finds it and no other: the shortest that is its own."""
    columns: list[Mapping[str, int]] = [Counter(_names(c)[n] for c in containers) for n in (0, 3, 1)]
    return [_own(c, columns) for c in containers]


def _own(container: Container, columns: Sequence[Mapping[str, int]]) -> str:
    names = [_names(container)[n] for n in (0, 3, 1)]
    unique = (name for name, column in zip(names, columns, strict=True) if column[name] == 1)
    return next(unique, container.where)


def _described(container: Container) -> str:
    """A container, its image and its commands, in a few words."""
    image = told(container.image) or "no image"
    parts = [told_words(c.words) if c.words else "; ".join(c.unknown) for c in commands(container)[:MANY]]
    what = ", ".join(part for part in parts if part) or "the image's own command"
    return f"{told(container.name)} ({image}: {what})"


def _listed(names: list[str]) -> list[str]:
    more = len(names) - MANY
    return names if more <= 0 else [*names[:MANY], f"and {more} more"]
