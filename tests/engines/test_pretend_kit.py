"""A device that is not there: what stands in for NVML, nvidia-smi and packages of kernels answers as it was told."""

from __future__ import annotations

import importlib
import subprocess
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engdiff.engines import pretend_kit as kit
from engdiff.engines.simulating import pretended_device
from engdiff.knowledge.gpus import pretended


@pytest.fixture
def device() -> kit.Device:
    order = pretended_device(pretended("h100-80gb:2"))
    assert order is not None
    return kit.Device(order)


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(kit, "NOTES", [])
    before, modules = list(sys.meta_path), set(sys.modules)
    yield
    sys.meta_path[:] = before
    for name in set(sys.modules) - modules:
        del sys.modules[name]


def test_this_machine_as_it_is_is_no_device() -> None:
    assert pretended_device(None) is None


def test_nvml_answers_for_every_device(device: kit.Device) -> None:
    nvml: Any = types.SimpleNamespace()
    kit.pretend_nvml(nvml, device)
    handle = nvml.nvmlDeviceGetHandleByIndex(1)
    assert nvml.nvmlDeviceGetCount() == 2
    assert nvml.nvmlDeviceGetName(handle) == "NVIDIA H100 80GB HBM3"
    assert nvml.nvmlDeviceGetCudaComputeCapability(handle) == (9, 0)
    assert nvml.nvmlDeviceGetMemoryInfo(handle).total == 81559 << 20


@pytest.mark.parametrize(
    ("asked", "line"),
    [("memory.total", "81559"), ("compute_cap", "9.0"), ("name", "NVIDIA H100 80GB HBM3"), ("power.draw", "")],
)
def test_nvidia_smi_has_a_line_for_each_device(
    device: kit.Device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: str, line: str
) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    kit.pretend_nvidia_smi(device, tmp_path)
    ran = subprocess.run(["nvidia-smi", f"--query-gpu={asked}"], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines() == [line, line]


def test_a_package_of_kernels_can_be_imported_and_not_run() -> None:
    kit.StandInPackages({"kernels_of_nobody": "1.2"})
    module = importlib.import_module("kernels_of_nobody.attention")
    assert module.__version__ == "1.2"

    class Layer(module.Base):  # type: ignore[misc, name-defined]
        """Subclassing what is not there."""

    assert module.jit(Layer) is Layer
    with pytest.raises(NotImplementedError, match=r"kernels_of_nobody\.attention\.launch"):
        module.launch(1, 2)
    assert kit.NOTES == ["kernels_of_nobody 1.2: importable"]


def test_a_package_that_is_there_is_not_stood_in_for() -> None:
    kit.StandInPackages({"json": "1"})
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("json.kernels")
    assert kit.NOTES == []


def test_python_files_whose_kernels_are_missing_are() -> None:
    kit.StandInPackages({"json.kernels": "3"}, over=True)
    assert importlib.import_module("json.kernels").anything


def test_compiled_modules_are_empty() -> None:
    kit.EmptyModules(lambda name: name.endswith("._C"))
    importlib.import_module("json._C")
    assert kit.NOTES == ["json._C: importable, and empty"]
