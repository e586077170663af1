"""SGLang's server in the words and images of deployment files."""

from __future__ import annotations

import pytest

from engdiff.engines.sglang.deployment import recognise

VERSIONS: tuple[tuple[str, str | None, str], ...] = (
    ("lmsysorg/sglang:v0.5.3-cu126", "0.5.3", ""),
    ("docker.io/lmsysorg/sglang:v0.4.6.post1-cu124", "0.4.6.post1", ""),
    ("lmsysorg/sglang:v0.5.3rc0-cu126-gb200", "0.5.3rc0", ""),
    ("registry.example:5000/lmsysorg/sglang:v0.5.5.post3-rocm630-mi30x", "0.5.5.post3", ""),
    ("lmsysorg/sglang:latest", None, "moves"),
    ("lmsysorg/sglang:nightly-dev-20251110", None, "moves"),
    ("lmsysorg/sglang:blackwell", None, "names no release"),
    ("me/sglang:v1.0.0", None, "not an image of the SGLang project"),
)


@pytest.mark.parametrize(("image", "version", "because"), VERSIONS, ids=lambda p: p if isinstance(p, str) else "")
def test_versions(image: str, version: str | None, because: str) -> None:
    served = recognise(image, ["python3", "-m", "sglang.launch_server", "--model-path", "M", "--tp", "2"])
    assert served is not None
    assert (served.model, served.arguments, served.version) == ("M", ("--tp", "2"), version)
    assert because in served.version_because


@pytest.mark.parametrize(
    "words",
    [
        ["sglang", "serve", "--model-path", "M", "--tp", "2"],
        ["sglang", "serve", "M", "--tp", "2"],
        ["python3", "-m", "sglang.launch_server", "--model=M", "--tp", "2"],
        ["python", "/sgl-workspace/sglang/launch_server.py", "--tp", "2", "--model-path=M"],
    ],
)
def test_commands(words: list[str]) -> None:
    served = recognise("", words)
    assert served is not None
    assert (served.model, served.arguments) == ("M", ("--tp", "2"))


def test_words_alone() -> None:
    served = recognise("me/my-sglang:1", ["--model-path", "M"], appended=True)
    assert served is not None
    assert served.model == "M"
    assert recognise("lmsysorg/sglang:v0.5.3", ["--tp", "2"], appended=True) is None


@pytest.mark.parametrize("words", ["", "python3 -m sglang.bench_serving", "python3 -m sglang_router.launch_router"])
def test_what_is_no_server(words: str) -> None:
    assert recognise("lmsysorg/sglang:v0.5.3", words.split(), appended=True) is None
