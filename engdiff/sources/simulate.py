"""Simulate: run an engine's own configuration code for a device that need not be there, and read what it decided."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from pydantic import JsonValue

from engdiff import errors
from engdiff.engines.contract import (
    Declared,
    Engine,
    Observed,
    Scenario,
    Simulation,
    SimulationPlan,
    SimulationRequest,
)
from engdiff.environments.managed import provide
from engdiff.environments.recipe import Environment as Installed
from engdiff.environments.store import cache_folder
from engdiff.environments.wheel import Tree, tree
from engdiff.knowledge.gpus import Pretended
from engdiff.machine import look
from engdiff.models.shapes import local_config, make_shape, shape, shapes
from engdiff.models.tiny import TINY, make_tiny
from engdiff.process.supervise import EngineCommand, running
from engdiff.redact import redact_text, redact_variables, redact_words
from engdiff.references import ANY
from engdiff.schema.capture import Capture, Launch, Simulated
from engdiff.schema.values import Unknown
from engdiff.sources.base import environment_of, redacted, simulated_capture
from engdiff.sources.failure import LAST_WORDS, last_words
from engdiff.sources.order import Progress


@dataclass(frozen=True)
class Ask:
    """One command line to resolve: the model as the user wrote it, and the words after ``--``.

    ``device``: what to pretend; ``None`` for this machine as it is.
    """

    device: Pretended | None
    model: str
    arguments: tuple[str, ...]


def simulate(
    engine: Engine,
    version: str,
    ask: Ask,
    variables: Mapping[str, str],
    progress: Progress,
) -> Capture:
    """What the engine's configuration code makes of a command line.

    Raises EngineFailed with the engine's own words when it refuses the command line.
    """
    (made,) = simulate_all(engine, version, (ask,), variables, progress)
    if isinstance(made, errors.EngineFailed):
        raise made
    return made


def simulate_all(
    engine: Engine,
    version: str,
    asks: Sequence[Ask],
    variables: Mapping[str, str],
    progress: Progress,
) -> list[Capture | errors.EngineFailed]:
    """What it makes of each of several command lines on one kind of GPU, which share the time that its imports take."""
    if len({ask.device.gpu.key if ask.device else None for ask in asks}) != 1:
        raise ValueError("one run pretends one kind of GPU")
    if engine.declared:
        return [declared_capture(engine, engine.declared, version, ask) for ask in asks]
    simulation = simulation_of(engine)
    answering = simulation.answering(version, asks[0].device, look())
    environment = provide(answering.recipe, progress=progress)
    sources = tree(*answering.wheel, progress) if answering.wheel else None
    folder = Path(tempfile.mkdtemp(prefix="engdiff-"))
    try:
        run = _Run(engine, simulation, version, tuple(asks), variables, environment, sources, folder)
        return run.captures(progress)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def declared_capture(engine: Engine, declared: Declared, version: str, ask: Ask) -> Capture:
    """Static defaults as a capture. Raises UsageError for a release whose sources were not read."""
    if version not in declared.versions:
        raise errors.UsageError(
            f"{engine.title} {version}: its defaults were not read, and engdiff cannot run it",
            f"read: {', '.join(declared.versions)}",
        )
    launch = Launch(
        model=None, model_given=ask.model or None, arguments=(), command=(), native_command=(), variables={}
    )
    unknown = Unknown(because="nothing was run: these are the defaults that its sources declare")
    base = simulated_capture(engine.name, version, launch, unknown, None)
    return declared.capture(version, base).model_copy(update={"simulated": DECLARED})


DECLARED = Simulated(device=None, wheel=None, sha256=None, stand_ins=(), libraries={})
"""Nothing answered: a person read sources."""


def simulation_of(engine: Engine) -> Simulation:
    """How this engine is simulated. Raises UsageError for one that is not."""
    if engine.simulation is None:
        raise errors.UsageError(
            f"{engine.title} cannot be simulated by this version of engdiff",
            f"launch it (engdiff capture {engine.name}), or read its log",
        )
    return engine.simulation


@dataclass(frozen=True)
class _Run:
    """One run of the configuration code, in a folder of its own."""

    engine: Engine
    simulation: Simulation
    version: str
    asks: tuple[Ask, ...]
    variables: Mapping[str, str]
    environment: Installed
    sources: Tree | None
    folder: Path

    @property
    def device(self) -> Pretended | None:
        """The kind of GPU that all are asked for; how many of it there are is of each scenario."""
        return self.asks[0].device

    def called(self, ask: Ask) -> str:
        """What was asked, as an error names it."""
        where = f"a pretended {ask.device.text}" if ask.device else "this machine"
        return f"{self.engine.title} {self.version} on {where}"

    def captures(self, progress: Progress) -> list[Capture | errors.EngineFailed]:
        """Run it, and understand what it wrote of each command line."""
        models = [_model(ask.model) if self.simulation.by_device else Path(ask.model or ANY) for ask in self.asks]
        output = self.folder / "output"
        output.mkdir()
        request = SimulationRequest(
            version=self.version,
            interpreter=self.environment.python,
            sources=self.sources.folder if self.sources else None,
            device=self.device,
            scenarios=tuple(
                Scenario(f"asked-{number}", str(model), ask.arguments, ask.device.count if ask.device else None)
                for number, (model, ask) in enumerate(zip(self._words_of(models), self.asks, strict=True))
            ),
            variables=self.variables,
            folder=self.folder,
            output=output,
        )
        plan = self.simulation.plan(request)
        progress(f"{self.called(self.asks[0])}: resolving its configuration")
        log = self._run(plan, models[0].parent if self.simulation.by_device else self.folder)
        return [
            self._understood(ask, scenario, plan, _files(output / scenario.name), log)
            for ask, scenario in zip(self.asks, request.scenarios, strict=True)
        ]

    def _words_of(self, models: Sequence[Path]) -> list[Path]:
        """Models by name in the folder of the first, so that no path of this machine gets into what is decided."""
        if not self.simulation.by_device:
            return list(models)
        return [model.relative_to(models[0].parent) for model in models]

    def _understood(
        self, ask: Ask, scenario: Scenario, plan: SimulationPlan, files: Mapping[str, JsonValue], log: Path
    ) -> Capture | errors.EngineFailed:
        """The capture of one command line, or why it was refused."""
        try:
            self._raise_failure(ask, files, log)
        except errors.EngineFailed as refused:
            return refused
        observed = Observed.by_probe(
            files,
            self.version,
            self.environment.distribution,
            model=scenario.model,
            arguments=ask.arguments,
            device="cuda" if ask.device else "cpu",
            variables=plan.read_variables,
            added=plan.added,
        )
        made = self.simulation.capture(observed, self._base(ask, scenario.model, plan))
        made = made.model_copy(update={"simulated": self._simulated(ask, files)})
        return redacted(Capture.model_validate(_evidence(made.model_dump(mode="json"))))

    def _run(self, plan: SimulationPlan, place: Path) -> Path:
        """Run it to its end; the log of what it printed."""
        log = self.folder / "engine.log"
        command = EngineCommand(argv=plan.argv, env=dict(plan.environ), cwd=place, log=log, scratch=self.folder)
        with running(command) as process:
            result = process.wait_until(lambda: False, plan.limit_seconds, lambda _: None)
        if result.state != "died":
            raise errors.EngineFailed(
                f"{self.called(self.asks[0])}: its configuration code did not end in {plan.limit_seconds:.0f} s",
                cause=None,
                advice="try again on a quiet machine",
                last_words=last_words(log),
                log=None,
            )
        return log

    def _raise_failure(self, ask: Ask, files: Mapping[str, JsonValue], log: Path) -> None:
        """Say so, in the engine's own words, when it refused the command line or fell."""
        failed = files.get("failure")
        if isinstance(failed, dict):
            text = "\n".join(_texts(failed.get("last")))
            cause = self.engine.cause(text, "")
            raise errors.EngineFailed(
                f"{self.called(ask)}: refused: {cause.sentence if cause else redact_text(str(failed.get('message')))}",
                cause=cause.sentence if cause else None,
                advice=cause.advice if cause and cause.advice else "check the words after --, the model and the count",
                last_words=tuple(redact_text(line) for line in text.splitlines()[-LAST_WORDS:]),
                log=None,
            )
        if "simulation" not in files:
            raise errors.EngineFailed(
                f"{self.called(ask)}: its configuration code fell",
                cause=None,
                advice="this release may need other libraries than those that answered; please report it",
                last_words=last_words(log),
                log=None,
            )

    def _base(self, ask: Ask, word: str, plan: SimulationPlan) -> Capture:
        native = self.engine.native_command(word, ask.arguments) if ask.model else ()
        launch = Launch(
            model=word if ask.model else None,
            model_given=ask.model or None,
            arguments=redact_words(ask.arguments),
            command=(),
            native_command=redact_words(native),
            variables=redact_variables(plan.read_variables),
            added_by_engdiff=dict(plan.added),
        )
        environment = environment_of(self.environment, self._because())
        return simulated_capture(self.engine.name, self.version, launch, environment, ask.device)

    def _because(self) -> str:
        """Whose code was run by whose libraries."""
        if self.sources is None:
            return "its own configuration code, nothing started"
        return f"its libraries ran the configuration code of {self.sources.wheel}, nothing started"

    def _simulated(self, ask: Ask, files: Mapping[str, JsonValue]) -> Simulated:
        said = files["simulation"]
        told = said if isinstance(said, dict) else {}
        return Simulated(
            device=ask.device.text if ask.device else None,
            wheel=self.sources.wheel if self.sources else None,
            sha256=self.sources.sha256 if self.sources else None,
            stand_ins=_texts(told.get("notes")),
            libraries=told.get("libraries") or {},  # type: ignore[arg-type]
        )


def _model(given: str) -> Path:
    """The model's folder, made where only its shape is known."""
    folder = cache_folder() / "models"
    if given == TINY:
        return make_tiny(folder).hf
    known = shape(given)
    return make_shape(known, folder) if known else local_config(_existing(given), folder)


def _existing(given: str) -> Path:
    """The user's model folder or configuration file. A simulation fetches nothing from a hub."""
    path = Path(given).expanduser()
    if not path.exists():
        near = get_close_matches(given.lower(), shapes(), n=3, cutoff=0.4) or list(shapes())[:3]
        raise errors.UsageError(
            f"`{given}`: neither a model whose shape engdiff ships nor a folder or config.json",
            f"shapes: {', '.join(near)}, ...; of any other model the configuration is enough: --model path/config.json",
        )
    return path


def _texts(found: JsonValue) -> tuple[str, ...]:
    return tuple(map(str, found)) if isinstance(found, list) else ()


def _files(folder: Path) -> dict[str, JsonValue]:
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))}


def _evidence(tree: JsonValue) -> JsonValue:
    """What a probe would have read in a running engine was read in a simulated one."""
    if isinstance(tree, list):
        return [_evidence(one) for one in tree]
    if not isinstance(tree, dict):
        return tree
    changed = {name: _evidence(one) for name, one in tree.items()}
    if changed.get("source") == "probe" and "where" in changed:
        changed["source"] = "simulation"
    return changed
