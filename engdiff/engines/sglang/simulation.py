"""SGLang's configuration code with no GPU: which libraries answer for which release, and how it is run."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

from engdiff.engines.contract import Answering, Build, DeviceKind, Observed, Scenario, SimulationPlan, SimulationRequest
from engdiff.engines.sglang import environment, from_simulation, launch, releases
from engdiff.engines.simulating import kit_files, simulation_order
from engdiff.engines.site_hook import source
from engdiff.engines.starting import beginning, written
from engdiff.errors import UsageError
from engdiff.knowledge.gpus import Pretended
from engdiff.knowledge.versions import holds
from engdiff.machine import Machine
from engdiff.schema.capture import Capture

LIBRARIES_OF = (("0.4.9.post6", "0.4.6"), ("0.5.10.post1", "0.5.9"), ("0.5.14", "0.5.12"), ("0.5.21", "0.5.20"))
"""Up to a release: the release whose CPU environment answers. Any of its age will do, as no kernel is run, and what
decides is which Transformers it was written for; so disk holds five environments instead of sixty."""

NEWEST_LIBRARIES = "0.5.23"


@dataclass(frozen=True)
class SGLangSimulation:
    """See :class:`engdiff.engines.contract.Simulation` for what each method promises."""

    by_device: bool = True
    own_variables: tuple[str, ...] = ("SGLANG_", "SGL_")

    def answering(self, version: str, device: Pretended | None, machine: Machine) -> Answering:  # noqa: ARG002
        """The wheel (one for all devices) read by an interpreter with libraries of its age; itself for this machine."""
        if not holds(version, since=releases.FIRST_SUPPORTED):
            raise UsageError(
                f"sglang {version}: releases before {releases.FIRST_SUPPORTED} are not simulated",
                "launch it on its GPU",
            )
        cpu = Build(environment.DISTRIBUTION, "cpu", "its configuration code alone is run")
        if device is None:
            return Answering(environment.recipe(version, cpu))
        if device.gpu.compute_capability is None:
            raise UsageError(
                f"sglang is simulated on NVIDIA's GPUs only, and {device.gpu.title} is none", "launch it on that GPU"
            )
        libraries = next((name for until, name in LIBRARIES_OF if holds(version, until=until)), NEWEST_LIBRARIES)
        wheel = None if libraries == version else (environment.DISTRIBUTION, version)
        return Answering(environment.recipe(libraries, cpu), wheel)

    def plan(self, request: SimulationRequest) -> SimulationPlan:
        """``simulate.py`` beside the probe, with the release's own files first."""
        code = written(request.folder / "code", _files())
        order = request.folder / "order.json"
        ordered, words = _with_words(request)
        order.write_text(json.dumps(simulation_order(ordered)), encoding="utf-8")
        sources = [str(request.sources)] if request.sources else []
        for_cpu = launch.cpu_variables(request.variables, _device(request))
        path = ":".join([*sources, str(code)])
        return SimulationPlan(
            (str(request.interpreter), str(code / "engdiff_sglang_simulate.py"), str(order)),
            {**request.variables, "PYTHONPATH": path, "HF_HUB_OFFLINE": "1", **for_cpu},
            beginning(request.variables, launch.PREFIXES),
            {**{name: launch.REASONS[name] for name in for_cpu}, **words},
        )

    def capture(self, observed: Observed, base: Capture) -> Capture:
        """See :mod:`~engdiff.engines.sglang.from_simulation`."""
        return from_simulation.capture(observed, base)


def _device(request: SimulationRequest) -> DeviceKind:
    return "cpu" if request.device is None else "cuda"


def _with_words(request: SimulationRequest) -> tuple[SimulationRequest, dict[str, str]]:
    """The request with what a launch on this device would add to each command line, and why."""
    scenarios: list[Scenario] = []
    reasons: dict[str, str] = {}
    for scenario in request.scenarios:
        words, added = launch.server_words(scenario.arguments, request.version, _device(request))
        scenarios.append(replace(scenario, arguments=(*words, *(word for pair, _ in added for word in pair))))
        reasons |= {" ".join(pair): why for pair, why in added}
    return replace(request, scenarios=tuple(scenarios)), reasons


def _files() -> dict[str, str]:
    return {
        **kit_files(),
        **launch.support_files(),
        f"{launch.PROBE_MODULE}.py": source(launch.PACKAGE, "probe.py"),
        "engdiff_sglang_meta_model.py": source(launch.PACKAGE, "meta_model.py"),
        "engdiff_sglang_simulate.py": source(launch.PACKAGE, "simulate.py"),
    }
