"""vLLM behind the contract."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from engdiff.deployments.served import Recognise
from engdiff.engines.contract import (
    Build,
    Cause,
    Declared,
    ExportedProbe,
    HttpReading,
    Image,
    KnownProblem,
    LaunchPlan,
    LaunchRequest,
    LogReading,
    Observed,
    Pin,
    PinStyle,
    Simulation,
)
from engdiff.engines.last_words import explain
from engdiff.engines.sizing import Sizing
from engdiff.engines.vllm import (
    deployment,
    environment,
    exported,
    from_log,
    http,
    launch,
    log,
    normalize,
    pins,
    releases,
    simulation,
)
from engdiff.engines.vllm.sizing.account import VllmSizing
from engdiff.environments.recipe import Recipe
from engdiff.knowledge.tables import Knowledge
from engdiff.machine import Machine
from engdiff.schema.capture import Capture

LOG = LogReading(log.FORMAT, from_log.capture, from_log.stage)
HTTP = HttpReading(http.IDENTIFY, http.ENDPOINTS, http.DRAINING, http.recognises, http.capture)


@dataclass(frozen=True)
class Vllm:
    """See :class:`engdiff.engines.contract.Engine` for what each method promises."""

    name: str = "vllm"
    title: str = "vLLM"
    distributions: tuple[str, ...] = (environment.GPU, environment.CPU)
    cpu_distributions: tuple[str, ...] = (environment.CPU,)
    model_kind: Literal["gguf", "hf"] = "hf"
    knowledge: Knowledge = normalize.KNOWLEDGE
    native_root: str = "config."
    log: LogReading = LOG
    http: HttpReading = HTTP
    served: Recognise = deployment.recognise
    exported_probe: ExportedProbe | None = field(default_factory=exported.VllmProbe)
    simulation: Simulation | None = field(default_factory=simulation.VllmSimulation)
    sizing: Sizing | None = field(default_factory=VllmSizing)
    declared: Declared | None = None

    def build(self, machine: Machine, wanted: str | None) -> Build:
        """See :mod:`~engdiff.engines.vllm.environment`."""
        return environment.build(machine, wanted)

    def known_versions(self, distribution: str) -> tuple[str, ...]:
        """See :mod:`~engdiff.engines.vllm.releases`."""
        return releases.KNOWN[distribution]

    def problem(self, version: str, distribution: str, machine: Machine) -> KnownProblem | None:
        """See :mod:`~engdiff.engines.vllm.releases`."""
        return releases.problem(version, distribution, machine)

    def recipe(self, version: str, build: Build, machine: Machine) -> Recipe:  # noqa: ARG002
        """See :mod:`~engdiff.engines.vllm.environment`."""
        return environment.recipe(releases.newest_repackaging(version, build.distribution), build.distribution)

    def image(self, version: str, named: str | None, machine: Machine, wanted: str | None) -> Image:
        """See :mod:`~engdiff.engines.vllm.environment`."""
        return environment.image(version, named, machine, wanted)

    def plan(self, request: LaunchRequest) -> LaunchPlan:
        """See :mod:`~engdiff.engines.vllm.launch`."""
        return launch.plan(request)

    def capture(self, observed: Observed, base: Capture) -> Capture:
        """See :mod:`~engdiff.engines.vllm.normalize`."""
        return normalize.capture(observed, base)

    def cause(self, log: str, exit_status: str) -> Cause | None:
        """See ``knowledge/failures.toml``; words that a terminal cut into rows are joined where that tells more."""
        found = explain(self.knowledge.failures, log, exit_status)
        return found if found and found.numbers else self._of_rows(log, exit_status) or found

    def _of_rows(self, words: str, exit_status: str) -> Cause | None:
        """What the words say when rows without a beginning of their own belong to the row before."""
        joined = log.joined(words)
        cause = explain(self.knowledge.failures, joined, exit_status) if joined != words else None
        return cause if cause and cause.numbers else None

    def pin(self, key: str, old: Capture, new: Capture, style: PinStyle) -> Pin | None:
        """See :mod:`~engdiff.engines.vllm.pins`."""
        return pins.pin(key, old, new, style)

    def native_command(self, model: str, arguments: Sequence[str]) -> tuple[str, ...]:
        """``vllm serve MODEL ...``."""
        return launch.native_command(model, arguments)


ENGINE = Vllm()
