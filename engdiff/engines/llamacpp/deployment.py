"""llama.cpp's server in docker compose and Kubernetes files."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from engdiff.deployments import image as images
from engdiff.deployments.options import base, take
from engdiff.deployments.served import Served
from engdiff.deployments.told import told
from engdiff.engines.llamacpp.releases import KNOWN

_MODEL = (
    (("-m", "--model"), "LLAMA_ARG_MODEL"),
    (("-hf", "-hfr", "--hf-repo"), "LLAMA_ARG_HF_REPO"),
    (("-mu", "--model-url"), "LLAMA_ARG_MODEL_URL"),
)
"""Where a model is named, most decisive first: its options, and the variable that stands for them."""

_BUILD = re.compile(r"(?:^|-)b(?P<build>\d+)$")
"""``server-cuda-b6789``."""

_ALL_IN_ONE = ("--server", "-s")
"""The word with which the ``full`` images are told to serve."""


def recognise(
    image: str,
    words: Sequence[str],
    variables: Mapping[str, str] = {},
    *,
    appended: bool = False,
) -> Served | None:
    """See :class:`engdiff.deployments.served.Recognise`: ``llama-server``, or an image that starts it."""
    parsed = images.parse(image)
    arguments = _arguments(parsed, words, appended=appended)
    if arguments is None:
        return None
    model, rest = _model(arguments, variables)
    return Served(model, rest, *_version(parsed))


def _arguments(image: images.Image, words: Sequence[str], *, appended: bool) -> tuple[str, ...] | None:
    """The words after what starts the server; ``None`` where it is not started."""
    program = base(words[0]) if words else ""
    if program in ("llama-server", "llama-server.exe"):
        return tuple(words[1:])
    if not _is_llama(image):
        return None
    if program == "server":  # as the program was called until June 2024
        return tuple(words[1:])
    if program == "tools.sh" or (appended and image.tag.startswith("full")):
        rest = tuple(words[1:] if program == "tools.sh" else words)
        return rest[1:] if rest[:1] and rest[0] in _ALL_IN_ONE else None
    starts_server = image.tag.startswith("server") or "server" in image.name or image.name != "llama.cpp"
    return tuple(words) if appended and starts_server and (not words or words[0].startswith("-")) else None


def _is_llama(image: images.Image) -> bool:
    return bool(re.search(r"llama[._-]?(?:cpp|server)", image.name)) and "python" not in image.name


def _model(arguments: tuple[str, ...], variables: Mapping[str, str]) -> tuple[str | None, tuple[str, ...]]:
    """The model and the words without it; an option comes before a variable."""
    for names, _ in _MODEL:
        model, rest = take(arguments, names)
        if model is not None:
            return model, rest
    return next((variables[name] for _, name in _MODEL if variables.get(name)), None), arguments


# --- versions ------------------------------------------------------------------------------------------------------


def version_of(image: str) -> str | None:
    """The release that an image's name states; ``None`` when it states none."""
    return _version(images.parse(image))[0]


def _version(image: images.Image) -> tuple[str | None, str]:
    """The release whose wheel holds exactly the build that the tag names."""
    if not image.repository:
        return None, "the file names no image"
    if image.name != "llama.cpp" or image.owner not in ("ggml-org", "ggerganov"):
        return None, f"`{told(image.repository)}` is not an image of llama.cpp's project"
    match = _BUILD.search(image.tag)
    if match is None:
        what = f"the image's tag `{told(image.tag)}` moves" if image.tag else "the image has no tag with a build"
        return None, f"{what}: it names no build such as server-b6789"
    return _release(match["build"])


def _release(build: str) -> tuple[str | None, str]:
    for version in KNOWN:
        if build_of(version) == build:
            return version, f"the image is build b{build}, which the wheel {version} holds"
    builds = sorted((int(b), v) for v in KNOWN if (b := build_of(v)))
    nearest = min(builds, key=lambda pair: abs(pair[0] - int(build[:9])))
    return None, f"no wheel holds build b{told(build)} of the image; the nearest is llamacpp@{nearest[1]}"


def build_of(version: str) -> str | None:
    """The build of llama.cpp in a wheel: ``11063`` for 2026.9.11063; older wheels do not say."""
    parts = version.split(".")
    return parts[2] if len(parts) >= 3 and parts[0].startswith("20") else None
