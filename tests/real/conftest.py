"""Real engines, one launch at a time."""

from __future__ import annotations

from tests.real.real_helpers import capture_of

__all__ = ["capture_of"]
