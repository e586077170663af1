"""What a verb may ask of an engine, and what each part promises. Nothing outside ``engines/`` knows an engine's name.

An engine is one package with an ``ENGINE`` object that satisfies :class:`Engine`. The places where a verb
would be tempted to ask "which engine is it?" (pin syntax, environment recipes, version listing, causes of
failure) are methods here, each kept in its own file of the engine's package.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Literal, Protocol

from pydantic import JsonValue

from engdiff.deployments.served import Recognise
from engdiff.engines.sizing import Sizing
from engdiff.environments.recipe import Recipe
from engdiff.knowledge.gpus import Pretended
from engdiff.knowledge.tables import Knowledge
from engdiff.logs.starts import LogFormat, Start
from engdiff.machine import Machine
from engdiff.process.supervise import ProcessFact
from engdiff.schema.capture import Capture

PinStyle = Literal["flags", "env"]
DeviceKind = Literal["cpu", "cuda"]


@dataclass(frozen=True)
class Build:
    """Which package of an engine fits this machine, on which kind of device it computes, and why."""

    distribution: str
    device: DeviceKind
    because: str


@dataclass(frozen=True)
class Image:
    """A container image with an engine in it, and what fits the engine in there.

    ``version``: the release that its name states, to plan by until the engine itself has spoken; ``None``: none.
    ``interpreter``: its Python, found on its PATH; ``None``: it has none, so that no package is listed and no probe
    runs. ``keeps_entrypoint``: what it starts by itself prepares the machine and then runs the words that follow;
    any other entrypoint is replaced. ``options``: words for ``docker run`` that the engine's documentation asks for.
    """

    reference: str
    version: str | None
    build: Build
    interpreter: Path | None = Path("python3")
    keeps_entrypoint: bool = False
    options: tuple[str, ...] = ()


@dataclass(frozen=True)
class KnownProblem:
    """A release that cannot load on this machine, with evidence, and what to use instead.

    ``anywhere``: engdiff makes no environment for it on any machine; it is launched in another way.
    """

    because: str
    evidence: str
    instead: str
    anywhere: bool = False


@dataclass(frozen=True)
class LaunchRequest:
    """What the user asked for. ``model`` is a path or an id; ``arguments`` are the words after ``--``.

    ``variables`` is the environment the engine would inherit. The engine listens on ``host`` and ``port``, and answers
    on 127.0.0.1. ``image``: the container image it runs in, if any; ``interpreter`` is then the one of the image,
    ``variables`` are the user's alone, and ``folder`` and ``model`` lie at the same place inside and outside.
    """

    version: str
    distribution: str
    device: DeviceKind
    interpreter: Path
    model: str
    arguments: tuple[str, ...]
    variables: Mapping[str, str]
    folder: Path
    port: int
    host: str = "127.0.0.1"
    image: str | None = None


@dataclass(frozen=True)
class LaunchPlan:
    """How to start the engine so that its probe writes below ``probe_output``.

    ``added`` are variables that engdiff sets for the probe or so that the engine starts at all, each
    with its reason; ``native_command`` is the command as the engine's users write it; ``read_variables``
    are the user's variables that this engine reads; ``scrape`` maps names to URLs read once it is ready.
    It is ready when ``ready_url`` answers and ``ready_text``, where there is one, stands in its log.
    ``ask_limit_seconds``: how long it may take to end by itself when it is asked to, before its processes are ended.
    """

    argv: tuple[str, ...]
    environ: Mapping[str, str]
    added: Mapping[str, str]
    native_command: tuple[str, ...]
    read_variables: Mapping[str, str]
    ready_url: str
    probe_output: Path
    probe_files: tuple[str, ...]
    scrape: Mapping[str, str] = field(default_factory=dict)
    start_limit_seconds: float = 900
    ask_limit_seconds: float = 20
    ready_text: str = ""


@dataclass(frozen=True)
class Observed:
    """Everything that one launch showed, before it is understood.

    ``probe`` maps file stems to parsed JSON; ``endpoints`` maps names to bodies or to reasons why there is
    none; times are seconds since the epoch.
    """

    request: LaunchRequest
    plan: LaunchPlan
    probe: Mapping[str, JsonValue]
    endpoints: Mapping[str, str]
    log: str
    processes: tuple[ProcessFact, ...]
    started_at: float
    ready_at: float | None

    @classmethod
    def by_probe(
        cls,
        files: Mapping[str, JsonValue],
        version: str,
        distribution: str,
        *,
        model: str = "",
        arguments: tuple[str, ...] = (),
        device: DeviceKind = "cuda",
        variables: Mapping[str, str] = MappingProxyType({}),
        added: Mapping[str, str] = MappingProxyType({}),
    ) -> Observed:
        """What the probe alone showed, of what engdiff did not start as a server; ``variables``: those it reads."""
        nowhere = Path()
        request = LaunchRequest(version, distribution, device, nowhere, model, arguments, {}, nowhere, 0)
        plan = LaunchPlan((), {}, added, (), variables, "", nowhere, ())
        return cls(request, plan, files, {}, "", (), 0.0, None)


@dataclass(frozen=True)
class Cause:
    """What the engine's last words mean: one sentence, and what to do.

    ``stage`` is the phase of the boot in which it went wrong, where the words tell; ``fits`` says what would have
    fitted; ``numbers`` are those of the message, by name with unit (``needed_gib``), as printed.
    """

    sentence: str
    advice: str
    stage: str | None = None
    fits: str | None = None
    numbers: Mapping[str, str] = field(default_factory=dict)
    line: str = ""


@dataclass(frozen=True)
class Pin:
    """What restores the old value on the new engine: words of the command line, a variable, or a line of a file.

    ``line`` is the line as the file takes it, and ``file_flag`` the flag that names the file.
    """

    style: PinStyle | Literal["file"]
    words: tuple[str, ...] = ()
    variable: tuple[str, str] | None = None
    line: str = ""
    file_flag: str = ""

    def text(self) -> str:
        """As a person would type it."""
        if self.style == "file":
            return self.line
        if self.variable is None:
            return shlex.join(self.words)
        return f"{self.variable[0]}={shlex.quote(self.variable[1])}"

    def where(self) -> str | None:
        """Where a line of a file goes; ``None`` for what is typed."""
        return f"a line of the file of {self.file_flag}" if self.style == "file" else None


@dataclass(frozen=True)
class LogReading:
    """How an engine is read from a log.

    ``format``: its lines (``knowledge/log.toml``) and its prefix. ``capture`` fills in a base from one start in a log:
    everything but warnings, failure, run summary and notes; every value cites its line, what the log does not state
    stays unknown with the reason, and it never raises. ``stage``: the phase of the boot that a start had reached.
    """

    format: LogFormat
    capture: Callable[[Start, Capture], Capture]
    stage: Callable[[Start], str]


@dataclass(frozen=True)
class HttpReading:
    """How an engine is read from a running server.

    ``identify``: paths whose answers tell this engine from others; reading them changes nothing on any engine.
    ``endpoints``: name to path of everything to read; reading them changes nothing here. ``draining``: name to path of
    what a reading changes; read only when the user asks for it. ``recognises``: whether answers (path to body of status
    200) are of this engine. ``capture`` fills in a base from answers (name to body of status 200), and never raises.
    """

    identify: tuple[str, ...]
    endpoints: Mapping[str, str]
    draining: Mapping[str, str]
    recognises: Callable[[Mapping[str, str]], bool]
    capture: Callable[[Mapping[str, str], Capture], Capture]


@dataclass(frozen=True)
class Answering:
    """What answers when a release's configuration code runs with no GPU: an interpreter, and the release's sources.

    ``recipe``: the environment whose libraries answer. ``wheel``: distribution and version of the wheel whose Python
    files are put before those of that environment; ``None``: the environment holds the release itself.
    """

    recipe: Recipe
    wheel: tuple[str, str] | None = None


@dataclass(frozen=True)
class Scenario:
    """One command line to resolve. ``model`` is a path, ``arguments`` the words after ``--``.

    ``count``: how many of the request's device there are; ``None``: as many as the request says.
    """

    name: str
    model: str
    arguments: tuple[str, ...] = ()
    count: int | None = None


@dataclass(frozen=True)
class SimulationRequest:
    """Scenarios of one release on one pretended device; ``device`` is ``None`` for this machine as it is.

    ``sources`` is the folder of :attr:`Answering.wheel`; ``folder`` may be written into, ``output`` gets one folder
    for each scenario, with the files of a probe.
    """

    version: str
    interpreter: Path
    sources: Path | None
    device: Pretended | None
    scenarios: tuple[Scenario, ...]
    variables: Mapping[str, str]
    folder: Path
    output: Path


@dataclass(frozen=True)
class SimulationPlan:
    """How the configuration code is run: it writes every scenario's files and ends.

    ``read_variables`` are the user's variables that this engine reads; ``added`` are words and variables that engdiff
    sets so that it answers at all, each with its reason.
    """

    argv: tuple[str, ...]
    environ: Mapping[str, str]
    read_variables: Mapping[str, str]
    added: Mapping[str, str] = field(default_factory=dict)
    limit_seconds: float = 600


class Simulation(Protocol):
    """How an engine's own configuration code answers for a device that is not there; it runs nothing on a device."""

    @property
    def by_device(self) -> bool:
        """Whether device and model decide anything; where not, one answer holds for all of them."""
        ...

    @property
    def own_variables(self) -> tuple[str, ...]:
        """Beginnings of the engine's own variables: with one set, a shipped profile may not be what it decides."""
        ...

    def answering(self, version: str, device: Pretended | None, machine: Machine) -> Answering:
        """What answers for a release on a device; ``None`` is this machine as it is.

        Raises :class:`~engdiff.errors.UsageError` for a release that cannot be simulated.
        """
        ...

    def plan(self, request: SimulationRequest) -> SimulationPlan:
        """How it is run. Writes into ``request.folder``."""
        ...

    def capture(self, observed: Observed, base: Capture) -> Capture:
        """Fill in ``base`` from the files of one scenario; never raises for missing data."""
        ...


class Declared(Protocol):
    """Defaults of releases that engdiff cannot run, as their sources declare them."""

    @property
    def versions(self) -> tuple[str, ...]:
        """Those whose sources were read, newest first."""
        ...

    def capture(self, version: str, base: Capture) -> Capture:
        """Fill in ``base`` with the defaults of one of these releases, marked as such."""
        ...


class ExportedProbe(Protocol):
    """A probe that can be mounted into a server that engdiff does not start."""

    def files(self) -> Mapping[str, str]:
        """Relative path to text of everything that must be mounted."""
        ...

    def variables(self, mounted: str, output: str) -> Mapping[str, str]:
        """Variables that switch it on, when it is mounted at one path and may write to another."""
        ...

    def wrote(self, files: Mapping[str, JsonValue]) -> bool:
        """Whether these files (by stem) are of this probe."""
        ...

    def capture(self, files: Mapping[str, JsonValue], base: Capture) -> Capture:
        """Fill in ``base`` from what the probe wrote. Never raises."""
        ...


class Engine(Protocol):
    """One serving engine. Every method is pure but :meth:`plan`, which may write into ``request.folder``."""

    name: str
    """As in references: ``vllm``."""

    title: str
    """As its users write it: ``vLLM``."""

    distributions: tuple[str, ...]
    """Every package that carries this engine, to recognise one that is already installed."""

    cpu_distributions: tuple[str, ...]
    """Those among them that compute on the CPU only."""

    model_kind: Literal["gguf", "hf"]
    """The form in which it wants the bundled model."""

    knowledge: Knowledge
    """Names, default changes and noise, as data."""

    native_root: str
    """Prefix of ``Capture.native`` below which ``knowledge/native.toml`` names its paths: ``config.``"""

    def build(self, machine: Machine, wanted: str | None) -> Build:
        """The distribution for this machine; ``wanted`` is the user's choice (``cpu``, ``cuda``) or ``None``."""
        ...

    def known_versions(self, distribution: str) -> tuple[str, ...]:
        """Releases known when this engdiff was made, newest first."""
        ...

    def problem(self, version: str, distribution: str, machine: Machine) -> KnownProblem | None:
        """Why this release is known not to load on this machine; ``None`` when nothing is known against it."""
        ...

    def recipe(self, version: str, build: Build, machine: Machine) -> Recipe:
        """How its managed environment is made."""
        ...

    def image(self, version: str, named: str | None, machine: Machine, wanted: str | None) -> Image:
        """The container image ``named`` by the user, else the engine's own for a version; ``wanted`` as in build.

        Raises :class:`~engdiff.errors.UsageError` when there is none for this version or machine.
        """
        ...

    def plan(self, request: LaunchRequest) -> LaunchPlan:
        """How to start it with its probe. Raises :class:`~engdiff.errors.UnknownFlag` for words it refuses itself."""
        ...

    def capture(self, observed: Observed, base: Capture) -> Capture:
        """Fill in ``base`` (it has identity and launch) from what the launch showed; never raises for missing data."""
        ...

    def cause(self, log: str, exit_status: str) -> Cause | None:
        """What the last words of a failed start mean; ``None`` when they are not known."""
        ...

    log: LogReading
    """How it is read from a log."""

    http: HttpReading
    """How it is read from a running server."""

    served: Recognise
    """What a container serves; ``None``: it is not this engine (see :class:`~engdiff.deployments.served.Recognise`)."""

    exported_probe: ExportedProbe | None
    """Its probe for servers that engdiff does not start; ``None``: the engine takes none."""

    simulation: Simulation | None
    """How its configuration is resolved with no GPU; ``None``: only a launch can tell."""

    sizing: Sizing | None
    """Its accounting of memory without a device; ``None``: no budget is made for it."""

    declared: Declared | None
    """Static defaults where it cannot be run here; ``None``: it can, and answers for itself."""

    def pin(self, key: str, old: Capture, new: Capture, style: PinStyle) -> Pin | None:
        """What restores ``old``'s value of a canonical or native key on ``new``'s version; ``None``: nothing does."""
        ...

    def native_command(self, model: str, arguments: Sequence[str]) -> tuple[str, ...]:
        """The command as the engine's users write it."""
        ...
