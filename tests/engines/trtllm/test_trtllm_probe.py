"""The probe by itself: its table, and that it reads nothing else."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from engdiff.engines.trtllm import plugin, probe

ROWS = (*probe.ATTRIBUTES, *probe.CALLS)
VERSION = re.compile(r"\d+\.\d+\.\d+")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[1]}={row[2]}")
def test_rows(row: tuple[str, str, str, str | None, str | None, str]) -> None:
    root, name, path, since, until, source = row
    assert root in ("LLM", "PyExecutor")
    assert name.isidentifier()
    assert all(part.isidentifier() for part in path.split("."))
    assert since is not None
    assert VERSION.fullmatch(since)
    assert until is None or VERSION.fullmatch(until)
    assert source.startswith("tensorrt_llm/")


def test_rows_differ() -> None:
    assert len({row[:3] for row in ROWS}) == len(ROWS)


def test_the_first_path_that_leads_to_something_counts() -> None:
    scheduler = SimpleNamespace(capacity_scheduler=SimpleNamespace(policy="GUARANTEED_NO_EVICT"))
    executor = SimpleNamespace(scheduler=scheduler, max_batch_size=0, global_rank=None, dist=SimpleNamespace(rank=3))
    found = probe.read("PyExecutor", executor)
    assert (found["policy"], found["max_batch_size"], found["rank"]) == ("GUARANTEED_NO_EVICT", 0, 3)
    assert "sampler" not in found


def test_what_cannot_be_read_says_why() -> None:
    class Bad:
        def get_kv_cache_capacity(self) -> Any:
            raise RuntimeError("no pool")

    assert probe.read("PyExecutor", Bad())["kv_capacity"] == {"unreadable": "RuntimeError: no pool"}


def test_engine_attributes_are_read_through_the_table_alone() -> None:
    """No dotted attribute of an engine's object outside the table: what is read of them goes through ``reach``."""
    tree = ast.parse(Path(probe.__file__).read_text(encoding="utf-8"))
    functions = {"llm", "worker", "before_start", "around_construction"}
    for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name in functions):
        names = {a.arg for a in function.args.args}
        read = [
            node.attr
            for node in ast.walk(function)
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in names
        ]
        assert read == [], function.name


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["m", "--config", "a.yaml"], [("--config", "a.yaml")]),
        (["--extra_llm_api_options=b.yaml"], [("--extra_llm_api_options", "b.yaml")]),
        (["--config"], []),
        (["--configure", "x"], []),
    ],
)
def test_yaml_paths(words: list[str], found: list[tuple[str, str]]) -> None:
    assert probe.yaml_paths(words) == found


def test_a_keyword_counts_only_what_was_set() -> None:
    from pydantic import BaseModel

    class Inner(BaseModel):
        a: int = 1
        b: int = 2

    class Outer(BaseModel):
        inner: Inner = Inner()
        c: int = 3

    assert probe.given(Outer(inner=Inner(b=5))) == {"inner": {"b": 5}}
    assert probe.given([1]) == [1]


def test_without_a_folder_to_write_to_nothing_is_hooked(environments: dict[str, Path], tmp_path: Path) -> None:
    """A user's own ``sitecustomize`` still runs, and a process without the variable is left alone."""
    hook, mine = tmp_path / "hook", tmp_path / "mine"
    for folder, files in ((hook, plugin.probe_files()), (mine, {"sitecustomize.py": "print('mine')"})):
        folder.mkdir()
        for name, text in files.items():
            (folder / name).write_text(text)
    code = "import sys, json; print(json.dumps([type(f).__name__ for f in sys.meta_path]))"
    done = subprocess.run(
        [next(iter(environments.values())), "-c", code],
        env={"PYTHONPATH": f"{hook}:{mine}"},
        capture_output=True,
        text=True,
        check=True,
    )
    said, finders = done.stdout.splitlines()
    assert said == "mine"
    assert "AfterImport" not in json.loads(finders)
    assert done.stderr == ""


def test_it_needs_nothing_of_ours() -> None:
    """Beside its kit, only what Python brings, and the YAML library that the engine reads with."""
    tree = ast.parse(plugin.probe_files()[f"{plugin.MODULE}.py"])
    imported = {
        name.split(".")[0]
        for node in ast.walk(tree)
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert imported - set(sys.stdlib_module_names) == {"engdiff_probe_kit", "engdiff", "yaml"}
