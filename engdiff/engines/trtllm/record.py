"""What every capture of TensorRT-LLM says of itself until somebody has run one."""

from __future__ import annotations

from engdiff.schema.capture import Capture

NOT_VERIFIED = "from record, not verified on a live engine by this project"
"""No wheel of TensorRT-LLM can be had without NVIDIA's own index and a GPU; what is known of it is from public logs,
sources and issues."""


def marked(capture: Capture) -> Capture:
    """The capture with the note, once."""
    if NOT_VERIFIED in capture.notes:
        return capture
    return capture.model_copy(update={"notes": (*capture.notes, NOT_VERIFIED)})
