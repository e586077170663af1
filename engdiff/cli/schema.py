"""``engdiff schema``: the JSON Schema of a document."""

from __future__ import annotations

import json
import sys
from enum import StrEnum
from typing import Annotated

import typer


class Kind(StrEnum):
    """Documents with a schema."""

    capture = "capture"
    diff = "diff"
    series = "series"
    history = "history"
    explanation = "explanation"


def schema(document: Annotated[Kind, typer.Argument(help="capture, diff, series, history or explanation")]) -> int:
    """Print the JSON Schema of a document.

    To check captures with other tools: engdiff schema capture > capture.schema.json
    """
    from engdiff.schema.export import json_schema

    sys.stdout.write(json.dumps(json_schema(document.value), indent=1, sort_keys=True) + "\n")
    return 0
