"""A docker for these tests, with images of vLLM and llama.cpp in it."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.containers import FakeDocker
from tests.sources.stand_ins import LLAMA_SERVER, write_vllm

LLAMA_LOG = Path(__file__).parents[1] / "engines" / "llamacpp" / "logs" / "cuda-iswa.txt"


@pytest.fixture
def docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeDocker]:
    """The first docker on the PATH. ``vllm/vllm-openai-cpu:v0.33.0`` is here, llama.cpp's in the registry."""
    with tempfile.TemporaryDirectory(prefix="fd-") as folder:
        fake = FakeDocker(Path(folder) / "d")
        fake.folder.mkdir()
        server = tmp_path / "llama_server.py"
        server.write_text(LLAMA_SERVER)
        fake.programs["/app/llama-server"] = [sys.executable, str(server)]
        site = write_vllm(tmp_path / "site")
        fake.images["vllm/vllm-openai-cpu:v0.33.0"] = {"PYTHONPATH": str(site), "VLLM_USAGE_SOURCE": "image"}
        fake.in_registry["ghcr.io/ggml-org/llama.cpp:server-b8929"] = {"LOG_TO_REPEAT": str(LLAMA_LOG)}
        fake.start()
        for name, value in fake.variables().items():
            monkeypatch.setenv(name, value)
        for name in ("HF_TOKEN", "HF_HOME", "HF_HUB_CACHE", "CUDA_VISIBLE_DEVICES", "PYTHONPATH", "VLLM_PLUGINS"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("ENGDIFF_CACHE_DIR", str(tmp_path / "cache"))
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "t"))
        (tmp_path / "t").mkdir()
        yield fake
        fake.close()
