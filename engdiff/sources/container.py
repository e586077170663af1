"""An engine that is launched in a container: which image, what is in it, and the command that runs it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from packaging.version import Version

from engdiff.engines.contract import Build, Engine, Image, LaunchPlan, LaunchRequest
from engdiff.environments.container import OF_THIS_MACHINE, ContainerRun, Tool, command, find_tool, is_secret, removal
from engdiff.environments.container_image import ask, ask_tool, inspect, provide
from engdiff.environments.listing import list_versions
from engdiff.environments.recipe import Environment
from engdiff.errors import NoContainerTool, UsageError
from engdiff.knowledge.versions import is_version, release
from engdiff.machine import Machine
from engdiff.process.supervise import ProcessFact
from engdiff.sources.order import Container, Order, Progress

OWN = "default"
"""The word that stands for the engine's own image, or for the one that the deployment names."""


def place(
    engine: Engine,
    version: str | None,
    named: str | None,
    machine: Machine,
    wanted: str | None,
    progress: Progress,
    *,
    rehearse: bool,
) -> tuple[Environment, Container]:
    """What is in the image, and how it is run. ``rehearse``: nothing is pulled and nothing run, whatever is here.

    Raises NoContainerTool, ImageFailed, and UsageError when the image holds another version than the one asked for.
    """
    tool = find_tool()
    if tool is None and not rehearse:
        raise NoContainerTool
    image = engine.image(version or _newest(engine, named), named, machine, wanted)
    _same(image.reference, image.version, version, engine)
    if tool is None:
        progress("note: neither docker nor podman is installed here; the command is shown for docker")
        container = Container(Tool("docker", "docker"), image, image.reference)
        return _planned(image, version, engine, progress), container
    reference = image.reference if named else _qualified(image.reference, tool)
    known = inspect(tool, reference) if rehearse else provide(tool, reference, progress)
    container = Container(
        tool=tool,
        image=image,
        reference=reference,
        identity=known.identity if known else "",
        python_path=known.variables.get("PYTHONPATH", "") if known else "",
    )
    if image.interpreter is None or rehearse:
        return _planned(image, version, engine, progress), container
    progress(f"{reference}: looking what is in it")
    environment = ask(tool, reference, image.interpreter, engine.distributions)
    _same(reference, environment.version, version, engine)
    return environment, container


def _newest(engine: Engine, named: str | None) -> str:
    """The release to plan for when the user names none: on the index, else known; of a named image only a stand-in."""
    distribution = engine.distributions[0]
    listed = () if named else list_versions(distribution)
    return (listed or engine.known_versions(distribution))[0]


def _same(reference: str, found: str | None, version: str | None, engine: Engine) -> None:
    """Post-releases and local versions (``+cpu``) package the same release."""
    if not version or not found:
        return
    if not is_version(version):
        raise UsageError(f"`{version}` is not a version of {engine.title}", f"say {engine.name} without a version")
    if not is_version(found) or _release(found) != _release(version):
        raise UsageError(
            f"{reference} has {engine.title} {found}, not {version}",
            f"say {engine.name} without a version to take what is in the image",
        )


def _release(text: str) -> tuple[Version, object]:
    """Candidates of a release are told apart."""
    return release(text), Version(text).pre


def _qualified(reference: str, tool: Tool) -> str:
    """With its registry for podman, which knows no default one."""
    first, slash, _ = reference.partition("/")
    has_registry = bool(slash) and ("." in first or ":" in first)
    return reference if tool.kind == "docker" or has_registry else f"docker.io/{reference}"


def _planned(image: Image, version: str | None, engine: Engine, progress: Progress) -> Environment:
    """By name only; the engine itself says its version when it runs."""
    stated = image.version or version
    if stated is None:
        stated = engine.known_versions(engine.distributions[0])[0]
        progress(f"note: the version in {image.reference} is not known before it runs: the command is as for {stated}")
    interpreter = image.interpreter or Path()
    return Environment(Path(), interpreter, "", image.build.distribution, stated, managed=False)


def build_in(environment: Environment, image: Image) -> Build:
    """The build, under the name that the package has in there."""
    return Build(environment.distribution, image.build.device, image.build.because)


def users_variables(container: Container, explicit: Mapping[str, str]) -> dict[str, str]:
    """The variables that may reach the engine: those of the shell, but for what names files of this machine."""
    shell = {name: value for name, value in os.environ.items() if name not in OF_THIS_MACHINE}
    image = {"PYTHONPATH": container.python_path} if container.python_path else {}
    return {**shell, **image, **explicit}


def run_of(order: Order, container: Container, request: LaunchRequest, plan: LaunchPlan) -> ContainerRun:
    """The container of one launch."""
    added = {name: plan.environ[name] for name in plan.added if name in plan.environ}
    passed = {**plan.read_variables, **order.explicit}
    return ContainerRun(
        image=container.reference,
        argv=plan.argv,
        port=request.port,
        model=request.model,
        words=request.arguments,
        added=added,
        passed={name: value for name, value in passed.items() if name not in added},
        uses_gpu=order.uses_gpu,
        folder=request.folder if plan.probe_files else None,
        output=plan.probe_output,
        keeps_entrypoint=container.image.keeps_entrypoint,
        options=container.image.options,
    )


def commands(run: ContainerRun, container: Container) -> tuple[tuple[str, ...], tuple[str, ...], dict[str, str]]:
    """What starts the container, what removes it, and the environment of both, which holds the secrets."""
    secret = {name: value for name, value in run.passed.items() if is_secret(name, value)}
    return command(run, container.tool, os.environ), removal(run, container.tool), {**os.environ, **secret}


REAPERS = ("docker-init", "podman-init", "catatonit", "tini")
"""What ``--init`` puts before the engine."""


def processes_in(container: Container, run: ContainerRun) -> tuple[ProcessFact, ...]:
    """The processes of a running container; none where the tool cannot tell."""
    code, said = ask_tool([container.tool.program, "top", run.name, "-eo", "pid,ppid,nlwp,args"])
    rows = [line.split(None, 3) for line in said.splitlines()[1:]] if code == 0 else []
    facts = [_fact(row) for row in rows if len(row) == 4 and all(number.isdigit() for number in row[:3])]
    return tuple(fact for fact in facts if fact.name not in REAPERS)


def _fact(row: Sequence[str]) -> ProcessFact:
    pid, parent, threads, title = row
    words = tuple(title.split())
    return ProcessFact(int(pid), int(parent), Path(words[0]).name, words, title, int(threads))
