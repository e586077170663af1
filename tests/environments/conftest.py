"""A package index in a folder, with tiny wheels made on the spot: no network is used."""

from __future__ import annotations

import base64
import hashlib
import os
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from engdiff.environments.recipe import Recipe


class WheelFolder:
    """A folder of wheels, as ``--find-links`` takes it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()

    def add(self, name: str, version: str, requires: Sequence[str] = ()) -> None:
        """Make a wheel of one module without content."""
        info = f"{name}-{version}.dist-info"
        metadata = [f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}"]
        metadata += [f"Requires-Dist: {line}" for line in requires]
        files = {
            f"{name}.py": f"version = {version!r}\n",
            f"{info}/METADATA": "\n".join(metadata) + "\n",
            f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        }
        record = [f"{path},{_digest(text)},{len(text)}" for path, text in files.items()]
        files[f"{info}/RECORD"] = "\n".join([*record, f"{info}/RECORD,,"]) + "\n"
        with zipfile.ZipFile(self.folder / f"{name}-{version}-py3-none-any.whl", "w") as wheel:
            for path, text in files.items():
                wheel.writestr(path, text)


def _digest(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return "sha256=" + base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WheelFolder:
    """The only place where packages come from in a test."""
    for name in [name for name in os.environ if name.startswith(("UV_", "PIP_"))]:
        monkeypatch.delenv(name)
    made = WheelFolder(tmp_path / "wheels")
    made.add("pip", "1.0")
    made.add("engine", "1.0", ["helper>=1"])
    made.add("engine", "2.0", ["helper>=1", "extra-thing"])
    made.add("helper", "1.0")
    made.add("helper", "1.5")
    monkeypatch.setenv("PIP_FIND_LINKS", str(made.folder))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("UV_NO_CONFIG", "1")
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv"))
    monkeypatch.setenv("ENGDIFF_CACHE_DIR", str(tmp_path / "cache"))
    return made


@pytest.fixture
def recipe() -> Recipe:
    return Recipe("fake", "1.0", "engine", f"{sys.version_info.major}.{sys.version_info.minor}", notes=("a note",))
