"""Simulate: run an engine's own configuration code for a device that need not be there, and read what it decided."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from pydantic import JsonValue

from engdiff import errors
from engdiff.engines.contract import (
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
from engdiff.schema.capture import Capture, Launch, Simulated
from engdiff.sources.base import environment_of, redacted, simulated_capture
from engdiff.sources.failure import LAST_WORDS, last_words
from engdiff.sources.order import Progress


@dataclass(frozen=True)
class Ask:
    """One command line to resolve: the model as the user wrote it, the words after ``--``, and the variables."""

    model: str
    arguments: tuple[str, ...]
    variables: Mapping[str, str]


def simulate(engine: Engine, version: str, device: Pretended | None, ask: Ask, progress: Progress) -> Capture:
    """What the engine's configuration code makes of a command line.

    Raises EngineFailed with the engine's own words when it refuses the command line.
    """
    simulation = simulation_of(engine)
    answering = simulation.answering(version, device, look())
    environment = provide(answering.recipe, progress=progress)
    sources = tree(*answering.wheel, progress) if answering.wheel else None
    folder = Path(tempfile.mkdtemp(prefix="engdiff-"))
    try:
        run = _Run(engine, simulation, version, device, ask, environment, sources, folder)
        return run.capture(progress)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


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
    device: Pretended | None
    ask: Ask
    environment: Installed
    sources: Tree | None
    folder: Path

    @property
    def called(self) -> str:
        where = f"a pretended {self.device.text}" if self.device else "this machine"
        return f"{self.engine.title} {self.version} on {where}"

    def capture(self, progress: Progress) -> Capture:
        """Run it, and understand what it wrote."""
        place, word = _model(self.ask.model)
        output = self.folder / "output"
        output.mkdir()
        request = SimulationRequest(
            version=self.version,
            interpreter=self.environment.python,
            sources=self.sources.folder if self.sources else None,
            device=self.device,
            scenarios=(Scenario("asked", word, self.ask.arguments),),
            variables=self.ask.variables,
            folder=self.folder,
            output=output,
        )
        plan = self.simulation.plan(request)
        progress(f"{self.called}: resolving its configuration")
        log = self._run(plan, place)
        files = _files(output / "asked")
        self._raise_failure(files, log)
        observed = Observed.by_probe(
            files,
            self.version,
            self.environment.distribution,
            model=word,
            arguments=self.ask.arguments,
            device="cuda" if self.device else "cpu",
            variables=plan.read_variables,
            added=plan.added,
        )
        made = self.simulation.capture(observed, self._base(word, plan))
        made = made.model_copy(update={"simulated": self._simulated(files)})
        return redacted(Capture.model_validate(_evidence(made.model_dump(mode="json"))))

    def _run(self, plan: SimulationPlan, place: Path) -> Path:
        """Run it to its end; the log of what it printed."""
        log = self.folder / "engine.log"
        command = EngineCommand(argv=plan.argv, env=dict(plan.environ), cwd=place, log=log, scratch=self.folder)
        with running(command) as process:
            result = process.wait_until(lambda: False, plan.limit_seconds, lambda _: None)
        if result.state != "died":
            raise errors.EngineFailed(
                f"{self.called}: its configuration code did not end in {plan.limit_seconds:.0f} s",
                cause=None,
                advice="try again on a quiet machine",
                last_words=last_words(log),
                log=None,
            )
        return log

    def _raise_failure(self, files: Mapping[str, JsonValue], log: Path) -> None:
        """Say so, in the engine's own words, when it refused the command line or fell."""
        failed = files.get("failure")
        if isinstance(failed, dict):
            text = "\n".join(_texts(failed.get("last")))
            cause = self.engine.cause(text, "")
            raise errors.EngineFailed(
                f"{self.called}: refused: {cause.sentence if cause else redact_text(str(failed.get('message')))}",
                cause=cause.sentence if cause else None,
                advice=cause.advice if cause and cause.advice else "check the words after --, the model and the count",
                last_words=tuple(redact_text(line) for line in text.splitlines()[-LAST_WORDS:]),
                log=None,
            )
        if "simulation" not in files:
            raise errors.EngineFailed(
                f"{self.called}: its configuration code fell",
                cause=None,
                advice="this release may need other libraries than those that answered; please report it",
                last_words=last_words(log),
                log=None,
            )

    def _base(self, word: str, plan: SimulationPlan) -> Capture:
        native = self.engine.native_command(word, self.ask.arguments)
        launch = Launch(
            model=word,
            model_given=self.ask.model,
            arguments=redact_words(self.ask.arguments),
            command=(),
            native_command=redact_words(native),
            variables=redact_variables(plan.read_variables),
            added_by_engdiff=dict(plan.added),
        )
        environment = environment_of(self.environment, self._because())
        return simulated_capture(self.engine.name, self.version, launch, environment, self.device)

    def _because(self) -> str:
        """Whose code was run by whose libraries."""
        if self.sources is None:
            return "its own configuration code, nothing started"
        return f"its libraries ran the configuration code of {self.sources.wheel}, nothing started"

    def _simulated(self, files: Mapping[str, JsonValue]) -> Simulated:
        said = files["simulation"]
        told = said if isinstance(said, dict) else {}
        return Simulated(
            device=self.device.text if self.device else None,
            wheel=self.sources.wheel if self.sources else None,
            sha256=self.sources.sha256 if self.sources else None,
            stand_ins=_texts(told.get("notes")),
            libraries=told.get("libraries") or {},  # type: ignore[arg-type]
        )


def _model(given: str) -> tuple[Path, str]:
    """The folder to work in and the model's name in it, so that no path of this machine gets into what is decided."""
    folder = cache_folder() / "models"
    if given == TINY:
        return folder, str(make_tiny(folder).hf.relative_to(folder))
    known = shape(given)
    path = make_shape(known, folder) if known else local_config(_existing(given), folder)
    return path.parent, path.name


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
