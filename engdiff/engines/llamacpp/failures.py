"""What llama.cpp's last words mean."""

from __future__ import annotations

from engdiff.engines.contract import Cause
from engdiff.engines.last_words import explain
from engdiff.engines.llamacpp.normalize import KNOWLEDGE


def cause(log: str, exit_status: str) -> Cause | None:
    """One sentence for the user, where the cause is known."""
    return explain(KNOWLEDGE.failures, log, exit_status)
