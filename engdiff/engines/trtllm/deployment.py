"""TensorRT-LLM's server in docker compose and Kubernetes files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from engdiff.deployments import image as images
from engdiff.deployments.options import Grammar, base, module, take, take_positional
from engdiff.deployments.served import Served
from engdiff.deployments.told import told

_OTHER_VERBS = ("disaggregated", "disaggregated_mpi_worker", "mm_embedding_serve", "embedding_serve")
"""What ``trtllm-serve`` does beside serving one model."""

_GRAMMAR = Grammar(flags=("--trust_remote_code", "--trust-remote-code", "--fail_fast", "--enable_", "--disable_"))


def recognise(
    image: str,
    words: Sequence[str],
    variables: Mapping[str, str] = {},  # noqa: ARG001
    *,
    appended: bool = False,  # noqa: ARG001
) -> Served | None:
    """See :class:`engdiff.deployments.served.Recognise`: ``trtllm-serve``. No official image starts it by itself."""
    arguments = _arguments(words)
    if arguments is None or (arguments[:1] and arguments[0] in _OTHER_VERBS):
        return None
    if arguments[:1] == ("serve",):
        arguments = arguments[1:]
    model, rest = take(arguments, ("--model",))
    if model is None:
        model, rest = take_positional(arguments, _GRAMMAR)
    return Served(model, rest, *_version(images.parse(image)))


def _arguments(words: Sequence[str]) -> tuple[str, ...] | None:
    if words and base(words[0]) == "trtllm-serve":
        return tuple(words[1:])
    called = module(words)
    return called[1] if called and called[0] == "tensorrt_llm.commands.serve" else None


def is_official(image: str) -> bool:
    """Whether this is an image of NVIDIA's, or a mirror of one."""
    return _is_official(images.parse(image))


def version_of(image: str) -> str | None:
    """The release that an image's name states; ``None`` when it states none."""
    return _version(images.parse(image))[0]


def _version(image: images.Image) -> tuple[str | None, str]:
    if image.name == "tritonserver":
        return None, f"the tag `{told(image.tag)}` is Triton's version; that of TensorRT-LLM inside is not in the name"
    return images.release(image, "TensorRT-LLM", _is_official)


def _is_official(image: images.Image) -> bool:
    """``nvcr.io/nvidia/tensorrt-llm/release``, in any registry that mirrors it."""
    return image.owner == "tensorrt-llm" and image.name in ("release", "devel")
