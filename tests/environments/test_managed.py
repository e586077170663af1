"""Making environments from a local folder of wheels."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from engdiff.environments import store
from engdiff.environments.failures import NoSuchRelease
from engdiff.environments.managed import provide
from engdiff.environments.recipe import Recipe, TorchRule
from engdiff.errors import DiskFull, EnvironmentFailed, NoNetwork

if TYPE_CHECKING:
    from tests.environments.conftest import WheelFolder

ROOT = Path(__file__).parents[2]
PATIENCE_S = 60.0


def quiet(_: str) -> None:
    pass


def test_made_once_and_used_again(wheels: WheelFolder, recipe: Recipe) -> None:
    said: list[str] = []
    first = provide(recipe, progress=said.append)
    assert first.made
    assert first.managed
    assert first.packages == {"engine": "1.0", "helper": "1.5", "pip": "1.0"}
    assert (first.distribution, first.version, first.notes) == ("engine", "1.0", ("a note",))
    assert first.python_version.startswith(recipe.python)
    assert subprocess.run([first.python, "-c", "import engine, helper"], check=False).returncode == 0
    assert first.bytes_own is not None
    assert first.bytes_total is not None
    assert 0 < first.bytes_own <= first.bytes_total
    assert any(line.startswith("Installed 3 packages") for line in said)
    os.utime(first.folder / store.MARKER, (1, 1))
    again = provide(recipe, progress=said.append)
    assert not again.made
    assert replace(again, made=True) == first
    assert (first.folder / store.MARKER).stat().st_mtime > 1  # its last use
    marker = json.loads((first.folder / store.MARKER).read_text())
    assert marker["recipe"]["distribution"] == "engine"
    assert marker["made_at"]


def test_recipes_that_differ_have_folders_of_their_own(wheels: WheelFolder, recipe: Recipe) -> None:
    other = replace(recipe, constraints=("helper<1.5",))
    assert provide(recipe, progress=quiet).packages["helper"] == "1.5"
    assert provide(other, progress=quiet).packages["helper"] == "1.0"
    assert replace(recipe, notes=(), download_bytes_estimate=5).folder_name() == recipe.folder_name()


@pytest.mark.parametrize("damage", ["no marker", "marker is no JSON", "marker lacks a key", "interpreter is gone"])
def test_a_half_made_one_is_made_anew(wheels: WheelFolder, recipe: Recipe, damage: str) -> None:
    made = provide(recipe, progress=quiet)
    marker = made.folder / store.MARKER
    if damage == "no marker":
        marker.unlink()
    elif damage == "marker is no JSON":
        marker.write_text(marker.read_text()[:50])
    elif damage == "marker lacks a key":
        marker.write_text("{}")
    else:
        made.python.unlink()
    (made.folder / "rubbish").touch()
    assert [one.complete for one in store.environments()] == [False]
    said: list[str] = []
    again = provide(recipe, progress=said.append)
    assert again.made
    assert any("half-made" in line for line in said)
    assert not (made.folder / "rubbish").exists()


MAKE = """
import json, sys
from engdiff.environments.managed import provide
from engdiff.environments.recipe import Recipe
said = []
made = provide(Recipe(**json.loads(sys.argv[1])), progress=said.append).made
print(json.dumps([made, said]))
"""


def start(recipe: Recipe) -> subprocess.Popen[str]:
    facts = json.dumps(
        {
            "engine": recipe.engine,
            "version": recipe.version,
            "distribution": recipe.distribution,
            "python": recipe.python,
        }
    )
    return subprocess.Popen(
        [sys.executable, "-c", MAKE, facts],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


def test_several_processes_at_once_make_it_once(wheels: WheelFolder, recipe: Recipe) -> None:
    processes = [start(recipe) for _ in range(3)]
    answers = [json.loads(process.communicate(timeout=PATIENCE_S)[0]) for process in processes]
    assert sorted(made for made, _ in answers) == [False, False, True]


def test_who_is_waited_for_is_told(wheels: WheelFolder, recipe: Recipe) -> None:
    folder = store.environments_folder() / recipe.folder_name()
    folder.parent.mkdir(parents=True)
    with store.locked(folder, quiet):
        waiting = start(recipe)
        with pytest.raises(subprocess.TimeoutExpired):
            waiting.wait(1)  # it cannot be done: we hold the lock
    made, said = json.loads(waiting.communicate(timeout=PATIENCE_S)[0])
    assert made
    if said[0].startswith("waiting"):  # not on a machine so slow that it had not yet looked at the lock
        assert said[0] == f"waiting for process {os.getpid()}, which is making {folder.name}"


def test_unknown_version(wheels: WheelFolder, recipe: Recipe) -> None:
    with pytest.raises(NoSuchRelease, match="no such version"):
        provide(replace(recipe, version="9.9"), progress=quiet)
    assert store.environments() == ()


def test_a_dependency_that_cannot_be_had_is_not_an_unknown_version(wheels: WheelFolder, recipe: Recipe) -> None:
    with pytest.raises(EnvironmentFailed, match="its packages cannot be had together") as raised:
        provide(replace(recipe, version="2.0"), progress=quiet)
    assert "extra-thing was not found" in raised.value.message
    stored = store.environments()
    assert [one.complete for one in stored] == [False]
    assert str(stored[0].folder) in raised.value.message
    assert "extra-thing" in (stored[0].folder / "uv.log").read_text()


def test_overrides(wheels: WheelFolder, recipe: Recipe) -> None:
    wanted = replace(recipe, version="2.0", overrides=("extra-thing ; sys_platform == 'never'", "helper==1.0"))
    assert provide(wanted, progress=quiet).packages == {"engine": "2.0", "helper": "1.0", "pip": "1.0"}


def with_torch(wheels: WheelFolder, recipe: Recipe) -> Recipe:
    wheels.add("engine", "3.0", ["torch==1.0+cpu ; sys_platform != 'never'", "torch==9+cpu ; sys_platform == 'never'"])
    return replace(recipe, version="3.0", torch=TorchRule())


def test_torch_as_pinned(wheels: WheelFolder, recipe: Recipe) -> None:
    wheels.add("torch", "1.0")
    wheels.add("torch", "1.0+cpu")
    made = provide(with_torch(wheels, recipe), progress=quiet)
    assert made.packages["torch"] == "1.0+cpu"
    assert made.notes == ("a note",)


@pytest.mark.parametrize(("cuda", "build"), [(True, "CUDA build"), (False, "plain release")])
def test_torch_as_it_can_be_had(wheels: WheelFolder, recipe: Recipe, cuda: bool, build: str) -> None:
    wheels.add("nvidia_cudnn", "1.0")
    wheels.add("torch", "1.0", ["nvidia-cudnn"] if cuda else [])
    made = provide(with_torch(wheels, recipe), progress=quiet)
    assert made.packages["torch"] == "1.0"
    assert made.notes == ("a note", f"torch 1.0 is the {build}: 1.0+cpu is on none of the configured indexes")
    assert provide(with_torch(wheels, recipe), progress=quiet).notes == made.notes


def test_torch_that_cannot_be_had_at_all(wheels: WheelFolder, recipe: Recipe) -> None:
    with pytest.raises(EnvironmentFailed, match="torch"):
        provide(with_torch(wheels, recipe), progress=quiet)


def test_a_full_disk_is_seen_before_anything_is_downloaded(wheels: WheelFolder, recipe: Recipe) -> None:
    with pytest.raises(DiskFull, match="needed"):
        provide(replace(recipe, download_bytes_estimate=2**70), progress=quiet)
    assert store.environments() == ()


def test_no_network(wheels: WheelFolder, recipe: Recipe, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.delenv("PIP_FIND_LINKS")
    monkeypatch.setenv("UV_OFFLINE", "1")
    with pytest.raises(NoNetwork, match="UV_OFFLINE"):
        provide(recipe, progress=quiet)
    monkeypatch.delenv("UV_OFFLINE")
    monkeypatch.setenv("PIP_INDEX_URL", "http://me:secret@127.0.0.1:9/simple")
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    with pytest.raises(NoNetwork, match="Connection refused") as raised:
        provide(recipe, progress=quiet)
    assert "127.0.0.1:9" in raised.value.message
    assert "secret" not in raised.value.message
    assert store.environments() == ()


def test_a_folder_that_cannot_be_written(wheels: WheelFolder, recipe: Recipe, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(EnvironmentFailed, match="cannot be written"):
        provide(recipe, progress=quiet, cache=tmp_path / "file")


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_ctrl_c_ends_uv_and_leaves_a_half_made_one(
    wheels: WheelFolder, recipe: Recipe, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # an index that never answers
        silent.settimeout(PATIENCE_S)
        with monkeypatch.context() as patch:
            patch.delenv("PIP_NO_INDEX")
            patch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{silent.getsockname()[1]}/simple")
            patch.delenv("PIP_FIND_LINKS")
            making = start(recipe)
        connection, _ = silent.accept()
        making.send_signal(signal.SIGINT)
        making.communicate(timeout=PATIENCE_S)
        connection.close()
    assert making.returncode != 0
    assert [
        one for one in psutil.process_iter(["cmdline"]) if str(tmp_path) in " ".join(one.info["cmdline"] or ())
    ] == []
    assert [one.complete for one in store.environments()] == [False]
    assert provide(recipe, progress=quiet).made


@pytest.mark.real
def test_a_real_one_from_the_index(tmp_path: Path) -> None:
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    recipe = Recipe("llamacpp", "2026.9.11063", "xllamacpp", python)
    made = provide(recipe, progress=quiet, cache=tmp_path)
    began = time.monotonic()
    assert not provide(recipe, progress=quiet, cache=tmp_path).made
    assert time.monotonic() - began < 5
    assert made.packages.keys() == {"pip", "xllamacpp"}
    assert subprocess.run([made.python, "-c", "import xllamacpp"], check=False).returncode == 0
