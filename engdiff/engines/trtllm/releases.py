"""Releases of TensorRT-LLM, and why engdiff makes no environment of any of them."""

from __future__ import annotations

from engdiff.engines.contract import KnownProblem

DISTRIBUTION = "tensorrt-llm"
IMAGE = "nvcr.io/nvidia/tensorrt-llm/release"
"""NVIDIA's image; its tags are the releases (docs/source/quick-start-guide.md)."""

KNOWN = ("1.4.0rc1", "1.2.1", "1.2.0", "1.1.0", "1.0.0", "0.21.0", "0.20.0")
"""Newest first: those whose package on the Python index was opened when this engdiff was made."""


def problem(version: str) -> KnownProblem:
    """Why engdiff does not install this release, and what to use in its place: true of every release and machine."""
    return KnownProblem(
        "engdiff makes no environment for it, because NVIDIA publishes its wheels on an index of its own",
        f"the package {DISTRIBUTION} on the Python index holds no code, only the address of that index",
        f"on a machine with a GPU name the interpreter of an environment that has it (engdiff capture trtllm --python "
        f"PATH --model MODEL), or an image (--container {IMAGE}:{version}); without a GPU read a log (engdiff capture "
        "trtllm --log FILE)",
        anywhere=True,
    )
