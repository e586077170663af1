"""Old documents become new ones on load, for ever: one module per step, one golden file per released schema."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from engdiff.schema.upgrade import from_1

Tree = dict[str, Any]

STEPS: dict[tuple[str, int], Callable[[Tree], Tree]] = {
    ("capture", 1): from_1.capture,
    ("diff", 1): from_1.diff,
}
"""(kind, schema) to the function that makes it the next schema."""


def upgrade(kind: str, data: Tree) -> Tree:
    """The same document in the newest schema."""
    while (step := STEPS.get((kind, data["schema_version"]))) is not None:
        data = step(data)
    return data
