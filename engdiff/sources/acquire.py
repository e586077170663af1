"""From a reference to a Capture: read it, or find the engine's environment and launch it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from engdiff import engines, errors
from engdiff.engines.contract import Build, DeviceKind, Engine
from engdiff.environments.container import OF_THIS_MACHINE
from engdiff.environments.failures import NoSuchRelease
from engdiff.environments.given import given
from engdiff.environments.listing import list_versions
from engdiff.environments.managed import planned, provide, where
from engdiff.environments.recipe import Environment, Recipe
from engdiff.environments.store import cache_folder
from engdiff.environments.wheel import NoWheelError
from engdiff.knowledge.gpus import Pretended, pretended
from engdiff.knowledge.versions import is_version, nearest
from engdiff.machine import Machine, look
from engdiff.models.tiny import TINY, make_tiny
from engdiff.redact import REDACTED
from engdiff.references import ANY, HERE, EngineReference, Reference, UrlReference
from engdiff.schema.capture import Capture
from engdiff.sources.attach import AttachWishes, attach
from engdiff.sources.container import OWN, build_in, place, users_variables
from engdiff.sources.given import read
from engdiff.sources.launch import launch
from engdiff.sources.order import Container, Order, Outcome, Progress
from engdiff.sources.profiles.shipped import by_device, profile_of
from engdiff.sources.simulate import Ask, simulate, simulation_of

ENGDIFF_OWN = ("VIRTUAL_ENV", "PYTHONHOME", "UV_PROJECT_ENVIRONMENT", "CONDA_PREFIX")
"""Variables of the shell that engdiff runs in, which would mislead another interpreter."""


@dataclass(frozen=True)
class Wishes:
    """What the user said beside the reference. ``like`` is a capture whose command is used again.

    ``image`` is what a deployment names; ``container`` an image to launch in, or ``default``: that of the deployment,
    else the engine's own. ``rehearse``: nothing is made, pulled or started. ``fresh``: resolved now, although a profile
    is shipped.
    """

    model: str | None = None
    arguments: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    like: Capture | None = None
    python: Path | None = None
    build: str | None = None
    start_limit_seconds: float | None = None
    keep_log: Path | None = None
    image: str | None = None
    container: str | None = None
    rehearse: bool = False
    fresh: bool = False
    attach: AttachWishes = field(default_factory=AttachWishes)


def acquire(reference: Reference, wishes: Wishes, progress: Progress) -> Outcome:
    """The capture that a reference names. A failed start is an outcome with its error, not an exception."""
    if isinstance(reference, EngineReference) and reference.gpu:
        return Outcome(simulated(reference, wishes, progress), None)
    if isinstance(reference, EngineReference):
        return launch(order(reference, wishes, progress), progress)
    if isinstance(reference, UrlReference):
        return Outcome(attach(reference.url, wishes.attach, progress), None)
    return Outcome(read(reference), None)


def order(reference: EngineReference, wishes: Wishes, progress: Progress) -> Order:
    """Everything a launch needs, with the engine's environment made if it is not there.

    What the user wrote is checked first: an environment can take minutes.
    """
    engine = engines.get(reference.engine)
    machine = look()
    model_given = _model(wishes)
    model = _model_path(engine, model_given)
    arguments = _arguments(wishes, engine)
    explicit = _explicit(wishes, progress)
    if wishes.container:
        environment, inside = _image(engine, reference, wishes, machine, progress)
        build, variables = build_in(environment, inside.image), users_variables(inside, explicit)
    else:
        inside = None
        environment, build = _environment(engine, reference, wishes, machine, progress)
        variables = {**_shell(), **explicit}
    return Order(
        engine=engine,
        environment=environment,
        build=build,
        model=model,
        model_given=model_given,
        arguments=arguments,
        variables=variables,
        machine=machine,
        start_limit_seconds=wishes.start_limit_seconds,
        keep_log=wishes.keep_log,
        image=inside.reference if inside else wishes.image,
        explicit=explicit,
        container=inside,
    )


def _model(wishes: Wishes) -> str:
    model = wishes.model or (wishes.like.launch.model_given if wishes.like else None)
    if not model:
        raise errors.UsageError("no model was given", "add --model PATH_OR_ID, or --model tiny for the bundled one")
    return model


def _model_path(engine: Engine, model: str) -> str:
    """The path or id for the engine; the bundled model is made on the spot, and a folder is checked."""
    if model == TINY:
        return str(getattr(make_tiny(cache_folder() / "models"), engine.model_kind))
    path = Path(model).expanduser()
    if (
        path.is_dir()
        and engine.model_kind == "hf"
        and not any((path / n).exists() for n in ("config.json", "params.json"))
    ):
        raise errors.UsageError(
            f"{path}: a folder without config.json", f"{engine.title} wants a Hugging Face model folder or an id"
        )
    if path.is_dir() and engine.model_kind == "gguf":
        raise errors.UsageError(f"{path}: a folder", f"{engine.title} wants a .gguf file")
    if not path.exists() and engine.model_kind == "gguf":
        raise errors.UsageError(
            f"{path}: no such file", f"{engine.title} wants a .gguf file, or --model tiny for the bundled one"
        )
    if not path.exists() and (path.is_absolute() or model.startswith((".", "~"))):
        raise errors.UsageError(f"{path}: no such file or folder", "check --model")
    return str(path.absolute()) if path.exists() else model


def _arguments(wishes: Wishes, engine: Engine) -> tuple[str, ...]:
    if wishes.arguments or wishes.like is None:
        return wishes.arguments
    if wishes.like.identity.engine != engine.name:
        raise errors.UsageError(
            f"--like: that capture is of {wishes.like.identity.engine}, whose flags {engine.title} does not know",
            "give the words for this engine after --",
        )
    if any(REDACTED in word for word in wishes.like.launch.arguments):
        raise errors.UsageError("--like: that command holds a redacted secret", "give the words again after --")
    return wishes.like.launch.arguments


def _explicit(wishes: Wishes, progress: Progress) -> dict[str, str]:
    """What the engine's environment has beside ours: that of ``like``, then what the user set."""
    variables: dict[str, str] = {}
    for name, value in wishes.like.launch.variables.items() if wishes.like else ():
        if wishes.container and name in OF_THIS_MACHINE:
            continue
        if REDACTED in value:
            progress(f"note: {name} is redacted in that capture; the value of this shell is used")
        else:
            variables[name] = value
    return {**variables, **wishes.variables}


def simulated(reference: EngineReference, wishes: Wishes, progress: Progress) -> Capture:
    """What the engine's own configuration code decides on a GPU that need not be there."""
    engine = engines.get(reference.engine)
    assert reference.gpu is not None
    for flag, wish in (("--python", wishes.python), ("--container", wishes.container), ("--build", wishes.build)):
        if wish:
            raise errors.UsageError(
                f"{flag} is of a launch, and /{reference.gpu} starts nothing", "leave one of them out"
            )
    device = _device_of(engine, reference.gpu)
    build = engine.build(look(), "cuda" if device else None)
    version = reference.version or engine.known_versions(build.distribution)[0]
    ask = Ask(device, _model(wishes) if by_device(engine) else wishes.model or "", _arguments(wishes, engine))
    variables = {**_shell(), **_explicit(wishes, progress)}
    if not is_version(version):
        raise _unknown_version(engine, version, build)
    own = engine.simulation.own_variables if engine.simulation else ()
    if not wishes.fresh and reference.gpu != HERE and not any(name.startswith(own) for name in variables):
        shipped = profile_of(engine, version, ask)
        if shipped is not None:
            return shipped
    try:
        return simulate(engine, version, ask, variables, progress)
    except (NoSuchRelease, NoWheelError):
        if version in _releases(engine, build):
            raise
        raise _unknown_version(engine, version, build) from None


def _device_of(engine: Engine, text: str) -> Pretended | None:
    """The device of a reference. Raises UsageError for an engine that is not simulated, or not on devices."""
    if engine.simulation is None and engine.declared is None:
        simulation_of(engine)
    if text == HERE:
        return None
    if text == ANY and by_device(engine):
        raise errors.UsageError(f"/{ANY}: {engine.title} decides by device", f"write {engine.name}@VERSION/h100-80gb")
    if text != ANY and not by_device(engine):
        raise errors.UsageError(
            f"/{text}: {engine.title} has the same defaults for every device", f"write {engine.name}@VERSION/{ANY}"
        )
    return None if text == ANY else pretended(text)


def _shell() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in ENGDIFF_OWN}


# --- environments -----------------------------------------------------------------------------------------------


def _environment(
    engine: Engine, reference: EngineReference, wishes: Wishes, machine: Machine, progress: Progress
) -> tuple[Environment, Build]:
    if wishes.python is not None:
        environment = given(wishes.python, engine.name, engine.distributions)
        if reference.version and reference.version != environment.version:
            raise errors.UsageError(
                f"{wishes.python} has {environment.distribution} {environment.version}, not {reference.version}",
                f"say {engine.name} without a version to take what is installed there",
            )
        return environment, _build_of(environment, engine, wishes, machine)
    build = engine.build(machine, wishes.build)
    version = reference.version or _releases(engine, build)[0]
    if not is_version(version):
        raise _unknown_version(engine, version, build)
    if problem := engine.problem(version, build.distribution, machine):
        raise errors.WontLoadHere(engine.title, version, problem.because, problem.evidence, problem.instead)
    recipe = engine.recipe(version, build, machine)
    if wishes.rehearse:
        return _rehearsed(recipe, progress), build
    try:
        return provide(recipe, progress=progress), build
    except NoSuchRelease:
        raise _unknown_version(engine, version, build) from None


def _rehearsed(recipe: Recipe, progress: Progress) -> Environment:
    found = planned(recipe)
    if found is None:
        progress(f"note: the environment of {recipe.engine} {recipe.version} is not made yet; it would be where shown")
    return found or where(recipe)


def _image(
    engine: Engine, reference: EngineReference, wishes: Wishes, machine: Machine, progress: Progress
) -> tuple[Environment, Container]:
    if wishes.python is not None:
        raise errors.UsageError(
            "--python and --container name two places for one engine",
            "leave one out; the interpreter in a container is the image's own",
        )
    named = wishes.image if wishes.container == OWN else wishes.container
    return place(engine, reference.version, named, machine, wishes.build, progress, rehearse=wishes.rehearse)


def _build_of(environment: Environment, engine: Engine, wishes: Wishes, machine: Machine) -> Build:
    """The build of an interpreter that the user named: package, user or machine tell the device."""
    cpu = environment.distribution in engine.cpu_distributions or wishes.build == "cpu"
    device: DeviceKind = "cpu" if cpu or not (machine.gpus or wishes.build) else "cuda"
    return Build(environment.distribution, device, f"installed in {wishes.python}")


def _releases(engine: Engine, build: Build) -> tuple[str, ...]:
    """Releases on the index, newest first; those known when the index cannot be listed."""
    return list_versions(build.distribution) or engine.known_versions(build.distribution)


def _unknown_version(engine: Engine, version: str, build: Build) -> errors.UnknownVersion:
    others = [d for d in engine.distributions if d != build.distribution and version in engine.known_versions(d)]
    note = f" (it exists as `{others[0]}`, which this machine does not take: {build.because})" if others else ""
    return errors.UnknownVersion(
        engine.name, version, build.distribution, nearest(version, _releases(engine, build)), note
    )
