"""How TensorRT-LLM is started, and what stands in the way of a managed environment."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from engdiff import engines
from engdiff.engines.contract import LaunchPlan, LaunchRequest
from engdiff.engines.probe_kit import OUT
from engdiff.engines.trtllm import launch, plugin, releases
from engdiff.errors import UsageError
from engdiff.machine import Machine, look
from engdiff.redact import REDACTED
from tests.engines.trtllm.standin import interpreter


def plan(
    tmp_path: Path,
    *arguments: str,
    python: Path = Path("/env/bin/python"),
    model: str = "org/model",
    image: str | None = None,
    variables: dict[str, str] | None = None,
) -> LaunchPlan:
    return launch.plan(
        LaunchRequest(
            version="1.2.1",
            distribution="tensorrt-llm",
            device="cuda",
            interpreter=python,
            model=model,
            arguments=arguments,
            variables=variables or {},
            folder=tmp_path / "folder",
            port=4321,
            image=image,
        )
    )


def test_the_script_beside_the_interpreter_serves(tmp_path: Path) -> None:
    python = interpreter(tmp_path / "env", "1.2.1")
    made = plan(tmp_path, "--port", "9", "--tp_size", "2", "--api_key", "hush", python=python)
    assert made.argv == (
        str(tmp_path / "env/bin/trtllm-serve"), "serve", "org/model", "--tp_size", "2", "--api_key", "hush",
        "--host", "127.0.0.1", "--port", "4321",
    )  # fmt: skip
    assert made.native_command == ("trtllm-serve", "org/model", "--tp_size", "2", "--api_key", REDACTED)
    assert made.ready_url == "http://127.0.0.1:4321/health"
    assert list(made.scrape)[-2:] == ["one_token", "metrics"], "the token must come before the statistics of it"


@pytest.mark.parametrize("image", [None, "nvcr.io/nvidia/tensorrt-llm/release:1.2.1"])
def test_without_a_script_and_in_an_image_the_module_serves(tmp_path: Path, image: str | None) -> None:
    script = image is not None  # of the host, which is not in the image
    python = interpreter(tmp_path / "env", "1.2.1", script=script)
    made = plan(tmp_path, python=python, image=image)
    assert made.argv[:5] == (str(python), "-m", "tensorrt_llm.commands.serve", "serve", "org/model")


def test_the_probe_comes_first_on_the_path(tmp_path: Path) -> None:
    made = plan(tmp_path, variables={"PYTHONPATH": "/mine"})
    hook, mine = made.environ["PYTHONPATH"].split(os.pathsep)
    assert mine == "/mine"
    assert {path.name for path in Path(hook).iterdir()} >= {"sitecustomize.py", f"{plugin.MODULE}.py"}
    assert made.environ[OUT] == str(made.probe_output)
    assert made.probe_output.is_dir()
    assert plan(tmp_path, variables={"PYTHONPATH": "/mine"}) == made, "planning twice is no error"


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, {"TLLM_LOG_LEVEL": "INFO", "TRTLLM_NO_USAGE_STATS": "1", "HF_HUB_OFFLINE": None}),
        ({"TLLM_LOG_LEVEL": "DEBUG"}, {"TLLM_LOG_LEVEL": "DEBUG"}),
        ({"TRTLLM_NO_USAGE_STATS": "0"}, {"TRTLLM_NO_USAGE_STATS": "0"}),
        ({"PATH": "/bin"}, {"PATH": f"/env/bin{os.pathsep}/bin"}),
    ],
)
def test_variables(variables: dict[str, str], expected: dict[str, str | None], tmp_path: Path) -> None:
    made = plan(tmp_path, variables=variables)
    assert {name: made.environ.get(name) for name in expected} == expected
    assert set(made.added) <= set(launch.REASONS)
    for name in variables.keys() - {"PATH"}:
        assert name not in made.added


def test_a_local_model_needs_no_hub(tmp_path: Path) -> None:
    assert plan(tmp_path, model=str(tmp_path)).environ["HF_HUB_OFFLINE"] == "1"


def test_only_variables_that_the_engine_reads_are_kept(tmp_path: Path) -> None:
    read = {"TLLM_X": "1", "TRTLLM_Y": "1", "TRT_LLM_Z": "1", "NCCL_DEBUG": "INFO", "OMPI_X": "1", "UCX_TLS": "tcp"}
    made = plan(tmp_path, variables=read | {"EDITOR": "vi", "MY_TLLM_X": "no"})
    assert dict(made.read_variables) == read


def test_a_server_without_http_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--grpc"):
        plan(tmp_path, "--grpc")


# --- environments -----------------------------------------------------------------------------------------------

ENGINE = engines.get("trtllm")


@pytest.fixture
def machine() -> Machine:
    return look()


@pytest.mark.parametrize("version", [*releases.KNOWN, "1.3.0rc20"])
def test_no_release_is_installed_and_the_way_out_is_told(version: str, machine: Machine) -> None:
    found = ENGINE.problem(version, "tensorrt-llm", machine)
    assert found is not None
    for words in ("--python", f"--container {releases.IMAGE}:{version}", "--log"):
        assert words in found.instead


def test_releases_are_newest_first() -> None:
    from packaging.version import Version

    known = ENGINE.known_versions("tensorrt-llm")
    assert list(known) == sorted(known, key=Version, reverse=True)


@pytest.mark.parametrize("wanted", ["cpu", "rocm"])
def test_there_is_no_other_build(wanted: str, machine: Machine) -> None:
    with pytest.raises(UsageError, match=wanted):
        ENGINE.build(machine, wanted)


@pytest.mark.parametrize("wanted", [None, "cuda"])
def test_it_always_computes_on_a_gpu(wanted: str | None, machine: Machine) -> None:
    build = ENGINE.build(machine, wanted)
    assert (build.device, build.distribution) == ("cuda", "tensorrt-llm")
    assert ENGINE.recipe("1.2.1", build, machine).pin == "tensorrt-llm==1.2.1"
