"""vLLM's server in the words and images of deployment files."""

from __future__ import annotations

import pytest

from engdiff.engines.vllm.deployment import recognise

OFFICIAL = "vllm/vllm-openai:v0.32.0"

VERSIONS: tuple[tuple[str, str | None, str], ...] = (
    (OFFICIAL, "0.32.0", "`v0.32.0`"),
    ("docker.io/vllm/vllm-openai:v0.8.5.post1", "0.8.5.post1", ""),
    ("vllm/vllm-openai:v0.30.0-cu130", "0.30.0", ""),
    ("vllm/vllm-openai:v0.31.0rc1-aarch64", "0.31.0rc1", ""),
    ("vllm/vllm-openai-rocm:v0.32.0", "0.32.0", ""),
    ("public.ecr.aws/q9t5s3a7/vllm-cpu-release-repo:v0.31.0", "0.31.0", ""),
    ("public.ecr.aws/deep-learning-containers/vllm:0.30.0-gpu-py312-cu129-ubuntu22.04-ec2", "0.30.0", ""),
    ("registry.example:5000/mirror/vllm-openai:v0.32.0@sha256:0123", "0.32.0", ""),
    ("rocm/vllm:rocm6.4.1_vllm_0.10.0_20250812", "0.10.0", ""),
    ("vllm/vllm-openai:latest", None, "moves"),
    ("vllm/vllm-openai:nightly-0123abcd", None, "moves"),
    ("vllm/vllm-openai:gptoss", None, "names no release"),
    ("vllm/vllm-openai", None, "no tag"),
    ("registry.example:5000/vllm/vllm-openai", None, "no tag"),
    ("vllm/vllm-openai@sha256:0123", None, "digest alone"),
    ("vllm/vllm-openai:${TAG}", None, "names no release"),
    ("lmcache/vllm-openai:v0.3.9", None, "not an image of the vLLM project"),
    ("ghcr.io/llm-d/llm-d-cuda:v0.3.1", None, "not an image of the vLLM project"),
    ("me/my-vllm:v1.2.3", None, "not an image of the vLLM project"),
    ("nvcr.io/nvidia/vllm:25.09-py3", None, "not an image"),
    ("", None, "no image"),
)


@pytest.mark.parametrize(("image", "version", "because"), VERSIONS, ids=lambda p: p if isinstance(p, str) else "")
def test_versions(image: str, version: str | None, because: str) -> None:
    served = recognise(image, ["vllm", "serve", "M"])
    assert served is not None
    assert served.version == version
    assert because in served.version_because


COMMANDS: tuple[tuple[list[str], str | None, tuple[str, ...]], ...] = (
    (["vllm", "serve", "M", "--a"], "M", ("--a",)),
    (["/usr/local/bin/vllm", "serve", "--host", "127.0.0.1", "M", "--a"], "M", ("--host", "127.0.0.1", "--a")),
    (["vllm", "serve", "--trust-remote-code", "M"], "M", ("--trust-remote-code",)),
    (["vllm", "serve", "--model", "M", "--served-model-name", "a", "b"], "M", ("--served-model-name", "a", "b")),
    (["vllm", "serve", "--config", "c.yaml"], None, ("--config", "c.yaml")),
    (["vllm", "serve", "--served-model-name", "a", "b"], None, ("--served-model-name", "a", "b")),
    (["python3", "-m", "vllm.entrypoints.openai.api_server", "--a", "1", "--model", "M"], "M", ("--a", "1")),
    (["python3", "-m", "vllm.entrypoints.openai.api_server", "--model=M"], "M", ()),
    (["python", "-m", "vllm.entrypoints.cli.main", "serve", "M"], "M", ()),
    (["vllm", "serve"], None, ()),
)


@pytest.mark.parametrize(
    ("words", "model", "arguments"), COMMANDS, ids=lambda p: " ".join(p) if isinstance(p, list) else ""
)
def test_commands(words: list[str], model: str | None, arguments: tuple[str, ...]) -> None:
    served = recognise("me/own", words)
    assert served is not None
    assert (served.model, served.arguments) == (model, arguments)


@pytest.mark.parametrize("words", ["--model M --a", "M --a", "serve M --a", "vllm serve M --a"])
def test_words_after_the_image_s_own_entrypoint(words: str) -> None:
    served = recognise(OFFICIAL, words.split(), appended=True)
    assert served is not None
    assert (served.model, served.arguments) == ("M", ("--a",))


@pytest.mark.parametrize("words", ["pip install vllm", "vllm bench serve", "ray start", "sleep", "", "python3 -m vllm"])
def test_what_is_no_server(words: str) -> None:
    assert recognise(OFFICIAL, words.split()) is None


def test_an_image_of_another_engine() -> None:
    assert recognise("nginx", ["--model", "M"], appended=True) is None
