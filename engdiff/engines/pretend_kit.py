"""What simulations have in common: a GPU that is not there, as torch, NVML and nvidia-smi show it. Runs in the engine.

Standard library and torch only; it is copied beside the simulation as ``engdiff_pretend_kit.py``. It answers what an
engine's configuration code asks a device for (name, capability, memory, count) and nothing else: no kernel can run.
Every answer that is neither the engine's nor a fact of the pretended GPU is noted in :data:`NOTES`.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import json
import os
import socket
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

NOTES: list[str] = []
"""Answers of stand-ins, each once, in the order in which they were asked for."""

MIB = 1 << 20
COUNT = "ENGDIFF_PRETENDED_COUNT"
"""The variable that tells the pretended nvidia-smi how many devices there are."""

TAKEN_SHARE = 0.01
"""Part of the memory that is shown as taken, as by a driver: no rule of a configuration looks at it so closely."""


def note(text: str) -> None:
    """Remember an answer of a stand-in."""
    if text not in NOTES:
        NOTES.append(text)


class Device:
    """The pretended GPU and how many of it there are, from the order that engdiff wrote."""

    def __init__(self, order: dict[str, Any]) -> None:
        self.name: str = order["name"]
        self.capability: tuple[int, int] = tuple(order["compute_capability"])
        self.memory_bytes: int = order["memory_bytes"]
        self.usable_bytes: int = order.get("usable_bytes") or order["memory_bytes"]
        self.multiprocessors: int | None = order.get("multiprocessors")
        self.l2_cache_bytes: int | None = order.get("l2_cache_bytes")
        self.shared_memory_bytes: int | None = order.get("shared_memory_per_block_optin_bytes")
        self.linked: bool | None = order.get("nvlink")
        self.gfx: str | None = order.get("gfx")
        self.show(order["count"])

    def show(self, count: int) -> None:
        """From now on there are so many of it."""
        self.count = count
        os.environ[COUNT] = str(count)

    @property
    def free_bytes(self) -> int:
        """Memory that nobody has taken yet."""
        return int(self.usable_bytes * (1 - TAKEN_SHARE))


def read_order(path: str) -> dict[str, Any]:
    """What engdiff wants resolved."""
    order: dict[str, Any] = json.loads(Path(path).read_text(encoding="utf-8"))
    return order


# --- torch -----------------------------------------------------------------------------------------------------


def pretend_torch(device: Device, cuda: str) -> None:
    """Torch as a CUDA build on a machine with this device. Call it before the engine is imported."""
    import torch
    import torch._dynamo  # its internals are imported in their honest state

    torch.version.cuda = cuda
    note(f"torch.version.cuda: {cuda}")
    answer_for_devices(device, "sm_{}{}".format(*device.capability), gcnArchName="", warp_size=32)


def answer_for_devices(device: Device, architecture: str | None, **properties: Any) -> None:
    """What torch says of devices; ``properties``: those that differ between one vendor's torch and another's."""
    import torch

    known = _properties(device, properties)
    answers: dict[str, Callable[..., Any]] = {
        "is_available": lambda: True,
        "is_initialized": lambda: False,
        "init": lambda: None,
        "_lazy_init": lambda: None,
        "device_count": lambda: device.count,
        "_device_count_nvml": lambda: device.count,
        "current_device": lambda: 0,
        "set_device": lambda device: None,
        "synchronize": lambda device=None: None,
        "empty_cache": lambda: None,
        "memory_allocated": lambda device=None: 0,
        "memory_reserved": lambda device=None: 0,
        "mem_get_info": lambda d=None: (device.free_bytes, device.usable_bytes),
        "get_device_name": lambda d=None: device.name,
        "get_device_capability": lambda d=None: device.capability,
        "get_device_properties": lambda d=None: known,
        "get_arch_list": lambda: [architecture],
        "can_device_access_peer": lambda a, b: True,
        "is_bf16_supported": lambda *a, **k: device.capability[0] >= 8,
    }
    for name, answer in answers.items():
        setattr(torch.cuda, name, answer)
    accelerator = getattr(torch, "accelerator", None)
    for name, value in {"is_available": True, "device_count": device.count, "current_device_index": 0}.items():
        if hasattr(accelerator, name):
            setattr(accelerator, name, lambda value=value: value)


def _properties(device: Device, others: dict[str, Any]) -> Any:
    """Device properties as torch gives them; one that no source states is not there."""
    stated = {
        "multi_processor_count": device.multiprocessors,
        "L2_cache_size": device.l2_cache_bytes,
        "shared_memory_per_block_optin": device.shared_memory_bytes,
    }
    return types.SimpleNamespace(
        name=device.name,
        major=device.capability[0],
        minor=device.capability[1],
        total_memory=device.usable_bytes,
        is_integrated=0,
        is_multi_gpu_board=0,
        uuid="GPU-pretended",
        **others,
        **{name: value for name, value in stated.items() if value is not None},
    )


def tolerate_missing_operators(namespaces: tuple[str, ...] = ()) -> None:
    """Let ``torch.library`` accept shapes of operators that an absent kernel package would have registered.

    ``namespaces``: those whose operators are never looked up; of others only the missing ones are let pass.
    """
    import torch

    for name in ("register_fake", "impl_abstract"):
        real = getattr(torch.library, name, None)
        if real is not None:
            setattr(torch.library, name, _tolerant(real, namespaces))


def _tolerant(real: Any, namespaces: tuple[str, ...]) -> Any:
    def register(op: Any, func: Any = None, /, **kwargs: Any) -> Any:
        def decorate(function: Any) -> Any:
            if isinstance(op, str) and op.split("::")[0] in namespaces:
                return function
            try:
                return real(op, function, **kwargs)
            except RuntimeError as error:
                if "does not exist" not in str(error):
                    raise
                return function

        return decorate if func is None else decorate(func)

    return register


class Nothing:
    """A stream or an event of a device that is not there."""

    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *args, **kwargs: None


def pretend_streams() -> None:
    """Streams and events that do nothing: what is built waits for none."""
    import torch

    torch.cuda.Stream = torch.cuda.Event = Nothing
    torch.cuda.current_stream = lambda *args, **kwargs: Nothing()


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


# --- Triton ----------------------------------------------------------------------------------------------------


def pretend_triton(device: Device) -> None:
    """Triton whose active driver is NVIDIA's, for this device."""
    major, minor = device.capability
    activate_triton("nvidia", TritonDriver(device, ("cuda", major * 10 + minor, 32)))


def activate_triton(vendor: str, active: TritonDriver) -> None:
    """Triton with one active driver; without one engines take Triton for absent."""
    from triton.backends import backends
    from triton.runtime import driver

    for name, backend in backends.items():
        if backend.driver is not None:
            backend.driver.is_active = staticmethod(lambda name=name: name == vendor)
    driver.set_active(active)
    note(f"Triton's active driver: {vendor if vendor in backends else 'none, it has no such backend'}")


class TritonDriver:
    """What is asked of Triton's driver before anything is compiled.

    ``target``: what it would compile for, as Triton writes it: backend, architecture, threads that run in step.
    """

    def __init__(self, device: Device, target: tuple[str, int | str | None, int]) -> None:
        self.device = device
        self.target = target

    def get_current_target(self) -> Any:
        """The kind of device that Triton would compile for."""
        from triton.backends.compiler import GPUTarget

        return GPUTarget(*self.target)

    def get_current_device(self) -> int:
        """The first one."""
        return 0

    def get_device_interface(self) -> Any:
        """Torch's."""
        import torch

        return torch.cuda

    @property
    def utils(self) -> Any:
        """Properties as the driver gives them; one that no source states is not there."""
        stated = {
            "multiprocessor_count": self.device.multiprocessors,
            "max_shared_mem": self.device.shared_memory_bytes,
        }
        known = {name: value for name, value in stated.items() if value is not None}
        return types.SimpleNamespace(get_device_properties=lambda index: known)


# --- NVML and nvidia-smi ---------------------------------------------------------------------------------------


class Handle(int):
    """A device of NVML."""


DRIVER = "580.00"
CUDA_DRIVER = 13000
"""What the pretended driver calls itself; engines only ask whether it is new enough."""


def pretend_nvml(module: Any, device: Device) -> None:
    """NVML (a pynvml module) on a machine with this device."""
    memory = types.SimpleNamespace(
        total=device.memory_bytes,
        free=int(device.memory_bytes * (1 - TAKEN_SHARE)),
        used=int(device.memory_bytes * TAKEN_SHARE),
    )
    answers: dict[str, Callable[..., Any]] = {
        "nvmlInit": lambda *a, **k: None,
        "nvmlShutdown": lambda *a, **k: None,
        "nvmlDeviceGetCount": lambda: device.count,
        "nvmlDeviceGetHandleByIndex": lambda i: Handle(i),
        "nvmlDeviceGetHandleByUUID": lambda u: Handle(0),
        "nvmlDeviceGetIndex": lambda h: int(h),
        "nvmlDeviceGetCudaComputeCapability": lambda h: device.capability,
        "nvmlDeviceGetName": lambda h: device.name,
        "nvmlDeviceGetUUID": lambda h: f"GPU-pretended-{int(h)}",
        "nvmlDeviceGetMemoryInfo": lambda h, *a, **k: memory,
        "nvmlDeviceGetP2PStatus": lambda *a: _linked(device),
        "nvmlDeviceGetNumaNodeId": lambda h: 0,
        "nvmlSystemGetDriverVersion": lambda: DRIVER,
        "nvmlSystemGetCudaDriverVersion": lambda: CUDA_DRIVER,
    }
    for name, answer in answers.items():
        setattr(module, name, answer)


def _linked(device: Device) -> int:
    """NVML's word for whether two devices are linked: 0 is yes."""
    if device.linked is None:
        note("NVLink between the devices: none, as no source states any")
    return 0 if device.linked else 1


def pretend_nvidia_smi(device: Device, folder: Path) -> None:
    """A program of that name, first on the PATH, that answers what engines ask it for."""
    folder.mkdir(parents=True, exist_ok=True)
    answers = {
        "memory.total": str(device.memory_bytes // MIB),
        "compute_cap": "{}.{}".format(*device.capability),
        "driver_version": DRIVER,
        "name": device.name,
    }
    cases = "".join(f" *{asked}*) v='{answer}';;\n" for asked, answer in answers.items())
    script = folder / "nvidia-smi"
    script.write_text(
        f'#!/bin/sh\ncase "$*" in\n{cases} *) v="";;\nesac\n'
        f'i=0; while [ $i -lt ${COUNT} ]; do echo "$v"; i=$((i+1)); done\n',
        encoding="utf-8",
    )
    script.chmod(0o755)
    os.environ["PATH"] = os.pathsep.join((str(folder), os.environ.get("PATH", "")))


# --- compiled modules ------------------------------------------------------------------------------------------


class EmptyModules(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Empty modules in place of compiled ones that are not there; ``wanted`` tells which names."""

    def __init__(self, wanted: Callable[[str], bool]) -> None:
        self.wanted = wanted
        sys.meta_path.insert(0, self)

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        """An empty module for a wanted name."""
        return importlib.machinery.ModuleSpec(fullname, self) if self.wanted(fullname) else None

    def create_module(self, spec: Any) -> types.ModuleType:
        """The empty module."""
        note(f"{spec.name}: importable, and empty")
        return types.ModuleType(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        """Nothing is in it."""


# --- packages of kernels ---------------------------------------------------------------------------------------


class Absent:
    """A name of a package that is not there: it can be passed round, subclassed and asked for names, and not called."""

    def __init__(self, name: str) -> None:
        self.__name__ = self.__qualname__ = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Absent(f"{self.__name__}.{name}")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """A decorator gives back what it decorates; anything else is refused."""
        if len(args) == 1 and not kwargs and isinstance(args[0], types.FunctionType | type):
            return args[0]
        raise NotImplementedError(f"{self.__name__} is a stand-in: nothing can run on a device that is not there")

    def __getitem__(self, key: Any) -> Any:
        return self

    def __or__(self, other: Any) -> Any:
        return self

    __ror__ = __or__

    def __mro_entries__(self, bases: Any) -> tuple[type, ...]:
        return ()


class StandInPackages(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Packages that a GPU machine has and this one lacks, by import name, with their releases.

    ``over``: they are given even where the package is found: its Python files are there and cannot load its kernels.
    ``answers``: functions that tell a fact of the device, by dotted name.
    """

    def __init__(
        self, releases: dict[str, str], *, over: bool = False, answers: dict[str, Callable[..., Any]] | None = None
    ) -> None:
        self.releases = releases
        self.answers = answers or {}
        sys.meta_path.insert(0 if over else len(sys.meta_path), self)

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        """A stand-in, unless the package itself is there and only lacks this module."""
        package = self._package(fullname)
        if package is None:
            return None
        inside = sys.modules.get(package)
        if inside is not None and not isinstance(inside.__loader__, StandInPackages):
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def _package(self, fullname: str) -> str | None:
        return next((name for name in self.releases if f"{fullname}.".startswith(f"{name}.")), None)

    def create_module(self, spec: Any) -> types.ModuleType:
        """A module whose names are all there."""
        package = self._package(spec.name)
        assert package is not None
        note(f"{package} {self.releases[package]}: importable")
        module = types.ModuleType(spec.name)
        module.__path__ = []
        module.__version__ = self.releases[package]  # type: ignore[attr-defined]
        module.__getattr__ = _names_of(spec.name, self.answers)  # type: ignore[method-assign]
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        """Nothing is in it."""


def _names_of(module: str, answers: dict[str, Callable[..., Any]]) -> Callable[[str], Any]:
    def name_of(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        full = f"{module}.{name}"
        if full in answers:
            note(f"{full}: answered by engdiff, from the GPU's facts or with nothing")
            return answers[full]
        return Absent(full)

    return name_of


def of_kernel_packages(device: Device) -> dict[str, Callable[..., Any]]:
    """What kernel packages tell of a device without running a kernel (flashinfer/utils.py 0.2-0.6; deep_gemm 2.0).

    The size of FlashInfer's own counters is said to be nothing: it is no part of the weights or of the cache.
    """
    answers: dict[str, Callable[..., Any]] = {
        "flashinfer.utils.get_trtllm_gen_multi_ctas_kv_counter_bytes": lambda *args, **kwargs: 0,
    }
    if device.multiprocessors is not None:
        for name in ("flashinfer.utils.get_device_sm_count", "deep_gemm.get_num_sms"):
            answers[name] = lambda *args, **kwargs: device.multiprocessors
    return answers
