"""Public start-up logs, as fragments: the records of every engine."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

ENGINES = Path(__file__).parent.parent / "engines"


@cache
def records() -> tuple[tuple[str, str, str], ...]:
    """Id, engine and text of every record."""
    found = []
    for path in sorted(ENGINES.glob("*/records.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            found.append((record["id"], path.parent.name, record["log_excerpt"]))
    return tuple(found)
