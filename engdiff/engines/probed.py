"""Reading what a probe wrote, whichever engine it ran in."""

from __future__ import annotations

from typing import Any

from pydantic import JsonValue

from engdiff.engines.layers import exact
from engdiff.schema.values import Known

Tree = dict[str, Any]


def tree(answer: JsonValue) -> Tree:
    """An answer as a tree; empty when it is missing or the probe could not read it."""
    return answer if isinstance(answer, dict) and "unreadable" not in answer else {}


def unreadable(answer: JsonValue) -> str | None:
    """Why the probe could not read an answer; ``None`` where it did."""
    return str(answer["unreadable"]) if isinstance(answer, dict) and "unreadable" in answer else None


def known(value: object, where: str) -> Known | None:
    """A value of an answer; ``None`` for what the probe does not hold or could not read."""
    return None if value is None or isinstance(value, dict) else exact(value, "probe", where)  # type: ignore[arg-type]
