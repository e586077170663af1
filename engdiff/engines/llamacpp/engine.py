"""llama.cpp behind the contract."""

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
from engdiff.engines.llamacpp import (
    deployment,
    environment,
    from_image,
    from_log,
    http,
    launch,
    log,
    normalize,
    pins,
    releases,
)
from engdiff.engines.llamacpp.simulation import LlamaCppSimulation
from engdiff.engines.sizing import Sizing
from engdiff.environments.recipe import RUNNING_PYTHON, Recipe
from engdiff.errors import UsageError
from engdiff.knowledge.tables import Knowledge
from engdiff.machine import Machine
from engdiff.schema.capture import Capture

LOG = LogReading(log.FORMAT, from_log.capture, from_log.stage)
HTTP = HttpReading(http.IDENTIFY, http.ENDPOINTS, http.DRAINING, http.recognises, http.capture)


@dataclass(frozen=True)
class LlamaCpp:
    """See :class:`engdiff.engines.contract.Engine` for what each method promises."""

    name: str = "llamacpp"
    title: str = "llama.cpp"
    distributions: tuple[str, ...] = (releases.DISTRIBUTION,)
    cpu_distributions: tuple[str, ...] = (releases.DISTRIBUTION,)
    model_kind: Literal["gguf", "hf"] = "gguf"
    knowledge: Knowledge = normalize.KNOWLEDGE
    native_root: str = "params."
    log: LogReading = LOG
    http: HttpReading = HTTP
    served: Recognise = deployment.recognise
    exported_probe: ExportedProbe | None = None
    simulation: Simulation | None = field(default_factory=LlamaCppSimulation)
    sizing: Sizing | None = None
    declared: Declared | None = None

    def build(self, machine: Machine, wanted: str | None) -> Build:  # noqa: ARG002 - the wheels on the index are all for CPU
        """Always the CPU wheel: the index has no other."""
        if wanted not in (None, "cpu"):
            raise UsageError(
                f"llamacpp: no managed build for `{wanted}`",
                "xllamacpp on the package index is built for CPU; name an interpreter with your build: --python PATH",
            )
        return Build(releases.DISTRIBUTION, "cpu", "xllamacpp on the package index is built for CPU")

    def known_versions(self, distribution: str) -> tuple[str, ...]:  # noqa: ARG002
        """Releases with an HTTP server."""
        return releases.KNOWN

    def problem(self, version: str, distribution: str, machine: Machine) -> KnownProblem | None:  # noqa: ARG002
        """See :mod:`~engdiff.engines.llamacpp.releases`."""
        return releases.problem(version, machine)

    def recipe(self, version: str, build: Build, machine: Machine) -> Recipe:  # noqa: ARG002
        """See :mod:`~engdiff.engines.llamacpp.environment`."""
        return environment.recipe(version, RUNNING_PYTHON)

    def image(self, version: str, named: str | None, machine: Machine, wanted: str | None) -> Image:
        """See :mod:`~engdiff.engines.llamacpp.environment`."""
        return environment.image(version, named, machine, wanted)

    def plan(self, request: LaunchRequest) -> LaunchPlan:
        """See :mod:`~engdiff.engines.llamacpp.launch`."""
        return launch.plan(request)

    def capture(self, observed: Observed, base: Capture) -> Capture:
        """See :mod:`~engdiff.engines.llamacpp.normalize`; of an image :mod:`~engdiff.engines.llamacpp.from_image`."""
        return from_image.capture(observed, base) if observed.request.image else normalize.capture(observed, base)

    def cause(self, log: str, exit_status: str) -> Cause | None:
        """See ``knowledge/failures.toml``."""
        return explain(self.knowledge.failures, log, exit_status)

    def pin(self, key: str, old: Capture, new: Capture, style: PinStyle) -> Pin | None:
        """See :mod:`~engdiff.engines.llamacpp.pins`."""
        return pins.pin(key, old, new, style)

    def native_command(self, model: str, arguments: Sequence[str]) -> tuple[str, ...]:
        """``llama-server -m MODEL ...``."""
        return launch.native_command(model, arguments)


ENGINE = LlamaCpp()
