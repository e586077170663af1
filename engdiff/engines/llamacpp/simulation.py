"""Llama.cpp's parameters without a start: what its own structure holds once the words were translated."""

from __future__ import annotations

import json
from dataclasses import dataclass

from engdiff.engines.contract import Answering, Observed, SimulationPlan, SimulationRequest
from engdiff.engines.llamacpp import environment, launch, normalize
from engdiff.engines.llamacpp.flags import server_defaults
from engdiff.engines.site_hook import source
from engdiff.engines.starting import beginning
from engdiff.environments.recipe import RUNNING_PYTHON
from engdiff.errors import UsageError
from engdiff.knowledge.gpus import Pretended
from engdiff.machine import Machine
from engdiff.schema.capture import Capture

NOT_BY_DEVICE = "its parameters are the same for every device; what fits on one is decided when a model is loaded"


@dataclass(frozen=True)
class LlamaCppSimulation:
    """See :class:`engdiff.engines.contract.Simulation` for what each method promises."""

    by_device: bool = False
    own_variables: tuple[str, ...] = ("LLAMA_ARG_",)

    def answering(self, version: str, device: Pretended | None, machine: Machine) -> Answering:  # noqa: ARG002
        """The wheel itself: it runs on every machine."""
        if device is not None:
            raise UsageError(f"llama.cpp is not simulated on {device.text}: {NOT_BY_DEVICE}", "write /any for the GPU")
        return Answering(environment.recipe(version, RUNNING_PYTHON))

    def plan(self, request: SimulationRequest) -> SimulationPlan:
        """The probe, told to stop before the server starts."""
        script = request.folder / "engdiff_llamacpp_probe.py"
        script.write_text(source("engdiff.engines.llamacpp", "probe.py"), encoding="utf-8")
        plans = []
        for scenario in request.scenarios:
            out = request.output / scenario.name
            out.mkdir()
            translation = launch.translate(scenario.arguments, request.variables, request.version)
            fields = {**server_defaults(request.version), **translation.fields, "model.path": scenario.model}
            plan = request.folder / f"{scenario.name}.json"
            told = {"fields": fields, "out": str(out), "observe": True, "start": False}
            plan.write_text(json.dumps(told), encoding="utf-8")
            plans.append(str(plan))
        return SimulationPlan(
            (str(request.interpreter), str(script), *plans),
            dict(request.variables),
            beginning(request.variables, launch.PREFIXES),
        )

    def capture(self, observed: Observed, base: Capture) -> Capture:
        """The parameters; nothing was loaded, so there is no memory and no context."""
        made = normalize.capture(observed, base)
        settings = {key: one for key, one in made.settings.items() if base.launch.model or key != "model.path"}
        return made.model_copy(update={"settings": settings, "instances": (), "boot": base.boot, "runner": base.runner})
