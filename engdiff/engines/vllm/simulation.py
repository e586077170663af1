"""VLLM's configuration code with no GPU: which libraries answer for which release, and how it is run."""

from __future__ import annotations

import json
from dataclasses import dataclass

from engdiff.engines.contract import Answering, Observed, SimulationPlan, SimulationRequest
from engdiff.engines.simulating import kit_files, simulation_order
from engdiff.engines.site_hook import source
from engdiff.engines.starting import beginning, written
from engdiff.engines.vllm import environment, from_simulation, releases
from engdiff.engines.vllm.launch import PREFIXES
from engdiff.engines.vllm.plugin import MODULE as PROBE
from engdiff.engines.vllm.plugin import PACKAGE
from engdiff.errors import UsageError
from engdiff.knowledge.gpus import Pretended
from engdiff.knowledge.versions import holds
from engdiff.machine import Machine
from engdiff.schema.capture import Capture

FIRST = "0.10.0"
"""The first release with the V1 engine for everything that its configuration decides."""

LIBRARIES_OF = (("0.19.1", "0.12.0.post2"), ("0.23.0", "0.20.2"))
"""Up to a release: the CPU package whose libraries answer. A release needs libraries of its age, not its own kernels,
which are stood in for; so disk holds three environments instead of thirty."""

NEWEST_LIBRARIES = "0.32.0"


@dataclass(frozen=True)
class VllmSimulation:
    """See :class:`engdiff.engines.contract.Simulation` for what each method promises."""

    by_device: bool = True
    own_variables: tuple[str, ...] = ("VLLM_",)

    def answering(self, version: str, device: Pretended | None, machine: Machine) -> Answering:
        """The wheel for GPUs, read by an interpreter that has libraries of its age; for this machine, its own build."""
        if device is None:
            build = environment.build(machine, None)
            release = releases.newest_repackaging(version, build.distribution)
            return Answering(environment.recipe(release, build.distribution))
        if not holds(version, since=FIRST):
            raise UsageError(f"vllm {version}: releases before {FIRST} are not simulated", "launch it on its GPU")
        libraries = next((name for until, name in LIBRARIES_OF if holds(version, until=until)), NEWEST_LIBRARIES)
        return Answering(environment.recipe(libraries, environment.CPU), (environment.GPU, version))

    def plan(self, request: SimulationRequest) -> SimulationPlan:
        """``simulate.py`` beside the probe, with the release's own files first."""
        code = written(request.folder / "code", _files())
        order = request.folder / "order.json"
        order.write_text(json.dumps(simulation_order(request)), encoding="utf-8")
        sources = [str(request.sources)] if request.sources else []
        added = {
            "PYTHONPATH": ":".join([*sources, str(code)]),
            "HF_HUB_OFFLINE": "1",
            "VLLM_NO_USAGE_STATS": "1",
            "VLLM_CACHE_ROOT": str(request.folder / "cache"),
        }
        return SimulationPlan(
            (str(request.interpreter), str(code / "engdiff_vllm_simulate.py"), str(order)),
            {**request.variables, **added},
            beginning(request.variables, PREFIXES),
        )

    def capture(self, observed: Observed, base: Capture) -> Capture:
        """See :mod:`~engdiff.engines.vllm.from_simulation`."""
        return from_simulation.capture(observed, base)


def _files() -> dict[str, str]:
    return {
        **kit_files(),
        "engdiff_pretend_rocm.py": source("engdiff.engines", "pretend_rocm.py"),
        f"{PROBE}.py": source(PACKAGE, "probe.py"),
        "engdiff_vllm_meta_model.py": source(PACKAGE, "meta_model.py"),
        "engdiff_vllm_simulate.py": source(PACKAGE, "simulate.py"),
    }
