"""Recorded samples of /proc/cpuinfo and nvidia-smi; and this very machine."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from engdiff import machine
from engdiff.machine import Gpu, cpu_features, cpu_model, free_disk, look, parse_gpus
from engdiff.units import MIB

SAPPHIRE_RAPIDS = """processor\t: 0
vendor_id\t: GenuineIntel
model name\t: Intel(R) Xeon(R) Processor
flags\t\t: fpu sse sse2 ss ht cx16 sse4_1 sse4_2 avx f16c rdrand bmi1 avx2 smep bmi2 avx512f avx512dq clwb avx512bw \
avx512vl avx_vnni avx512_bf16 gfni vaes avx512_vnni amx_bf16 avx512_fp16 amx_tile amx_int8 arch_capabilities
bugs\t\t: spectre_v1

processor\t: 1
model name\t: Intel(R) Xeon(R) Processor
flags\t\t: fpu sse
"""
OLD_PC = "model name\t: Intel(R) Core(TM) i5-2500K CPU @ 3.30GHz\nflags\t\t: fpu sse4_1 sse4_2 popcnt avx\n"
GRACE = """processor\t: 0
BogoMIPS\t: 2000.00
Features\t: fp asimd evtstrm aes crc32 atomics fphp asimdhp cpuid asimddp sve asimdfhm sve2 svebf16 i8mm bf16 dgh
CPU implementer\t: 0x41
CPU architecture: 8
CPU part\t: 0xd4f
"""


@pytest.mark.parametrize(
    ("cpuinfo", "model", "features"),
    [
        (
            SAPPHIRE_RAPIDS,
            "Intel(R) Xeon(R) Processor",
            "amx_bf16 amx_int8 amx_tile avx avx2 avx512_bf16 avx512_fp16 avx512_vnni avx512bw avx512dq avx512f "
            "avx512vl avx_vnni bmi2 f16c sse4_2",
        ),
        (OLD_PC, "Intel(R) Core(TM) i5-2500K CPU @ 3.30GHz", "avx sse4_2"),
        (
            GRACE,
            "implementer 0x41, part 0xd4f",
            "asimd asimddp asimdfhm asimdhp bf16 fphp i8mm sve sve2 svebf16",
        ),
        ("", None, ""),
    ],
)
def test_cpu(cpuinfo: str, model: str | None, features: str) -> None:
    assert cpu_model(cpuinfo) == model
    assert cpu_features(cpuinfo) == tuple(features.split())


@pytest.mark.parametrize(
    ("output", "gpus"),
    [
        (
            "NVIDIA H100 80GB HBM3, 81559, 550.54.15, 9.0\n",
            [Gpu("NVIDIA H100 80GB HBM3", 81559 * MIB, "9.0", "550.54.15")],
        ),
        (
            "NVIDIA L4, 23034, 535.183.01, 8.9\nNVIDIA L4, 23034, 535.183.01, 8.9\n",
            [Gpu("NVIDIA L4", 23034 * MIB, "8.9", "535.183.01")] * 2,
        ),
        ("NVIDIA GB10, [N/A], 580.95.05, 12.1\n", [Gpu("NVIDIA GB10", None, "12.1", "580.95.05")]),
        ("Tesla T4, 15109, 450.51.06\n", [Gpu("Tesla T4", 15109 * MIB, None, "450.51.06")]),
        ("No devices were found\n", []),
        ("", []),
    ],
)
def test_gpus(output: str, gpus: list[Gpu]) -> None:
    assert parse_gpus(output) == tuple(gpus)


@pytest.mark.skipif(os.name != "posix", reason="a shell script stands in for nvidia-smi")
@pytest.mark.parametrize(
    ("script", "count", "because"),
    [
        ("echo 'NVIDIA L4, 23034, 535.183.01, 8.9'", 1, None),
        ("case $1 in *compute_cap*) echo 'Field \"compute_cap\" is not a valid field to query.'; exit 2;; esac\n"
         "echo 'Tesla T4, 15109, 450.51.06'", 1, None),
        ("echo 'No devices were found'", 0, "nvidia-smi lists no GPU"),
        ("echo 'NVIDIA-SMI has failed: no driver'; exit 9", 0, "nvidia-smi failed: NVIDIA-SMI has failed: no driver"),
        ("sleep 60", 0, "nvidia-smi failed: no answer within 0 s"),
    ],
)  # fmt: skip
def test_nvidia_smi(
    script: str, count: int, because: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text(f"#!/bin/sh\n{script.replace('sleep', 'exec sleep')}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    if "sleep" in script:
        monkeypatch.setattr(machine, "_NVIDIA_SMI_LIMIT_S", 0.2)
    found = look()
    assert len(found.gpus) == count
    assert found.gpus_unknown_because == because


def test_without_nvidia_smi(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    look()
    began = time.perf_counter()
    found = look()
    assert time.perf_counter() - began < 1  # it takes a millisecond; the machine may be busy
    assert found.gpus == ()
    assert found.gpus_unknown_because == "nvidia-smi is not installed here"
    assert found.cpu_count >= 1
    assert found.memory_bytes
    assert found.memory_source


def test_the_tightest_cgroup_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {
        "/proc/self/cgroup": "4:memory:/pod/one\n3:cpu,cpuacct:/pod\n0::/pod/one\n",
        "/sys/fs/cgroup/pod/one/memory.max": "max\n",
        "/sys/fs/cgroup/pod/memory.max": "1048576\n",
        "/sys/fs/cgroup/memory/pod/one/memory.limit_in_bytes": "9223372036854771712\n",
        "/sys/fs/cgroup/memory/memory.limit_in_bytes": "2097152\n",
        "/sys/fs/cgroup/pod/cpu.max": "150000 100000\n",
        "/sys/fs/cgroup/cpu/pod/cpu.cfs_quota_us": "-1\n",
        "/sys/fs/cgroup/cpu/pod/cpu.cfs_period_us": "100000\n",
    }
    monkeypatch.setattr(machine, "_text", lambda path: files.get(Path(path).as_posix(), ""))
    found = look()
    assert found.memory_bytes == 1048576
    assert found.memory_source == "cgroup limit (memory.max)"
    assert found.cpu_quota == 1.5


def test_free_disk(tmp_path: Path) -> None:
    free = free_disk(tmp_path / "not" / "made yet")
    assert free is not None
    assert free > 0


@pytest.mark.skipif(os.name != "posix", reason="getconf")
def test_glibc_is_what_getconf_says() -> None:
    done = subprocess.run(["getconf", "GNU_LIBC_VERSION"], capture_output=True, text=True, check=False)
    expected = done.stdout.split()[1] if done.returncode == 0 and done.stdout.startswith("glibc") else None
    assert look().glibc == expected
