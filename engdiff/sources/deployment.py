"""A compose or Kubernetes file becomes what to launch: engine, version, model, words and variables."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from engdiff import engines
from engdiff.deployments.choose import Chosen, choose
from engdiff.deployments.command import Command
from engdiff.deployments.containers import containers
from engdiff.deployments.served import Served
from engdiff.deployments.told import told, told_words
from engdiff.errors import UsageError
from engdiff.references import EngineReference
from engdiff.sources.acquire import Wishes
from engdiff.sources.order import Progress

YAML_ENDINGS = (".yaml", ".yml")

Recognised = tuple[str, Served]
"""Engine and what it says of the command."""


def served(
    path: Path, service: str | None, given: EngineReference | None, wishes: Wishes, progress: Progress
) -> tuple[EngineReference, Wishes]:
    """What to launch, with what the user said himself before what the file says. Notes go to ``progress``."""
    chosen = choose(containers(path, os.environ), _recognise, service)
    engine, found = chosen.served
    if given and given.engine != engine:
        raise UsageError(
            f"{path}: {chosen.container.where} runs {engine}, not {given.engine}", f"say {engine}, or no engine at all"
        )
    reference = EngineReference(engine, given.version if given and given.version else found.version)
    if not wishes.arguments:
        _tell(path, chosen, reference, progress, in_image=wishes.container is not None)
    return reference, replace(
        wishes,
        model=wishes.model or found.model,
        arguments=wishes.arguments or found.arguments,
        variables={**chosen.command.variables, **wishes.variables},
        image=chosen.container.image or None,
    )


def _recognise(image: str, command: Command) -> Recognised | None:
    for name in engines.names():
        found = engines.get(name).served(image, command.words, command.variables, appended=command.appended)
        if found is not None:
            return name, found
    return None


def _tell(
    path: Path, chosen: Chosen[Recognised], reference: EngineReference, progress: Progress, *, in_image: bool
) -> None:
    """What was read from the file, and what it does not tell. Raises where the command itself is not known."""
    engine, found = chosen.served
    where = f"{path}: {chosen.container.where}"
    if chosen.command.unknown:
        raise UsageError(
            f"{where}: a part of the command is only known inside the container: {'; '.join(chosen.command.unknown)}",
            "give the words yourself: engdiff capture ENGINE --model M -- WORDS",
        )
    progress(f"note: {where}: {engine}, model {told(found.model or 'not named')}: {told_words(found.arguments)}")
    if reference.version is None and not in_image:
        progress(
            f"note: the version is not known ({found.version_because}); the newest is taken: name one with {engine}@"
        )
    for name, why in chosen.command.unknown_variables.items():
        how = "" if " " in name else f"; set it with --env {name}=VALUE"
        progress(f"note: {name} is not known here: {why}{how}")
    for note in chosen.container.notes:
        progress(f"note: {note}")
