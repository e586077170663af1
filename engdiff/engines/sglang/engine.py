"""SGLang behind the contract."""

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
from engdiff.engines.sglang import (
    deployment,
    environment,
    exported,
    from_launch,
    from_log,
    http,
    launch,
    log,
    pins,
    releases,
)
from engdiff.engines.sglang.simulation import SGLangSimulation
from engdiff.engines.sizing import Sizing
from engdiff.environments.recipe import Recipe
from engdiff.knowledge.tables import Knowledge
from engdiff.machine import Machine
from engdiff.schema.capture import Capture

LOG = LogReading(log.FORMAT, from_log.capture, from_log.stage)
HTTP = HttpReading(http.IDENTIFY, http.ENDPOINTS, http.DRAINING, http.recognises, http.capture)


@dataclass(frozen=True)
class SGLang:
    """See :class:`engdiff.engines.contract.Engine` for what each method promises."""

    name: str = "sglang"
    title: str = "SGLang"
    distributions: tuple[str, ...] = (environment.DISTRIBUTION,)
    cpu_distributions: tuple[str, ...] = ()
    model_kind: Literal["gguf", "hf"] = "hf"
    knowledge: Knowledge = from_log.KNOWLEDGE
    native_root: str = "server_args."
    log: LogReading = LOG
    http: HttpReading = HTTP
    served: Recognise = deployment.recognise
    exported_probe: ExportedProbe | None = field(default_factory=exported.SGLangProbe)
    simulation: Simulation | None = field(default_factory=SGLangSimulation)
    sizing: Sizing | None = None
    declared: Declared | None = None

    def build(self, machine: Machine, wanted: str | None) -> Build:
        """See :mod:`~engdiff.engines.sglang.environment`."""
        return environment.build(machine, wanted)

    def known_versions(self, distribution: str) -> tuple[str, ...]:  # noqa: ARG002
        """See :mod:`~engdiff.engines.sglang.releases`."""
        return releases.KNOWN

    def problem(self, version: str, distribution: str, machine: Machine) -> KnownProblem | None:  # noqa: ARG002
        """See :mod:`~engdiff.engines.sglang.releases`."""
        return releases.problem(version, machine)

    def recipe(self, version: str, build: Build, machine: Machine) -> Recipe:  # noqa: ARG002
        """See :mod:`~engdiff.engines.sglang.environment`."""
        return environment.recipe(version, build)

    def image(self, version: str, named: str | None, machine: Machine, wanted: str | None) -> Image:
        """See :mod:`~engdiff.engines.sglang.environment`."""
        return environment.image(version, named, machine, wanted)

    def plan(self, request: LaunchRequest) -> LaunchPlan:
        """See :mod:`~engdiff.engines.sglang.launch`."""
        return launch.plan(request)

    def capture(self, observed: Observed, base: Capture) -> Capture:
        """See :mod:`~engdiff.engines.sglang.from_launch`."""
        return from_launch.capture(observed, base)

    def cause(self, log: str, exit_status: str) -> Cause | None:
        """See ``knowledge/failures.toml``."""
        return explain(self.knowledge.failures, log, exit_status)

    def pin(self, key: str, old: Capture, new: Capture, style: PinStyle) -> Pin | None:
        """See :mod:`~engdiff.engines.sglang.pins`."""
        return pins.pin(key, old, new, style)

    def native_command(self, model: str, arguments: Sequence[str]) -> tuple[str, ...]:
        """``python -m sglang.launch_server --model-path MODEL ...``."""
        return launch.native_command(model, arguments)


ENGINE = SGLang()
