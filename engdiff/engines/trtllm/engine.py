"""TensorRT-LLM behind the contract. Never run on a live engine by this project, and every capture says so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from engdiff.engines.trtllm import (
    deployment,
    environment,
    exported,
    from_launch,
    from_log,
    http,
    launch,
    log,
    pins,
    record,
    releases,
)
from engdiff.engines.trtllm.declared import TrtllmDeclared
from engdiff.environments.recipe import Recipe
from engdiff.knowledge.tables import Knowledge
from engdiff.logs.starts import Start
from engdiff.machine import Machine
from engdiff.schema.capture import Capture


def _from_log(start: Start, base: Capture) -> Capture:
    return record.marked(from_log.capture(start, base))


def _from_http(answers: Mapping[str, str], base: Capture) -> Capture:
    return record.marked(http.capture(answers, base))


LOG = LogReading(log.FORMAT, _from_log, from_log.stage)
HTTP = HttpReading(http.IDENTIFY, http.ENDPOINTS, http.DRAINING, http.recognises, _from_http)


@dataclass(frozen=True)
class TrtLlm:
    """See :class:`engdiff.engines.contract.Engine` for what each method promises."""

    name: str = "trtllm"
    title: str = "TensorRT-LLM"
    distributions: tuple[str, ...] = (releases.DISTRIBUTION,)
    cpu_distributions: tuple[str, ...] = ()
    model_kind: Literal["gguf", "hf"] = "hf"
    knowledge: Knowledge = from_log.KNOWLEDGE
    native_root: str = "config."
    log: LogReading = LOG
    http: HttpReading = HTTP
    served: Recognise = deployment.recognise
    exported_probe: ExportedProbe | None = field(default_factory=exported.TrtLlmProbe)
    simulation: Simulation | None = None
    sizing: Sizing | None = None
    declared: Declared | None = field(default_factory=TrtllmDeclared)

    def build(self, machine: Machine, wanted: str | None) -> Build:
        """See :mod:`~engdiff.engines.trtllm.environment`."""
        return environment.build(machine, wanted)

    def known_versions(self, distribution: str) -> tuple[str, ...]:  # noqa: ARG002
        """See :mod:`~engdiff.engines.trtllm.releases`."""
        return releases.KNOWN

    def problem(self, version: str, distribution: str, machine: Machine) -> KnownProblem | None:  # noqa: ARG002
        """See :mod:`~engdiff.engines.trtllm.releases`."""
        return releases.problem(version)

    def recipe(self, version: str, build: Build, machine: Machine) -> Recipe:  # noqa: ARG002
        """See :mod:`~engdiff.engines.trtllm.environment`."""
        return environment.recipe(version)

    def image(self, version: str, named: str | None, machine: Machine, wanted: str | None) -> Image:
        """See :mod:`~engdiff.engines.trtllm.environment`."""
        return environment.image(version, named, machine, wanted)

    def plan(self, request: LaunchRequest) -> LaunchPlan:
        """See :mod:`~engdiff.engines.trtllm.launch`."""
        return launch.plan(request)

    def capture(self, observed: Observed, base: Capture) -> Capture:
        """See :mod:`~engdiff.engines.trtllm.from_launch`."""
        return record.marked(from_launch.capture(observed, base))

    def cause(self, log: str, exit_status: str) -> Cause | None:
        """See ``knowledge/failures.toml``."""
        return explain(self.knowledge.failures, log, exit_status)

    def pin(self, key: str, old: Capture, new: Capture, style: PinStyle) -> Pin | None:
        """See :mod:`~engdiff.engines.trtllm.pins`."""
        return pins.pin(key, old, new, style)

    def native_command(self, model: str, arguments: Sequence[str]) -> tuple[str, ...]:
        """``trtllm-serve MODEL ...``."""
        return launch.native_command(model, arguments)


ENGINE = TrtLlm()
