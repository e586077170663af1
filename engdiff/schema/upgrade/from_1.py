"""Schema 1 to 2: a Capture may come from a log, which knows less. Every field of 1 is still there."""

from __future__ import annotations

from typing import Any

Tree = dict[str, Any]


def capture(data: Tree) -> Tree:
    """Host, environment and model may be unknown; failures have numbers; citations may name a file."""
    return {**data, "schema_version": 2}


def diff(data: Tree) -> Tree:
    """The distribution and the model of a side may be unknown."""
    return {**data, "schema_version": 2}
