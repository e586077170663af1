"""SGLang's server in docker compose and Kubernetes files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from engdiff.deployments import image as images
from engdiff.deployments.options import Grammar, base, module, take, take_positional
from engdiff.deployments.served import Served

_MODEL = ("--model-path", "--model")
_GRAMMAR = Grammar(
    flags=("--enable-", "--disable-", "--trust-remote-code", "--skip-", "--is-embedding"),
    lists=("--lora-paths", "--cuda-graph-bs"),
)


def recognise(
    image: str,
    words: Sequence[str],
    variables: Mapping[str, str] = {},  # noqa: ARG001
    *,
    appended: bool = False,
) -> Served | None:
    """See :class:`engdiff.deployments.served.Recognise`: ``sglang serve`` or the module ``sglang.launch_server``."""
    parsed = images.parse(image)
    arguments = _arguments(words)
    if arguments is None and appended and "sglang" in parsed.name and take(words, _MODEL)[0] is not None:
        arguments = tuple(words)  # an image made from the official one, which itself starts no server
    if arguments is None:
        return None
    model, rest = take(arguments, _MODEL)
    if model is None:
        model, rest = take_positional(arguments, _GRAMMAR)
    return Served(model, rest, *_version(parsed))


def _arguments(words: Sequence[str]) -> tuple[str, ...] | None:
    """The words after what starts the server; ``None`` where it is not started."""
    if len(words) >= 2 and base(words[0]) == "sglang" and words[1] == "serve":
        return tuple(words[2:])
    if len(words) >= 2 and words[1].endswith("sglang/launch_server.py"):
        return tuple(words[2:])
    called = module(words)
    return called[1] if called and called[0] == "sglang.launch_server" else None


def version_of(image: str) -> str | None:
    """The release that an image's name states; ``None`` when it states none."""
    return _version(images.parse(image))[0]


def _version(image: images.Image) -> tuple[str | None, str]:
    return images.release(image, "the SGLang project", _is_official)


def _is_official(image: images.Image) -> bool:
    """``lmsysorg/sglang`` and its siblings, in any registry that mirrors them."""
    return image.name in ("sglang", "sglang-rocm", "sglang-cpu") and image.owner == "lmsysorg"
