"""AMD's GPUs that are not there, as a torch for ROCm, amdsmi and Triton show them. Runs in the engine.

Standard library and torch only; it is copied beside the simulation as ``engdiff_pretend_rocm.py``, next to
:mod:`~engdiff.engines.pretend_kit`, whose notes it shares.
"""

from __future__ import annotations

import enum
import importlib.machinery
import importlib.util
import sys
import types
from typing import Any

if importlib.util.find_spec("engdiff_pretend_kit"):
    import engdiff_pretend_kit as kit
else:
    from engdiff.engines import pretend_kit as kit

HIP = "7.2"
"""What the pretended torch was built with: engines ask whether there is one, not which (vLLM 0.10-0.33)."""

WAVEFRONT = 64
"""Threads that run in step on CDNA (https://rocm.docs.amd.com/en/latest/reference/gpu-specs.html)."""

DEVICE_IDS = {"AMD Instinct MI300X": "0x74a1", "AMD Instinct MI325X": "0x74a5"}
"""PCI device IDs by the driver's name, as vLLM lists them to name tuned kernels (vllm/platforms/rocm.py, 0.10-0.33)."""

XGMI = 2
"""amdsmi's word for a link over XGMI, as vLLM reads it (vllm/platforms/rocm.py, 0.10-0.33)."""


def pretend_torch(device: kit.Device) -> None:
    """Torch as a ROCm build on a machine with this device. Call it before the engine is imported."""
    import torch
    import torch._dynamo  # its internals are imported in their honest state

    torch.version.cuda = None
    torch.version.hip = HIP
    kit.note(f"torch.version.hip: {HIP}")
    architecture = f"{device.gfx}:sramecc+:xnack-"  # as torch names an MI300X
    kit.answer_for_devices(device, device.gfx, gcnArchName=architecture, warp_size=WAVEFRONT)
    torch.cuda._device_count_amdsmi = lambda: device.count


def pretend_triton(device: kit.Device) -> None:
    """Triton whose active driver is AMD's, for this device."""
    kit.activate_triton("amd", kit.TritonDriver(device, ("hip", device.gfx, WAVEFRONT)))


def pretend_amdsmi(device: kit.Device) -> None:
    """The package amdsmi, which comes with a driver: it answers for this device."""
    module = types.ModuleType("amdsmi")
    module.__spec__ = importlib.machinery.ModuleSpec("amdsmi", None)
    for name, value in _amdsmi(device).items():
        setattr(module, name, value)
    sys.modules["amdsmi"] = module
    kit.note("amdsmi: answered by engdiff, from the GPU's facts")


class AmdSmiException(Exception):
    """Never raised: engines catch it by this name."""


class AmdSmiMemoryType(enum.IntEnum):
    """Kinds of memory, as amdsmi numbers them."""

    VRAM = 0
    VIS_VRAM = 1
    GTT = 2


def _amdsmi(device: kit.Device) -> dict[str, Any]:
    """The names that vLLM imports (vllm/platforms/rocm.py, 0.10-0.33)."""
    return {
        "AmdSmiException": AmdSmiException,
        "AmdSmiMemoryType": AmdSmiMemoryType,
        "amdsmi_init": lambda *a, **k: None,
        "amdsmi_shut_down": lambda *a, **k: None,
        "amdsmi_get_processor_handles": lambda: list(range(device.count)),
        "amdsmi_get_gpu_asic_info": lambda handle: _asic(device),
        "amdsmi_get_gpu_device_uuid": lambda handle: f"GPU-pretended-{handle}",
        "amdsmi_get_gpu_memory_total": lambda handle, kind: device.memory_bytes,
        "amdsmi_topo_get_link_type": lambda one, other: _link(),
        "amdsmi_topo_get_numa_node_number": lambda handle: 0,
    }


def _asic(device: kit.Device) -> dict[str, Any]:
    identity = DEVICE_IDS.get(device.name, "")
    if identity:
        kit.note(f"amdsmi, device_id of {device.name}: {identity}")
    return {"market_name": device.name, "device_id": identity, "target_graphics_version": device.gfx}


def _link() -> dict[str, int]:
    kit.note("amdsmi, links between the devices: XGMI in one hop, as in a node of eight")
    return {"hops": 1, "type": XGMI}


def without_nvml(module: Any) -> None:
    """NVML (a pynvml module) that finds no driver, whatever is in this machine."""

    def none(*args: Any, **kwargs: Any) -> None:
        raise module.NVMLError(module.NVML_ERROR_LIBRARY_NOT_FOUND)

    module.nvmlInit = none
