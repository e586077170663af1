"""How SGLang is started: the words, what engdiff adds on which machine, and what is stood in for."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from engdiff.engines.contract import Build, LaunchPlan, LaunchRequest
from engdiff.engines.sglang import environment, launch, releases
from engdiff.machine import look


def plan(folder: Path, *words: str, version: str = "0.5.23", device: str = "cpu", **variables: str) -> LaunchPlan:
    build = "cpu" if device == "cpu" else "cuda"
    python = Path("/env/bin/python")
    return launch.plan(
        LaunchRequest(version, "sglang", build, python, "org/m", words, variables, folder, 21_000)  # type: ignore[arg-type]
    )


def words_of(made: LaunchPlan) -> list[str]:
    return list(made.argv[5:])


@pytest.mark.parametrize(
    ("version", "device", "given", "expected"),
    [
        ("0.5.23", "cuda", ("--tp", "2"), ["--tp", "2"]),
        ("0.5.23", "cpu", ("--tp", "2"), ["--tp", "2", "--device", "cpu"]),
        ("0.5.23", "cpu", ("--device=cpu",), ["--device=cpu"]),
        ("0.5.23", "cuda", ("--port", "1", "--host=0.0.0.0", "--dtype", "half"), ["--dtype", "half"]),
        (
            "0.4.6",
            "cpu",
            ("--mem-fraction-static", "0.3"),
            [
                *("--mem-fraction-static", "0.3", "--device", "cpu"),
                *("--sampling-backend", "pytorch", "--attention-backend", "torch_native"),
            ],
        ),
        ("0.4.7", "cpu", (), ["--device", "cpu"]),
    ],
)
def test_words(version: str, device: str, given: tuple[str, ...], expected: list[str], tmp_path: Path) -> None:
    made = plan(tmp_path, *given, version=version, device=device)
    assert words_of(made) == [*expected, "--host", "127.0.0.1", "--port", "21000"]
    added = [word for word in expected if word not in given]
    told = " ".join(made.added)
    assert all(word in told for word in added)


def test_a_line_of_the_log_tells_that_it_is_ready_where_it_is_printed(tmp_path: Path) -> None:
    assert plan(tmp_path).ready_text == launch.READY
    assert plan(tmp_path, "--log-level", "error").ready_text == ""


def test_variables(tmp_path: Path) -> None:
    made = plan(tmp_path, SGLANG_USE_CPU_ENGINE="0", PYTHONPATH="/mine", HOME="/root", HF_TOKEN="hf_x")
    assert made.environ["SGLANG_USE_CPU_ENGINE"] == "0"
    assert made.environ["PYTHONPATH"].split(os.pathsep) == [str(tmp_path / "hook"), "/mine"]
    assert made.environ["PATH"].startswith("/env/bin")
    assert set(made.read_variables) == {"SGLANG_USE_CPU_ENGINE", "HF_TOKEN"}
    assert set(made.added) == {"ENGDIFF_PROBE_OUT", "PYTHONPATH", "PATH", "--device cpu"}


def test_stand_ins_are_for_machines_without_a_gpu(tmp_path: Path) -> None:
    for device, there in (("cpu", True), ("cuda", False)):
        folder = tmp_path / device
        folder.mkdir()
        plan(folder, device=device)
        assert (folder / "hook" / "engdiff_sglang_probe.py").exists()
        assert (folder / "hook" / "engdiff_sglang_support.py").exists() is there


ASK = """
import sgl_kernel, sgl_kernel.deep, engdiff_sglang_support as support
print(sgl_kernel.deep.kernel.inner.__name__, support.substituted())
try:
    sgl_kernel.deep.kernel(1)
except NotImplementedError as error:
    print(error)
"""


def test_a_stand_in_says_so_when_it_is_called(tmp_path: Path) -> None:
    plan(tmp_path)
    site = tmp_path / "site"
    (site / "torch").mkdir(parents=True)
    (site / "torch" / "__init__.py").write_text("class _C:\n    class _cpu:\n        pass\n")
    environ = {"PYTHONPATH": f"{tmp_path / 'hook'}{os.pathsep}{site}"}
    done = subprocess.run([sys.executable, "-c", ASK], env=environ, capture_output=True, text=True, check=True)
    first, second = done.stdout.strip().split("\n")
    assert first.startswith("sgl_kernel.deep.kernel.inner ['sgl_kernel', 'sgl_kernel.deep', 'torch._C._cpu._init_amx'")
    assert second == "sgl_kernel.deep.kernel needs CUDA: engdiff has only a stand-in for it on this machine"


def test_what_is_installed_is_never_stood_in_for(tmp_path: Path) -> None:
    plan(tmp_path)
    site = tmp_path / "site"
    site.mkdir()
    (site / "sgl_kernel.py").write_text("value = 'real'\n")
    environ = {"PYTHONPATH": f"{tmp_path / 'hook'}{os.pathsep}{site}"}
    code = "import sgl_kernel, engdiff_sglang_support as s; print(sgl_kernel.value, s.substituted())"
    done = subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, text=True, check=True)
    assert done.stdout == "real []\n"


# --- environment and releases ------------------------------------------------------------------------------------

CPU, CUDA = Build("sglang", "cpu", "test"), Build("sglang", "cuda", "test")


@pytest.mark.parametrize("version", releases.KNOWN)
def test_a_cpu_environment_asks_for_no_kernel_package(version: str) -> None:
    recipe = environment.recipe(version, CPU)
    assert recipe.pin.endswith(f"=={version}")
    assert all(any(line.startswith(f"{name} ;") for line in recipe.overrides) for name in environment.CUDA_ONLY)
    assert f"torch=={environment.TORCH}" in recipe.overrides


@pytest.mark.parametrize(
    ("version", "pin"),
    [
        ("0.4.6", "sglang[openai,srt]==0.4.6"),
        ("0.5.2", "sglang[openai,srt]==0.5.2"),
        ("0.5.3", "sglang==0.5.3"),
        ("0.5.10", "sglang==0.5.10"),
    ],
)
def test_the_server_was_an_extra(version: str, pin: str) -> None:
    assert environment.recipe(version, CPU).pin == pin


def test_an_environment_for_a_gpu_is_what_the_release_asks_for() -> None:
    recipe = environment.recipe("0.5.23", CUDA)
    assert recipe.pin == "sglang==0.5.23"
    assert not recipe.overrides
    assert recipe.key() != environment.recipe("0.5.23", CPU).key()


@pytest.mark.parametrize(
    ("version", "glibc", "os_name", "says"),
    [
        ("0.5.23", "2.36", "Linux", None),
        ("0.5.23", "2.31", "Linux", "glibc"),
        ("0.5.10", "2.31", "Linux", None),
        ("0.4.5", "2.36", "Linux", "0.4.6"),
        ("0.5.23", None, "Darwin", "Linux"),
    ],
)
def test_problem(version: str, glibc: str | None, os_name: str, says: str | None) -> None:
    found = releases.problem(version, replace(look(), glibc=glibc, os=os_name))
    assert (found is None) if says is None else (found is not None and says in found.because)
    assert set(releases.TABLE) <= set(releases.KNOWN)
