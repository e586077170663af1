"""Runs vLLM's own configuration code against a GPU that is not there: ``python engdiff_vllm_simulate.py ORDER.json``.

Standard library, torch and vLLM only. What a machine with GPUs has and this one lacks is stood in for before vLLM is
imported (compiled extensions, NVML or amdsmi, torch.cuda); then vLLM resolves its arguments as its server would. Each
scenario is resolved in a process of its own, which ends with it, and leaves the files that a probe leaves:
``arguments.json`` and ``core-0.json``, with ``simulation.json`` (what was answered by stand-ins) or ``failure.json``.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import re
import sys
import types
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

if importlib.util.find_spec("engdiff_vllm_probe"):
    import engdiff_pretend_kit as kit
    import engdiff_pretend_rocm as rocm
    import engdiff_simulation_kit as run
    import engdiff_vllm_meta_model as meta_model
    import engdiff_vllm_probe as probe
    from engdiff_probe_kit import attempt, plain, write
else:
    from engdiff.engines import pretend_kit as kit
    from engdiff.engines import pretend_rocm as rocm
    from engdiff.engines import simulation_kit as run
    from engdiff.engines.probe_kit import attempt, plain, write
    from engdiff.engines.vllm import meta_model, probe

NAMESPACES = (
    "_C",
    "_moe_C",
    "_C_cache_ops",
    "_C_cuda_utils",
    "_C_custom_ar",
    "_C_custom_ops",
    "_C_utils",
    "_C_stable_libtorch",
    "_vllm_fa2_C",
    "_vllm_fa3_C",
    "_flashmla_C",
    "_flashmla_extension_C",
    "_qutlass_C",
    "_rocm_C",
)
"""Where vLLM's extensions register their operators (vllm/_custom_ops.py and its like, 0.10.2-0.33.0)."""

EXTENSION = re.compile(
    r"^vllm\.(.*\.)?(_[A-Za-z0-9_]*C[A-Za-z0-9_]*|_rust\w*|_flashmla\w*|cumem_allocator|fs_io_C|spinloop|triton_kernels_C)$"
)
"""Compiled modules of the CUDA wheel; its Python files alone are read here."""

ROCM_EXTENSION = re.compile(
    r"^vllm\.(_rocm_C|_C|_moe_C|_C_stable_libtorch|_moe_C_stable_libtorch|_rust\w*|cumem_allocator|fs_io_C|spinloop)$"
)
"""Those that a build for ROCm has as well (vllm/platforms/rocm.py, vllm/_custom_ops.py 0.10-0.33)."""

CAPABILITY = re.compile(r"supports?_|_supported|is_supported")


def main() -> None:
    """Resolve every scenario of the order."""
    order = kit.read_order(sys.argv[1])
    device = kit.Device(order["device"]) if order["device"] else None
    if device:
        pretend(machine_of(device), device, order["version"])
    import_engine(device)
    sys.exit(run.each_scenario(order, device, resolve))


# --- the machine that is not there ------------------------------------------------------------------------------


class Operator:
    """An operator of an extension that is not there: it exists, says that it is supported, and cannot run."""

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def default(self) -> Operator:
        """Its only overload."""
        return self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __hash__(self) -> int:
        return hash(self.name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Operator) and other.name == self.name

    def __repr__(self) -> str:
        return self.name

    def __call__(self, *args: Any, **kwargs: Any) -> bool:
        """Yes, to a question about support."""
        if not CAPABILITY.search(self.name):
            raise RuntimeError(f"the compiled operator {self.name} was called, and nothing can run here")
        kit.note(f"{self.name}{plain(args)}: true")
        return True


class Operators(types.ModuleType):
    """The operators of one extension."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self.__dict__.setdefault(name, Operator(f"{self.__name__}.{name}"))


def pretend(machine: Machine, device: kit.Device, version: str) -> None:
    """Everything that vLLM asks a machine with GPUs for."""
    machine.pretend(device, version)
    for name in NAMESPACES:
        setattr(sys.modules["torch"].ops, name, Operators(name))
    kit.tolerate_missing_operators(NAMESPACES)


def pretend_cuda(device: kit.Device, version: str) -> None:
    """A machine with NVIDIA's GPUs."""
    kit.EmptyModules(lambda name: bool(EXTENSION.match(name)))
    kernels = kernel_packages()
    run.state_versions({"vllm": version, **kernels})
    import torch

    kit.pretend_torch(device, run.cuda_of(torch.__version__))
    kit.StandInPackages(kernels, answers=kit.of_kernel_packages(device))
    kit.StandInPackages(dict.fromkeys(VENDORED, version), over=True)
    kit.pretend_triton(device)
    kit.pretend_nvml(vendored_nvml(), device)


def pretend_rocm(device: kit.Device, version: str) -> None:
    """A machine with AMD's GPUs, with what the project's own build for ROCm brings."""
    kit.note(ROCM_FILES)
    kit.EmptyModules(lambda name: bool(ROCM_EXTENSION.match(name)))
    shared = {name: release for name, release in kernel_packages().items() if name == "torchvision"}
    run.state_versions({"vllm": version, **shared})
    rocm.pretend_torch(device)
    kit.note(f"{' and '.join(ROCM_PACKAGES)}: to be found, as in the project's build for ROCm")
    kit.StandInPackages({**shared, **ROCM_PACKAGES})
    rocm.pretend_triton(device)
    rocm.pretend_amdsmi(device)
    rocm.without_nvml(vendored_nvml())


@dataclass(frozen=True)
class Machine:
    """One vendor's machine: what is pretended before vLLM is imported, what is imported early, whose wheel is read."""

    pretend: Callable[[kit.Device, str], None]
    early: tuple[str, ...] = ()
    unstated: tuple[str, ...] = ()
    """Libraries of which the wheel that is read does not tell what this machine's asks for."""

    foreign: re.Pattern[str] = re.compile(r"(?!)")
    """Requirements of the wheel that is read which this machine's need not have."""


CUDA = Machine(pretend_cuda)
ROCM = Machine(
    pretend_rocm,
    early=("vllm._aiter_ops",),  # it warns of a HIP runtime that torch has not loaded: no warning of that machine
    unstated=("torch", "torchvision"),
    foreign=re.compile(
        r"nvidia-|nvtx|pynv|torch(audio|codec)$|(flashinfer|quack|humming|tokenspeed|tilelang|apache-tvm|instanttensor)"
    ),
)
"""Requirements by requirements/cuda.txt and rocm.txt 0.33.0: torch is built by the project from sources of its own."""


def machine_of(device: kit.Device) -> Machine:
    """The machine that the device is in."""
    return ROCM if device.gfx else CUDA


KERNEL_PACKAGES = {
    "flashinfer-python": ("flashinfer", "flashinfer_cubin"),
    "humming-kernels": ("humming",),
    "nvidia-cutlass-dsl": ("cutlass",),
    "quack-kernels": ("quack",),
    "tilelang": ("tilelang",),
    "tokenspeed-mla": ("tokenspeed_mla",),
    "torchvision": ("torchvision",),
}
"""What CUDA wheels of vLLM ask for and a CPU environment lacks, by import name. The project's image has the binaries of
FlashInfer beside it (docker/Dockerfile), without which it counts as absent where there is no compiler."""

ROCM_PACKAGES = dict.fromkeys(("aiter", "flash_attn"), "of the project's build for ROCm")
"""What the wheel for ROCm pins and the image has, built for AMD from sources of their own: tools/vllm-rocm/
pin_rocm_dependencies.py and docker/Dockerfile.rocm_base, which alone name their releases. Whether AITER acts is for
VLLM_ROCM_USE_AITER to say."""

ROCM_FILES = "the Python files and common requirements of the wheel for CUDA: that for ROCm is not on the public index"

VENDORED = ("vllm.third_party.deep_gemm", "vllm.third_party.flashmla")
"""Kernel packages inside the wheel: their Python files are here, and what they load is not."""


def kernel_packages() -> dict[str, str]:
    """Import names and releases of the kernel packages that this release pins."""
    found: dict[str, str] = {}
    for name, asked in run.requirements("vllm").items():
        if release := run.pinned(asked):
            found.update(dict.fromkeys(KERNEL_PACKAGES.get(name, ()), release))
    return found


def vendored_nvml() -> Any:
    """VLLM's own copy of pynvml, loaded before vLLM: some releases look for their platform while they are imported."""
    folder = next(p for p in map(Path, sys.path) if (p / "vllm" / "third_party" / "pynvml.py").exists())
    third_party = folder / "vllm" / "third_party"
    spec = importlib.util.spec_from_file_location("vllm.third_party.pynvml", third_party / "pynvml.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    package = types.ModuleType("vllm.third_party")
    package.__path__ = [str(third_party)]
    package.pynvml = module  # type: ignore[attr-defined]
    sys.modules.update({"vllm.third_party": package, "vllm.third_party.pynvml": module})
    spec.loader.exec_module(module)
    return module


def import_engine(device: kit.Device | None) -> None:
    """Import vLLM once for all scenarios."""
    from vllm.platforms import current_platform

    if device:
        for cls in type(current_platform).__mro__:
            if "device_count" in vars(cls):  # it reads what torch keeps inside
                setattr(cls, "device_count", classmethod(lambda cls: device.count))  # noqa: B010
    import vllm.model_executor.models.registry as registry

    if hasattr(registry, "_run_in_subprocess"):
        registry._run_in_subprocess = lambda ask: ask()
    import vllm.engine.arg_utils  # noqa: F401

    if device:
        pretend_host()
        for name in machine_of(device).early:
            import_if_there(name)
    find_parser()


def import_if_there(name: str) -> None:
    """A module of the engine that not every release has."""
    if importlib.util.find_spec(name):
        importlib.import_module(name)


HOST_BYTES = 2 << 40
"""Memory of the machine around the GPUs: enough that no rule about swap space looks at the one that is really here."""


def pretend_host() -> None:
    """Up to 0.15 swap space for each GPU is held against the memory of the host (vllm/config/cache.py)."""

    def get_cpu_memory() -> int:
        kit.note(f"memory of the host: {HOST_BYTES} bytes")
        return HOST_BYTES

    for module in map(sys.modules.get, ("vllm.config.cache", "vllm.config")):
        if hasattr(module, "get_cpu_memory"):
            setattr(module, "get_cpu_memory", get_cpu_memory)  # noqa: B010


def find_parser() -> None:
    """The class of the server's parser where the probe looks for it: up to 0.11 it lay in the package above."""
    place = "vllm.utils.argparse_utils"
    if importlib.util.find_spec(place) is None:
        import vllm.utils

        module = types.ModuleType(place)
        module.FlexibleArgumentParser = vllm.utils.FlexibleArgumentParser  # type: ignore[attr-defined]
        sys.modules[place] = module


# --- one scenario ----------------------------------------------------------------------------------------------


def resolve(scenario: dict[str, Any], device: kit.Device | None) -> None:
    """Resolve one command line and write down what came out."""
    sys.argv = ["vllm", "--model", scenario["model"], *scenario["arguments"]]
    said = run.listened("vllm")
    try:
        config = resolved(probe.front_end_parser().parse_args(sys.argv[1:]))
    except (Exception, SystemExit) as error:
        run.refused(error, said)
        return
    write("arguments", probe.arguments)
    write("core-0", lambda: core(config))
    built = run.built(lambda: meta_model.facts(config)) if device else None
    write("simulation", lambda: simulation(built, said, requirements(device)))


def resolved(arguments: Any) -> Any:
    """What the server makes of its arguments."""
    from vllm.engine.arg_utils import AsyncEngineArgs
    from vllm.usage.usage_lib import UsageContext

    return AsyncEngineArgs.from_cli_args(arguments).create_engine_config(usage_context=UsageContext.OPENAI_API_SERVER)


def core(config: Any) -> dict[str, Any]:
    """What the probe tells of an engine core, as far as the configuration alone decides it."""
    return {
        "config": attempt(lambda: config),
        "variables": attempt(probe.variables),
        "platform": attempt(lambda: type(sys.modules["vllm.platforms"].current_platform)),
        "platform_facts": attempt(probe.platform_facts),
        "runner": probe.runner(config),
        "versions": attempt(probe.versions),
    }


def requirements(device: kit.Device | None) -> dict[str, str]:
    """What the release asks for on that machine, as far as the wheel that is read tells."""
    asked: dict[str, str] = run.requirements("vllm")
    if device is None:
        return asked
    machine = machine_of(device)
    told = {name: "" if name in machine.unstated else release for name, release in asked.items()}
    return {name: release for name, release in told.items() if not machine.foreign.match(name)}


def simulation(built: Any, said: list[str], asked: dict[str, str]) -> dict[str, Any]:
    """What stood in for the engine and for its machine, what was built, and whose libraries answered."""
    return {
        "notes": run.stand_ins(),
        "built": built,
        "said": said,
        "libraries": run.libraries(asked),
    }


if __name__ == "__main__":
    main()
