"""How a simulation is ordered, whichever engine it is of: what is copied beside it, and what it is told."""

from __future__ import annotations

import re
from dataclasses import asdict

from engdiff.engines.contract import SimulationRequest
from engdiff.engines.site_hook import KIT, kit_source, source
from engdiff.knowledge.gpus import Pretended
from engdiff.units import GIB


def kit_files() -> dict[str, str]:
    """What every simulation imports, by name of file."""
    return {
        KIT: kit_source(),
        "engdiff_pretend_kit.py": source("engdiff.engines", "pretend_kit.py"),
        "engdiff_simulation_kit.py": source("engdiff.engines", "simulation_kit.py"),
    }


def simulation_order(request: SimulationRequest) -> dict[str, object]:
    """What a simulation is told, as JSON."""
    return {
        "version": request.version,
        "device": pretended_device(request.device),
        "output": str(request.output),
        "scenarios": [asdict(scenario) for scenario in request.scenarios],
    }


def pretended_device(device: Pretended | None) -> dict[str, object] | None:
    """A pretended GPU as :class:`~engdiff.engines.pretend_kit.Device` reads it; ``None`` for this machine as it is."""
    if device is None:
        return None
    gpu = device.gpu
    return {
        "name": gpu.name,
        "compute_capability": gpu.compute_capability or _of_hip(gpu.gfx),
        "gfx": gpu.gfx,
        "memory_bytes": gpu.memory_bytes,
        "usable_bytes": round(gpu.usable_gib * GIB) if gpu.usable_gib else None,
        "multiprocessors": gpu.multiprocessors,
        "l2_cache_bytes": gpu.l2_cache_bytes,
        "shared_memory_per_block_optin_bytes": gpu.shared_memory_per_block_optin_bytes,
        "nvlink": gpu.nvlink,
        "count": device.count,
    }


def _of_hip(gfx: str | None) -> tuple[int, int] | None:
    """What HIP calls the capability of an architecture with three digits: 9.4 of gfx942 (hipDeviceProp_t.major, minor).

    vllm/platforms/rocm.py 0.20-0.33 reads the names of architectures alike.
    """
    found = re.fullmatch(r"gfx([0-9])([0-9])[0-9a-f]", gfx or "")
    return (int(found[1]), int(found[2])) if found else None
