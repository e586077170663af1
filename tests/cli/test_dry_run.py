"""``capture --dry-run`` and ``--container``: one line on standard output, notes beside it; words that do not fit."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from engdiff.machine import Gpu
from tests.cli.conftest import Call, Ended

H200 = Gpu("NVIDIA H200", 1, "9.0", "570")


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """One GPU, no docker, and a shell without variables of engines."""
    monkeypatch.setattr("engdiff.machine._gpus", lambda: ((H200,), None))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    for name in list(os.environ):
        if name.startswith(("HF_", "XDG_", "CUDA_", "VLLM_", "LLAMA_")) or name in ("PYTHONPATH", "VIRTUAL_ENV"):
            monkeypatch.delenv(name)


@pytest.fixture
def docker(tmp_path: Path) -> None:
    """One that has no images."""
    program = tmp_path / "bin" / "docker"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\nif [ \"$1\" = --version ]; then echo 'Docker version 28.2.2'; else exit 1; fi\n")
    program.chmod(0o755)


def words(ended: Ended) -> list[str]:
    assert ended.code == 0, ended.err
    assert ended.out.count("\n") == 1
    return shlex.split(ended.out)


def test_the_command_of_a_container(call: Call, docker: None, tmp_path: Path) -> None:
    ended = call(
        "capture", "vllm@0.33.0", "--model", "org/m", "--container", "default", "--dry-run", "--", "--dtype", "half"
    )
    made = words(ended)
    assert made[:4] == ["docker", "run", "--rm", "--init"]
    assert made[made.index("--gpus") + 1] == "all"
    image = made.index("vllm/vllm-openai:v0.33.0")
    assert made[image - 2 : image] == ["--entrypoint", "python3"]
    assert made[image + 1 :][:6] == ["-m", "vllm.entrypoints.openai.api_server", "--model", "org/m", "--dtype", "half"]
    assert ended.err.startswith("note: ")
    assert "holds the probe that the command uses; afterwards: engdiff capture --probe" in ended.err


def test_without_docker_it_is_shown_all_the_same(call: Call) -> None:
    ended = call("capture", "llamacpp@2026.4.8929", "--model", "tiny", "--container", "default", "--dry-run")
    made = words(ended)
    assert made[0] == "docker"
    assert "ghcr.io/ggml-org/llama.cpp:server-cuda-b8929" in made
    assert ended.err == "note: neither docker nor podman is installed here; the command is shown for docker\n"


def test_without_a_container_it_is_the_engines_own_command(call: Call, tmp_path: Path) -> None:
    ended = call(
        "capture", "vllm@0.32.0", "--model", "tiny", "--env", "VLLM_X=a b", "--dry-run", "--", "--max-num-seqs", "8"
    )
    made = words(ended)
    at = made.index("-m")
    interpreter = Path(made[at - 1])
    assert made[0] == "env"
    assert "VLLM_X=a b" in made[:at]
    assert any(word.startswith("ENGDIFF_PROBE_OUT=") for word in made[:at])
    assert interpreter.is_relative_to(tmp_path / "cache" / "envs")
    assert interpreter.parent.parent.name.startswith("vllm-0.32.0-")
    assert made[at + 4 :][:2] == ["--max-num-seqs", "8"]
    assert "note: the environment of vllm 0.32.0 is not made yet; it would be where shown\n" in ended.err
    assert not (tmp_path / "cache" / "envs").exists()


def test_what_another_interpreter_must_not_see_is_unset(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VIRTUAL_ENV", "/some/venv")
    monkeypatch.setenv("LOUD", "1")
    ended = call("capture", "llamacpp@2026.9.11063", "--model", "tiny", "--dry-run", "--env", "LOUD=2")
    assert words(ended)[:4] == ["env", "-u", "VIRTUAL_ENV", "LOUD=2"]


def test_the_command_does_what_it_says(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An interpreter that is there, pasted: the very variables and words."""
    ended = call("capture", "vllm@0.32.0", "--model", "tiny", "--dry-run", "--env", "VLLM_X=it's")
    made = words(ended)
    python = Path(made[made.index("-m") - 1])
    python.parent.mkdir(parents=True)
    python.write_text(
        f"#!{sys.executable}\nimport os, sys\nprint(os.environ['VLLM_X'], os.environ['PYTHONPATH'], sys.argv)"
    )
    python.chmod(0o755)
    done = subprocess.run(
        ["/bin/sh", "-c", f"PATH=/usr/bin:/bin; {ended.out}"], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith(f"it's {tmp_path}/engdiff-dry-")
    assert "'--host', '127.0.0.1'" in done.stdout


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["capture", "--log", "x.log", "--dry-run"], "--dry-run shows how an engine would be started"),
        (["capture", "--log", "x.log", "--container", "default"], "--container starts an engine"),
        (["capture", "vllm", "--model", "tiny", "--python", "p", "--container", "i"], "--python and --container"),
        (["capture", "vllm@0.33.0", "--model", "tiny", "--container", "i"], "neither docker nor podman is on the PATH"),
        (["capture", "vllm@0.32.0", "--model", "m", "--container", "vllm/vllm-openai:v0.33.0", "--dry-run"],
         "vllm/vllm-openai:v0.33.0 has vLLM 0.33.0, not 0.32.0"),
        (["capture", "vllm@new", "--model", "m", "--container", "vllm/vllm-openai:v0.33.0", "--dry-run"],
         "`new` is not a version of vLLM"),
        (["capture", "trtllm@1.3.0rc21", "--model", "m", "--dry-run", "--container",
          "nvcr.io/nvidia/tensorrt-llm/release:1.3.0rc22"], "has TensorRT-LLM 1.3.0rc22, not 1.3.0rc21"),
        (["diff", "http://127.0.0.1:1", "http://127.0.0.1:2", "--container", "default"], "is the image of one engine"),
        (["diff", "vllm@0.32.0", "vllm@0.33.0", "--model", "tiny", "--container", "i"], "is the image of one engine"),
    ],
)  # fmt: skip
def test_words_that_do_not_go_together(call: Call, given: list[str], said: str) -> None:
    ended = call(*given)
    assert ended.code in (2, 5)
    assert ended.out == ""
    assert said in ended.err


COMPOSE = """
services:
  llm:
    image: mirror.example/vllm/vllm-openai:v0.31.0
    command: ["--model", "org/m", "--max-num-seqs", "4"]
    environment: {VLLM_LOGGING_LEVEL: "DEBUG", HF_TOKEN: "hf_abcdefghijklmnopqrstuv"}
"""


@pytest.mark.parametrize(
    ("container", "image"), [("default", "mirror.example/vllm/vllm-openai:v0.31.0"), ("mine/vllm:7", "mine/vllm:7")]
)
def test_the_image_of_a_deployment(call: Call, docker: None, tmp_path: Path, container: str, image: str) -> None:
    (tmp_path / "compose.yaml").write_text(COMPOSE)
    ended = call("capture", "--like", "compose.yaml", "--container", container, "--dry-run")
    made = words(ended)
    assert made[made.index(image) + 1 :][-8:][:2] == ["--model", "org/m"]
    assert "VLLM_LOGGING_LEVEL=DEBUG" in made
    assert "HF_TOKEN" in made
    assert "hf_abc" not in ended.out + ended.err
    assert "note: HF_TOKEN is a secret, which is not shown: export it before the command is run\n" in ended.err
