"""Every value of a capture that is known, wherever it stands."""

from __future__ import annotations

from typing import Any

from engdiff.schema.values import Known


def every_known(value: Any) -> list[Known]:
    """All values with evidence in a capture."""
    if isinstance(value, Known):
        return [value]
    if isinstance(value, dict):
        return [k for v in value.values() for k in every_known(v)]
    if isinstance(value, list | tuple):
        return [k for v in value for k in every_known(v)]
    if hasattr(type(value), "model_fields"):
        return [k for name in type(value).model_fields for k in every_known(getattr(value, name))]
    return []
