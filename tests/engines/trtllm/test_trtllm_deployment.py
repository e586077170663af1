"""TensorRT-LLM's server in the words and images of deployment files."""

from __future__ import annotations

import pytest

from engdiff.engines.trtllm.deployment import recognise

VERSIONS: tuple[tuple[str, str | None, str], ...] = (
    ("nvcr.io/nvidia/tensorrt-llm/release:1.0.0", "1.0.0", ""),
    ("nvcr.io/nvidia/tensorrt-llm/release:1.2.0rc4", "1.2.0rc4", ""),
    ("registry.example:5000/tensorrt-llm/release:0.21.0", "0.21.0", ""),
    ("nvcr.io/nvidia/tensorrt-llm/release", None, "no tag"),
    ("nvcr.io/nvidia/tritonserver:25.08-trtllm-python-py3", None, "Triton's version"),
    ("me/release:1.0.0", None, "not an image of TensorRT-LLM"),
)


@pytest.mark.parametrize(("image", "version", "because"), VERSIONS, ids=lambda p: p if isinstance(p, str) else "")
def test_versions(image: str, version: str | None, because: str) -> None:
    served = recognise(image, ["trtllm-serve", "M"])
    assert served is not None
    assert served.version == version
    assert because in served.version_because


@pytest.mark.parametrize(
    "words",
    [
        ["trtllm-serve", "M", "--host", "h"],
        ["trtllm-serve", "serve", "M", "--host", "h"],
        ["/usr/local/bin/trtllm-serve", "serve", "--host", "h", "M"],
        ["python3", "-m", "tensorrt_llm.commands.serve", "serve", "M", "--host", "h"],
    ],
)
def test_commands(words: list[str]) -> None:
    served = recognise("", words, appended=True)
    assert served is not None
    assert (served.model, served.arguments) == ("M", ("--host", "h"))


@pytest.mark.parametrize(
    "words",
    ["", "trtllm-serve disaggregated -c x", "trtllm-bench", "tritonserver --model-repository=/m"],
)
def test_what_is_no_server(words: str) -> None:
    assert recognise("nvcr.io/nvidia/tensorrt-llm/release:1.0.0", words.split(), appended=True) is None
