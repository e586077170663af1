"""Puts the helpers of this folder on the path: with import-mode=importlib they are no package."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from real_helpers import capture_of

__all__ = ["capture_of"]
