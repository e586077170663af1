"""AMD's GPUs that are not there: torch for ROCm, amdsmi and Triton answer as the GPU's facts say."""

from __future__ import annotations

import importlib
import sys
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from engdiff.engines import pretend_kit as kit
from engdiff.engines import pretend_rocm as rocm
from engdiff.engines.simulating import pretended_device
from engdiff.knowledge.gpus import gpus, pretended

AMD = [key for key, gpu in gpus().items() if gpu.vendor == "amd"]


def device_of(text: str) -> kit.Device:
    order = pretended_device(pretended(text))
    assert order is not None
    return kit.Device(order)


@pytest.fixture(autouse=True)
def notes(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    made: list[str] = []
    monkeypatch.setattr(kit, "NOTES", made)
    return made


@pytest.mark.parametrize(
    ("text", "gfx", "capability"),
    [
        ("mi300x", "gfx942", (9, 4)),
        ("mi325x", "gfx942", (9, 4)),
        ("mi355x", "gfx950", (9, 5)),
        ("h100-80gb", None, (9, 0)),
    ],
)
def test_an_architecture_has_the_capability_that_hip_gives_it(
    text: str, gfx: str | None, capability: tuple[int, int]
) -> None:
    device = device_of(text)
    assert (device.gfx, device.capability) == (gfx, capability)


@pytest.mark.parametrize("key", AMD)
def test_every_amd_gpu_can_be_pretended(key: str) -> None:
    assert device_of(key).gfx


@pytest.fixture
def amdsmi(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setitem(sys.modules, "amdsmi", types.ModuleType("amdsmi"))
    rocm.pretend_amdsmi(device_of("mi300x:2"))
    return importlib.import_module("amdsmi")


@pytest.mark.parametrize(
    ("ask", "answer"),
    [
        (lambda smi: smi.amdsmi_init(), None),
        (lambda smi: smi.amdsmi_shut_down(), None),
        (lambda smi: len(smi.amdsmi_get_processor_handles()), 2),
        (lambda smi: smi.amdsmi_get_gpu_asic_info(0)["market_name"], "AMD Instinct MI300X"),
        (lambda smi: smi.amdsmi_get_gpu_asic_info(0)["device_id"], "0x74a1"),
        (lambda smi: smi.amdsmi_get_gpu_asic_info(0)["target_graphics_version"], "gfx942"),
        (lambda smi: smi.amdsmi_get_gpu_memory_total(0, smi.AmdSmiMemoryType.VRAM), 206141652992),
        (lambda smi: smi.amdsmi_get_gpu_device_uuid(1), "GPU-pretended-1"),
        (lambda smi: smi.amdsmi_topo_get_link_type(0, 1), {"hops": 1, "type": rocm.XGMI}),
        (lambda smi: smi.amdsmi_topo_get_numa_node_number(1), 0),
        (lambda smi: issubclass(smi.AmdSmiException, Exception), True),
    ],
)
def test_amdsmi_answers_for_every_device(amdsmi: Any, ask: Callable[[Any], object], answer: object) -> None:
    assert ask(amdsmi) == answer


def test_amdsmi_is_found_without_being_imported(amdsmi: Any) -> None:
    assert importlib.util.find_spec("amdsmi")


def test_what_no_fact_states_is_noted(amdsmi: Any, notes: list[str]) -> None:
    amdsmi.amdsmi_get_gpu_asic_info(0)
    amdsmi.amdsmi_topo_get_link_type(0, 1)
    assert [note.split(",")[0] for note in notes] == ["amdsmi: answered by engdiff", "amdsmi", "amdsmi"]
    assert "0x74a1" in notes[1]
    assert "XGMI" in notes[2]


def test_a_device_whose_id_no_engine_lists_goes_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "amdsmi", types.ModuleType("amdsmi"))
    rocm.pretend_amdsmi(device_of("mi355x"))
    told = importlib.import_module("amdsmi").amdsmi_get_gpu_asic_info(0)
    assert (told["market_name"], told["device_id"]) == ("AMD Instinct MI355X", "")


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> Any:
    """As much of torch as is changed: it is not in our environment."""
    module: Any = types.ModuleType("torch")
    module.version = types.SimpleNamespace(cuda="12.8", hip=None)
    module.cuda = types.SimpleNamespace()
    module._dynamo = types.ModuleType("torch._dynamo")
    monkeypatch.setitem(sys.modules, "torch", module)
    monkeypatch.setitem(sys.modules, "torch._dynamo", module._dynamo)
    return module


def test_torch_is_a_rocm_build(torch: Any, notes: list[str]) -> None:
    rocm.pretend_torch(device_of("mi300x:2"))
    known = torch.cuda.get_device_properties(0)
    assert (torch.version.cuda, torch.version.hip) == (None, rocm.HIP)
    assert (known.gcnArchName, known.warp_size, known.multi_processor_count) == ("gfx942:sramecc+:xnack-", 64, 304)
    assert (torch.cuda.get_device_capability(), torch.cuda.get_arch_list()) == ((9, 4), ["gfx942"])
    assert torch.cuda._device_count_amdsmi() == torch.cuda.device_count() == 2
    assert notes == [f"torch.version.hip: {rocm.HIP}"]


def test_torch_for_nvidia_names_no_architecture_of_amd(torch: Any) -> None:
    kit.pretend_torch(device_of("h100-80gb"), "13.0")
    known = torch.cuda.get_device_properties(0)
    assert (torch.version.cuda, torch.version.hip) == ("13.0", None)
    assert (known.gcnArchName, known.warp_size, torch.cuda.get_arch_list()) == ("", 32, ["sm_90"])


@dataclass
class Target:
    backend: str
    arch: int | str
    warp_size: int


@pytest.mark.parametrize(
    ("pretend", "text", "active", "target"),
    [
        (rocm.pretend_triton, "mi355x", "amd", Target("hip", "gfx950", 64)),
        (kit.pretend_triton, "h100-80gb", "nvidia", Target("cuda", 90, 32)),
    ],
)
def test_triton_would_compile_for_the_vendors_device(
    monkeypatch: pytest.MonkeyPatch,
    notes: list[str],
    pretend: Callable[[kit.Device], None],
    text: str,
    active: str,
    target: Target,
) -> None:
    """As much of Triton as is asked: it is not in our environment."""
    known = {name: types.SimpleNamespace(driver=types.SimpleNamespace()) for name in ("nvidia", "amd")}
    chosen: list[kit.TritonDriver] = []
    modules: dict[str, dict[str, Any]] = {
        "triton": {},
        "triton.backends": {"backends": known},
        "triton.backends.compiler": {"GPUTarget": Target},
        "triton.runtime": {"driver": types.SimpleNamespace(set_active=chosen.append)},
    }
    for name, names in modules.items():
        module = types.ModuleType(name)
        vars(module).update(names)
        monkeypatch.setitem(sys.modules, name, module)
    pretend(device_of(text))
    assert [name for name, one in known.items() if one.driver.is_active()] == [active]
    assert chosen[0].get_current_target() == target
    assert notes == [f"Triton's active driver: {active}"]


def test_nvml_finds_no_driver() -> None:
    class NVMLError(Exception):
        """As pynvml's."""

    nvml = types.SimpleNamespace(NVMLError=NVMLError, NVML_ERROR_LIBRARY_NOT_FOUND=12, nvmlInit=lambda: None)
    rocm.without_nvml(nvml)
    with pytest.raises(NVMLError, match="12"):
        nvml.nvmlInit()
