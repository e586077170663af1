"""vLLM's server in docker compose and Kubernetes files."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from engdiff.deployments import image as images
from engdiff.deployments.options import Grammar, base, module, take, take_positional
from engdiff.deployments.served import Served
from engdiff.deployments.told import told

_OFFICIAL = re.compile(r"^vllm-(?:openai(?:-(?:rocm|cpu|xpu|arm64|x86_64))?|(?:arm64-)?cpu-release-repo|tpu)$")
_OTHERS_VERSIONS = ("lmcache", "llm-d", "nvidia")
"""Owners of images with the same names whose tags are versions of their own."""

_AMD_TAG = re.compile(r"(?:^|_)vllm_v?(?P<version>\d+\.\d+\.\d+(?:rc\d+)?(?:\.post\d+)?)(?=$|[_-])")
"""``rocm/vllm:rocm6.4.1_vllm_0.10.0_20250812``."""

_SERVERS = ("vllm.entrypoints.openai.api_server", "vllm.entrypoints.api_server")
_CLI = ("vllm", "vllm.entrypoints.cli.main", "vllm.scripts")
_SERVER_FILES = ("vllm/entrypoints/openai/api_server.py", "vllm/entrypoints/api_server.py")

_GRAMMAR = Grammar(
    flags=("--no-", "--enable-", "--disable-", "--enforce-eager", "--trust-remote-code", "--headless"),
    lists=("--served-model-name", "--lora-modules", "--middleware", "--cudagraph-capture-sizes", "--allowed-origins"),
)


def recognise(
    image: str,
    words: Sequence[str],
    variables: Mapping[str, str] = {},  # noqa: ARG001
    *,
    appended: bool = False,
) -> Served | None:
    """See :class:`engdiff.deployments.served.Recognise`: ``vllm serve``, the server's module, or an image's own."""
    parsed = images.parse(image)
    arguments = _arguments(words)
    if arguments is None and appended and "vllm" in parsed.name:
        arguments = tuple(words[1:] if tuple(words[:1]) == ("serve",) else words)
    if arguments is None:
        return None
    model, rest = take(arguments, ("--model", "--model-tag"), underscores=True)
    if model is None:
        model, rest = take_positional(arguments, _GRAMMAR)
    return Served(model, rest, *_version(parsed))


def _arguments(words: Sequence[str]) -> tuple[str, ...] | None:
    """The words after what starts the server; ``None`` where it is not started."""
    if len(words) >= 2 and base(words[0]) == "vllm" and words[1] == "serve":
        return tuple(words[2:])
    if len(words) >= 2 and words[1].endswith(_SERVER_FILES):
        return tuple(words[2:])
    called = module(words)
    if called and called[0] in _SERVERS:
        return called[1]
    if called and called[0] in _CLI and called[1][:1] == ("serve",):
        return called[1][1:]
    return None


def version_of(image: str) -> str | None:
    """The release that an image's name states; ``None`` when it states none."""
    return _version(images.parse(image))[0]


def _version(image: images.Image) -> tuple[str | None, str]:
    amd = _AMD_TAG.search(image.tag) if image.repository.endswith("rocm/vllm") else None
    if amd:
        return amd["version"], f"the image's tag `{told(image.tag)}`"
    return images.release(image, "the vLLM project", _is_official)


def _is_official(image: images.Image) -> bool:
    """The project's own images, in any registry that mirrors them, and Amazon's, which carry vLLM's version."""
    if image.repository.endswith(("deep-learning-containers/vllm", "rocm/vllm")):
        return True
    return bool(_OFFICIAL.match(image.name)) and image.owner not in _OTHERS_VERSIONS
