"""What this machine is: the facts that decide which engines run here and how they size themselves.

Everything is read from files and the standard library in milliseconds, but for ``nvidia-smi``, which is asked when it
is there. Nothing here raises: what cannot be known is None or empty.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from engdiff.units import MIB

_FEATURES = re.compile(
    r"sse4_2|avx|avx2|f16c|fma|bmi2|avx512\w*|avx_vnni\w*|avx_ifma|avx_ne_convert|avx10\w*|amx_\w+"
    r"|asimd|asimddp|asimdhp|asimdfhm|fphp|sve|sve2|sve2p1|svei8mm|svebf16|sme|sme2|i8mm|bf16"
)
_NVIDIA_SMI_LIMIT_S = 20.0  # a first call without a persistent driver takes seconds
_GPU_FIELDS = ("name", "memory.total", "driver_version", "compute_cap")
_NO_LIMIT = 2**60  # bytes; cgroups of version 1 say "none" with a number near 2^63


@dataclass(frozen=True)
class Gpu:
    """One GPU. ``memory_bytes`` is what the driver calls total; ``capability`` as in ``9.0``."""

    name: str
    memory_bytes: int | None
    capability: str | None
    driver: str | None


@dataclass(frozen=True)
class Machine:
    """A computer as engines see it.

    ``cpu_count`` is the number of logical CPUs that this process may use (affinity), ``cpu_quota`` the share of them
    that its cgroup grants, in CPUs. ``memory_bytes`` is the smaller of physical memory and cgroup limit, and
    ``memory_source`` says which. ``container`` is a hint. ``gpus_unknown_because`` says why ``gpus`` is empty.
    """

    os: str
    arch: str
    kernel: str
    hostname: str
    python: str
    glibc: str | None
    cpu_model: str | None
    cpu_count: int
    cpus_logical: int | None
    cpus_physical: int | None
    cpu_quota: float | None
    cpu_features: tuple[str, ...]
    memory_bytes: int | None
    memory_source: str | None
    container: str | None
    gpus: tuple[Gpu, ...]
    gpus_unknown_because: str | None


def look() -> Machine:
    """Look at this machine; under 50 ms without ``nvidia-smi``."""
    system = platform.uname()
    cpuinfo = _text("/proc/cpuinfo")
    memory, source = _memory()
    gpus, because = _gpus()
    return Machine(
        os=system.system,
        arch=system.machine,
        kernel=system.release,
        hostname=system.node,
        python=platform.python_version(),
        glibc=_glibc(),
        cpu_model=cpu_model(cpuinfo) or _cpu_model_elsewhere(),
        cpu_count=_usable_cpus(),
        cpus_logical=os.cpu_count(),
        cpus_physical=_physical_cpus(),
        cpu_quota=_cpu_quota(),
        cpu_features=cpu_features(cpuinfo),
        memory_bytes=memory,
        memory_source=source,
        container=_container(os.environ),
        gpus=gpus,
        gpus_unknown_because=because,
    )


def free_disk(folder: Path) -> int | None:
    """Free bytes on the file system that holds a folder, or will when it is made; None when that cannot be told."""
    for place in (folder, *folder.absolute().parents):
        with suppress(OSError):
            return shutil.disk_usage(place).free
    return None


def cpu_features(cpuinfo: str) -> tuple[str, ...]:
    """Those flags of ``/proc/cpuinfo`` that kernels are built for, sorted; empty when there are none to read."""
    line = re.search(r"^(?:flags|Features)\s*:(.*)$", cpuinfo, re.MULTILINE)
    return tuple(sorted({word for word in line[1].split() if _FEATURES.fullmatch(word)})) if line else ()


def cpu_model(cpuinfo: str) -> str | None:
    """Read the CPU's name from ``/proc/cpuinfo``; on ARM, which gives none, its implementer and part."""
    name = re.search(r"^model name\s*:\s*(.+)$", cpuinfo, re.MULTILINE)
    if name:
        return name[1].strip()
    maker = re.search(r"^CPU implementer\s*:\s*(\S+)$", cpuinfo, re.MULTILINE)
    part = re.search(r"^CPU part\s*:\s*(\S+)$", cpuinfo, re.MULTILINE)
    return f"implementer {maker[1]}, part {part[1]}" if maker and part else None


def parse_gpus(output: str) -> tuple[Gpu, ...]:
    """Read what ``nvidia-smi`` prints for our fields as CSV without header and units (memory in MiB)."""
    gpus = []
    for line in output.splitlines():
        words = [word.strip() for word in line.split(",")]
        if len(words) < 3 or not words[0]:
            continue
        # what a GPU cannot tell is "[N/A]"; unified memory, for one
        _, memory, driver, capability = [None if word.startswith("[") else word for word in (*words, "[")[:4]]
        size = int(memory) * MIB if memory and memory.isdigit() else None
        gpus.append(Gpu(words[0], size, capability, driver))
    return tuple(gpus)


def _gpus() -> tuple[tuple[Gpu, ...], str | None]:
    program = shutil.which("nvidia-smi")
    if program is None:
        return (), "nvidia-smi is not installed here"
    because = ""
    for fields in (_GPU_FIELDS, _GPU_FIELDS[:3]):  # drivers before 470 do not know compute_cap
        code, output = _ask([program, f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits"])
        if code == 0:
            gpus = parse_gpus(output)
            return gpus, None if gpus else "nvidia-smi lists no GPU"
        because = because or " ".join(output.split())[:200]
        if "not a valid field" not in output:
            break
    return (), f"nvidia-smi failed: {because}"


def _ask(words: list[str]) -> tuple[int, str]:
    try:
        done = subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=_NVIDIA_SMI_LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return 1, f"no answer within {_NVIDIA_SMI_LIMIT_S:.0f} s"
    except OSError as error:
        return 1, str(error)
    return done.returncode, done.stdout


def _text(path: str | Path) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _glibc() -> str | None:
    """Ask the C library for its version when it is glibc; others do not know the question."""
    with suppress(AttributeError, ValueError, OSError):
        name, _, version = (os.confstr("CS_GNU_LIBC_VERSION") or "").partition(" ")
        return version if name == "glibc" else None
    return None


def _cpu_model_elsewhere() -> str | None:
    if sys.platform == "darwin":
        code, output = _ask(["sysctl", "-n", "machdep.cpu.brand_string"])
        return output.strip() or None if code == 0 else None
    return platform.processor() or None


def _usable_cpus() -> int:
    if hasattr(os, "sched_getaffinity"):
        with suppress(OSError):
            return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _physical_cpus() -> int | None:
    with suppress(psutil.Error, OSError, NotImplementedError):
        return psutil.cpu_count(logical=False)
    return None


def _memory() -> tuple[int | None, str | None]:
    limits: list[tuple[int, str]] = []
    with suppress(psutil.Error, OSError):
        limits.append((psutil.virtual_memory().total, "physical memory"))
    for file in _cgroup_files("memory", "memory.max", "memory.limit_in_bytes"):
        word = _text(file).strip()
        if word.isdigit() and int(word) < _NO_LIMIT:
            limits.append((int(word), f"cgroup limit ({file.name})"))
    return min(limits, default=(None, None), key=lambda limit: limit[0] or 0)


def _cpu_quota() -> float | None:
    """Find the tightest CPU quota of this process's cgroups, in CPUs; None when there is no limit."""
    quotas = []
    for file in _cgroup_files("cpu", "cpu.max", "cpu.cfs_quota_us"):
        words = _text(file).split()
        if file.name != "cpu.max":
            words += _text(file.with_name("cpu.cfs_period_us")).split()
        if len(words) == 2 and all(word.isdigit() for word in words) and int(words[1]):
            quotas.append(int(words[0]) / int(words[1]))
    return min(quotas, default=None)


def _cgroup_files(controller: str, new: str, old: str, root: Path = Path("/sys/fs/cgroup")) -> list[Path]:
    """List the files with a limit for this process: of its cgroup and of those above it, versions 2 and 1."""
    found = []
    for line in _text("/proc/self/cgroup").splitlines():
        _, controllers, path = (*line.split(":", 2), "", "")[:3]
        if controllers and controller not in controllers.split(","):
            continue
        base, name = (root / controller, old) if controllers else (root, new)
        here = base / path.lstrip("/")
        found += [folder / name for folder in (here, *here.parents) if folder == base or base in folder.parents]
    return found


def _container(environ: Mapping[str, str]) -> str | None:
    if "KUBERNETES_SERVICE_HOST" in environ:
        return "kubernetes"
    if Path("/.dockerenv").exists():
        return "docker"
    if Path("/run/.containerenv").exists():
        return "podman"
    groups = _text("/proc/self/cgroup") + environ.get("container", "")
    return next((name for name in ("kubepods", "docker", "containerd", "lxc", "podman") if name in groups), None)
