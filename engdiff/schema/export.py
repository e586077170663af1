"""JSON Schemas of the documents, for people who read captures with other tools."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from engdiff.schema.budget import Budget
from engdiff.schema.capture import Capture
from engdiff.schema.diff import Diff
from engdiff.schema.explanation import Explanation
from engdiff.schema.history import History
from engdiff.schema.series import Series

DOCUMENTS: dict[str, type[BaseModel]] = {
    "capture": Capture,
    "diff": Diff,
    "series": Series,
    "history": History,
    "budget": Budget,
    "explanation": Explanation,
}


def json_schema(kind: str) -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a document of :data:`DOCUMENTS`."""
    model = DOCUMENTS[kind]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **model.model_json_schema(mode="serialization")}
