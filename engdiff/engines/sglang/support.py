"""Runs inside SGLang's own processes on a machine without a GPU: stands in for what only CUDA has, by name.

Standard library only; this file is copied beside the probe and put on ``PYTHONPATH``
(:mod:`engdiff.engines.sglang.launch`). SGLang imports names of its CUDA kernel package (and up to 0.5.6 of vLLM) on
every device; on a CPU without that package none of them is called. A stand-in is found only where nothing else is,
its functions raise when they are called, and :func:`substituted` tells which were asked for. SGLang's own files,
scheduler, cache, memory pool and server are not touched.
"""

from __future__ import annotations

import functools
import importlib.abc
import importlib.machinery
import sys
import types
from collections.abc import Callable
from importlib import metadata
from typing import Any

KERNELS = "sgl_kernel"
VLLM = "vllm"
VISION = "torchvision._meta_registrations"
VISION_LOADED = "torchvision.extension"

AMX = ("_is_amx_tile_supported", "_is_amx_fp16_supported", "_init_amx")
"""Asked of ``torch._C._cpu`` by 0.4 to 0.5.12, and gone from there in torch 2.13."""

OF_VLLM = ("vllm", "vllm._custom_ops", "vllm.model_executor", "vllm.model_executor.layers")
ITS_LAYERS = {
    "vllm.model_executor.layers.activation": "sglang.srt.layers.activation",
    "vllm.model_executor.layers.layernorm": "sglang.srt.layers.layernorm",
}
"""Up to 0.5.6 SGLang takes these classes from vLLM on a CPU without AMX; its own of the same names do the same."""

ASKED: set[str] = set()


LAST_WITH_VLLM = (0, 5, 6)


def install() -> None:
    """Called once in every process, before SGLang is imported."""
    sys.meta_path.insert(0, VisionFinder())
    sys.meta_path.append(StandIns())


def substituted() -> list[str]:
    """Modules that a stand-in was given for in this process."""
    return sorted(ASKED)


class Missing:
    """A name of a package that is not there: any attribute of it resolves, and calling it raises."""

    def __init__(self, name: str) -> None:
        self.__name__ = self.__qualname__ = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Missing(f"{self.__name__}.{name}")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Refused."""
        raise NotImplementedError(f"{self.__name__} needs CUDA: engdiff has only a stand-in for it on this machine")


class StandIn(types.ModuleType):
    """A module that is not there; its names come from ``give``."""

    def __init__(self, name: str, give: Callable[[str], Any]) -> None:
        super().__init__(name)
        self.__path__: list[str] = []
        self._give = give

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._give(name)


class StandIns(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """The last finder: what gets here nobody else has."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        """Only for names under the packages that are stood in for."""
        of_vllm = fullname in OF_VLLM or fullname in ITS_LAYERS
        if fullname.partition(".")[0] == KERNELS or (of_vllm and asks_vllm()):
            return importlib.machinery.ModuleSpec(fullname, self, is_package=True)
        return None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        """A module that knows what it stands for."""
        ASKED.add(spec.name)
        own = ITS_LAYERS.get(spec.name)
        if own:
            return StandIn(spec.name, lambda name: getattr(sys.modules[own], name))
        return StandIn(spec.name, lambda name: Missing(f"{spec.name}.{name}"))

    def exec_module(self, module: types.ModuleType) -> None:
        """Nothing is run; the questions about AMX are answered as of a build without its kernels."""
        if module.__name__ == KERNELS:
            module.__version__ = "0"  # type: ignore[attr-defined]
            answer_for_amx()


@functools.cache
def asks_vllm() -> bool:
    """Whether this release takes classes from vLLM on a CPU; later ones only look whether it is there."""
    return tuple(int(part) for part in metadata.version("sglang").split(".")[:3]) <= LAST_WITH_VLLM


def answer_for_amx() -> None:
    """No kernels for AMX are here, whatever the CPU has."""
    import torch

    for name in AMX:
        if not hasattr(torch._C._cpu, name):
            setattr(torch._C._cpu, name, lambda: False)
            ASKED.add(f"torch._C._cpu.{name}")


class VisionFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Torchvision of a CUDA build beside torch of a CPU build: its operators cannot load; nothing is said of them."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        """Only for the module that describes operators, and only where they did not load."""
        loaded = sys.modules.get(VISION_LOADED)
        if fullname != VISION or loaded is None or loaded._has_ops():
            return None
        ASKED.add(fullname)
        return importlib.machinery.ModuleSpec(fullname, self)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        """An empty one."""
        return types.ModuleType(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        """Nothing to run."""
