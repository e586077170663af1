"""llama.cpp's server in the words, variables and images of deployment files."""

from __future__ import annotations

import pytest

from engdiff.engines.llamacpp.deployment import build_of, recognise
from engdiff.engines.llamacpp.releases import KNOWN

SERVER = "ghcr.io/ggml-org/llama.cpp:server-cuda-b11063"

VERSIONS: tuple[tuple[str, str | None, str], ...] = (
    (SERVER, "2026.9.11063", "build b11063"),
    ("ghcr.io/ggml-org/llama.cpp:server-b10809", "2026.9.10809", ""),
    ("ghcr.io/ggml-org/llama.cpp:server-b8672", "2026.4.8672.1", ""),
    ("registry.example:5000/ggml-org/llama.cpp:full-vulkan-b11063", "2026.9.11063", ""),
    ("ghcr.io/ggml-org/llama.cpp:server-b6789", None, "the nearest is llamacpp@2026.4.8672"),
    ("ghcr.io/ggml-org/llama.cpp:server-b99999999999999999999999", None, "the nearest is llamacpp@"),
    ("ghcr.io/ggml-org/llama.cpp:server-cuda", None, "moves"),
    ("ghcr.io/ggml-org/llama.cpp", None, "no tag"),
    ("me/llama.cpp:server-b11063", None, "not an image of llama.cpp"),
    ("", None, "no image"),
)


@pytest.mark.parametrize(("image", "version", "because"), VERSIONS, ids=lambda p: p if isinstance(p, str) else "")
def test_versions(image: str, version: str | None, because: str) -> None:
    served = recognise(image, ["llama-server", "-m", "m.gguf"])
    assert served is not None
    assert served.version == version
    assert because in served.version_because


COMMANDS: tuple[tuple[str, list[str], str | None, tuple[str, ...]], ...] = (
    ("", ["llama-server", "-m", "m.gguf", "-c", "8192"], "m.gguf", ("-c", "8192")),
    ("", ["/app/llama-server", "--model", "m.gguf"], "m.gguf", ()),
    (SERVER, ["/app/server", "--model", "m.gguf"], "m.gguf", ()),
    (SERVER, ["-c", "8192", "-hf", "org/m:Q4"], "org/m:Q4", ("-c", "8192")),
    (SERVER, ["-hf", "org/m", "-m", "m.gguf"], "m.gguf", ("-hf", "org/m")),
    (SERVER, ["-mu", "https://x/m.gguf"], "https://x/m.gguf", ()),
    (SERVER, [], None, ()),
    ("ghcr.io/ggml-org/llama.cpp:full", ["--server", "-m", "m.gguf"], "m.gguf", ()),
    ("ghcr.io/ggml-org/llama.cpp:full", ["/app/tools.sh", "--server", "-m", "m.gguf"], "m.gguf", ()),
    ("me/my-llama-server:1", ["-m", "m.gguf"], "m.gguf", ()),
)


@pytest.mark.parametrize(("image", "words", "model", "arguments"), COMMANDS)
def test_commands(image: str, words: list[str], model: str | None, arguments: tuple[str, ...]) -> None:
    served = recognise(image, words, appended=True)
    assert served is not None
    assert (served.model, served.arguments) == (model, arguments)


@pytest.mark.parametrize("name", ["LLAMA_ARG_MODEL", "LLAMA_ARG_HF_REPO", "LLAMA_ARG_MODEL_URL"])
def test_a_model_named_by_a_variable(name: str) -> None:
    served = recognise(SERVER, [], {name: "M"}, appended=True)
    assert served is not None
    assert served.model == "M"
    with_option = recognise(SERVER, ["-m", "other"], {name: "M"}, appended=True)
    assert with_option is not None
    assert with_option.model == "other"


@pytest.mark.parametrize(
    ("image", "words"),
    [
        ("ghcr.io/ggml-org/llama.cpp:light", ["-m", "m.gguf"]),
        ("ghcr.io/ggml-org/llama.cpp:full", ["--run", "-m", "m.gguf"]),
        ("ghcr.io/abetlen/llama-cpp-python:latest", ["--model", "m.gguf"]),
        ("nginx", ["-m", "m.gguf"]),
        ("me/web", ["server", "-m", "m.gguf"]),
        (SERVER, ["sleep", "1"]),
    ],
)
def test_what_is_no_server(image: str, words: list[str]) -> None:
    assert recognise(image, words, appended=True) is None


def test_builds_of_releases() -> None:
    assert build_of("2026.9.11063") == "11063"
    assert build_of("0.2.14") is None
    assert all(build_of(v) for v in KNOWN if v.startswith("2026"))
