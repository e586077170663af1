"""An interpreter that the user names; the environments on disk."""

from __future__ import annotations

import os
import sys
import time
from importlib.metadata import version
from pathlib import Path

import pytest

from engdiff.environments import store
from engdiff.environments.given import given
from engdiff.environments.recipe import Environment, Recipe
from engdiff.errors import EnvironmentFailed, UsageError


def test_the_engine_is_found_in_an_interpreter() -> None:
    found = given(Path(sys.executable), "fake", ["no-such-engine", "PyTest"])
    assert (found.distribution, found.version) == ("PyTest", version("pytest"))
    assert found.python == Path(sys.executable).absolute()
    assert found.python_version == ".".join(map(str, sys.version_info[:3]))
    assert found.packages["pytest"] == found.version
    assert not found.managed


def test_packages_that_only_pythonpath_shows_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    info = tmp_path / "site" / "Far_Engine-3.1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: Far_Engine\nVersion: 3.1\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    assert given(Path(sys.executable), "fake", ["far-engine"]).version == "3.1"
    monkeypatch.delenv("PYTHONPATH")
    monkeypatch.chdir(tmp_path / "site")  # the current folder does not
    with pytest.raises(UsageError, match="no package `far-engine`"):
        given(Path(sys.executable), "fake", ["far-engine"])


def test_no_such_interpreter(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such interpreter"):
        given(tmp_path / "python", "fake", ["six"])
    with pytest.raises(UsageError, match="no such interpreter"):
        given(tmp_path, "fake", ["six"])  # a folder, and no virtual environment


@pytest.mark.skipif(os.name != "posix", reason="a shell script")
@pytest.mark.parametrize(
    ("script", "mode", "words"),
    [
        ("#!/bin/sh\necho 'no module named json' >&2\nexit 1\n", 0o755, "no module named json"),
        ("#!/bin/sh\nexit 0\n", 0o755, "it printed nothing"),
        ("#!/bin/sh\n", 0o644, "Permission denied"),
    ],
)
def test_a_file_that_is_no_interpreter(tmp_path: Path, script: str, mode: int, words: str) -> None:
    path = tmp_path / "python"
    path.write_text(script)
    path.chmod(mode)
    with pytest.raises(EnvironmentFailed, match=words):
        given(path, "fake", ["six"])


def put(cache: Path, engine: str, release: str, *, days: float = 0, complete: bool = True) -> Path:
    recipe = Recipe(engine, release, "six", "3.11")
    folder = store.environments_folder(cache) / recipe.folder_name()
    python = store.interpreter(folder)
    python.parent.mkdir(parents=True)
    python.touch()
    if complete:
        store.write(Environment(folder, python, "3.11.7", "six", release, bytes_own=5, bytes_total=9), recipe)
        then = time.time() - days * 86_400
        os.utime(folder / store.MARKER, (then, then))
    return folder


def test_listing(tmp_path: Path) -> None:
    assert store.environments(tmp_path) == ()
    put(tmp_path, "vllm", "0.12.0.post2", days=2)
    put(tmp_path, "sglang", "0.5", complete=False)
    broken, whole = store.environments(tmp_path)
    assert (broken.engine, broken.version, broken.complete, broken.bytes_own) == ("sglang", "0.5", False, None)
    assert (whole.engine, whole.version, whole.complete) == ("vllm", "0.12.0.post2", True)
    assert (whole.bytes_own, whole.bytes_total) == (5, 9)
    assert 1.9 < (time.time() - whole.last_used.timestamp()) / 86_400 < 2.1
    store.touch(whole.folder)
    assert time.time() - store.environments(tmp_path)[1].last_used.timestamp() < 3600


@pytest.mark.parametrize("name", ["vllm@1.0", "vllm-1.0", "folder"])
def test_removing_by_any_name(tmp_path: Path, name: str) -> None:
    folder, other = put(tmp_path, "vllm", "1.0"), put(tmp_path, "vllm", "2.0")
    removed = store.remove([folder.name if name == "folder" else name], tmp_path)
    assert [one.folder for one in removed] == [folder]
    assert not folder.exists()
    assert other.exists()


def test_removing_nothing_when_one_name_is_wrong(tmp_path: Path) -> None:
    folder = put(tmp_path, "vllm", "1.0")
    with pytest.raises(UsageError, match="no environment is called `vllm@9`"):
        store.remove(["vllm@1.0", "vllm@9"], tmp_path)
    assert folder.exists()


def test_pruning(tmp_path: Path) -> None:
    old, new = put(tmp_path, "vllm", "1.0", days=40), put(tmp_path, "vllm", "2.0", days=3)
    half = put(tmp_path, "vllm", "3.0", complete=False)
    busy = put(tmp_path, "vllm", "4.0", complete=False)
    with store.locked(busy, lambda _: None):
        assert [one.folder for one in store.prune(30, half_made=False, cache=tmp_path)] == [old]
        assert [one.folder for one in store.prune(cache=tmp_path)] == [half]
    assert new.exists()
    assert busy.exists()
    assert not old.exists()


def test_sizes_count_shared_files_apart(tmp_path: Path) -> None:
    block = 64 * 1024
    (tmp_path / "env/lib").mkdir(parents=True)
    (tmp_path / "cached").write_bytes(b"x" * block)
    (tmp_path / "env/lib/shared").hardlink_to(tmp_path / "cached")
    (tmp_path / "env/own").write_bytes(b"x" * block)
    (tmp_path / "env/lib/own again").hardlink_to(tmp_path / "env/own")  # both names in here: freed with it
    own, total = store.sizes(tmp_path / "env")
    assert block <= own < 1.5 * block
    assert own + block <= total < own + 1.5 * block
