"""Round trips, golden files of every released schema, and the exported JSON Schemas."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import jsonschema
import pytest
from pydantic import BaseModel, ValidationError

from engdiff.knowledge.settings import AREAS
from engdiff.schema import budget, capture, diff, explanation, files, history, series, upgrade
from engdiff.schema.budget import BUDGET_SCHEMA, Budget
from engdiff.schema.capture import CAPTURE_SCHEMA, Capture
from engdiff.schema.diff import DIFF_SCHEMA, Diff
from engdiff.schema.explanation import EXPLANATION_SCHEMA, Explanation
from engdiff.schema.export import DOCUMENTS, json_schema
from engdiff.schema.history import HISTORY_SCHEMA, History
from engdiff.schema.series import SERIES_SCHEMA, Series

GOLDEN = Path(__file__).parent / "golden"
NEWEST = {
    "capture": CAPTURE_SCHEMA,
    "diff": DIFF_SCHEMA,
    "series": SERIES_SCHEMA,
    "history": HISTORY_SCHEMA,
    "explanation": EXPLANATION_SCHEMA,
    "budget": BUDGET_SCHEMA,
}
RELEASED = sorted(GOLDEN.glob("*-*.json"))


def document_kind(path: Path) -> str:
    return path.stem.rpartition("-")[0]


def load(path: Path) -> Any:
    return read(path.read_text(encoding="utf-8"), document_kind(path))


def read(text: str, kind: str) -> Any:
    return files.parse(text, "x", DOCUMENTS[kind])  # type: ignore[type-var]


def test_every_released_schema_has_its_golden_file() -> None:
    wanted = {f"{kind}-{schema}.json" for kind, newest in NEWEST.items() for schema in range(1, newest + 1)}
    assert {path.name for path in RELEASED} == wanted


@pytest.mark.parametrize("path", RELEASED, ids=lambda p: p.stem)
def test_every_released_schema_loads_for_ever(path: Path) -> None:
    document = load(path)
    assert document.schema_version == NEWEST[document_kind(path)]
    assert read(files.dump(document), document_kind(path)) == document


def test_golden_files_of_the_newest_schema_use_every_field(
    full_capture: Capture,
    full_diff: Diff,
    full_series: Series,
    full_history: History,
    full_explanation: Explanation,
    full_budget: Budget,
) -> None:
    """After a release this fails only for a new schema: write its golden file with WRITE_GOLDEN=1, never an old one."""
    for document in (full_capture, full_diff, full_series, full_history, full_explanation, full_budget):
        path = GOLDEN / f"{document.document}-{document.schema_version}.json"
        if os.environ.get("WRITE_GOLDEN"):
            path.write_text(files.dump(document), encoding="utf-8")
        assert path.read_text(encoding="utf-8") == files.dump(document)


def models_of(module: Any) -> set[str]:
    return {
        name
        for name, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, BaseModel) and value.__module__ == module.__name__
    }


def unused_fields(document: BaseModel) -> tuple[set[str], set[str]]:
    """Names of the models seen, and of fields that hold nothing wherever their model occurs."""
    filled: set[str] = set()
    empty: set[str] = set()
    seen: set[str] = set()

    def walk(value: object) -> None:
        if isinstance(value, BaseModel):
            name = type(value).__name__
            seen.add(name)
            for field in type(value).model_fields:
                inner = getattr(value, field)
                (empty if inner in (None, (), {}, "") else filled).add(f"{name}.{field}")
                walk(inner)
        elif isinstance(value, tuple | dict):
            for inner in value.values() if isinstance(value, dict) else value:
                walk(inner)

    walk(document)
    return seen, empty - filled


def test_the_full_documents_leave_out_no_model_and_no_field(
    full_capture: Capture,
    full_diff: Diff,
    full_series: Series,
    full_history: History,
    full_explanation: Explanation,
    full_budget: Budget,
) -> None:
    documents = (full_capture, full_diff, full_series, full_history, full_explanation, full_budget)
    for document, module in zip(documents, (capture, diff, series, history, explanation, budget), strict=True):
        seen, unused = unused_fields(document)
        assert models_of(module) <= seen
        assert {field for field in unused if field.partition(".")[0] in models_of(module)} == set()


def test_documents_are_frozen_and_refuse_unknown_keys(full_capture: Capture) -> None:
    with pytest.raises(ValidationError):
        full_capture.launch.model = "other"
    data = full_capture.model_dump(mode="json")
    with pytest.raises(ValidationError):
        Capture.model_validate({**data, "surprise": 1})
    setting = full_capture.settings["model.max_model_len"]
    with pytest.raises(ValidationError):
        type(setting).model_validate({**setting.model_dump(), "resolved": {"value": 1, "because": "both"}})


@pytest.mark.parametrize("kind", sorted(DOCUMENTS))
def test_the_exported_schema_is_valid_and_accepts_the_golden_file(kind: str) -> None:
    schema = json_schema(kind)
    validator = jsonschema.Draft202012Validator
    assert schema["$schema"] == validator.META_SCHEMA["$id"]
    validator.check_schema(schema)
    golden = json.loads((GOLDEN / f"{kind}-{NEWEST[kind]}.json").read_text(encoding="utf-8"))
    validator(schema).validate(golden)
    for broken in ({**golden, "surprise": 1}, {"document": kind, "schema_version": 1}, {**golden, "document": "x"}):
        assert not validator(schema).is_valid(broken)


def test_upgrades_are_a_chain_from_schema_1_to_the_newest() -> None:
    wanted = {(kind, schema) for kind, newest in NEWEST.items() for schema in range(1, newest)}
    assert set(upgrade.STEPS) == wanted


def test_upgrade_walks_every_step(monkeypatch: pytest.MonkeyPatch) -> None:
    def step(to: int) -> Callable[[dict[str, Any]], dict[str, Any]]:
        return lambda data: {**data, "schema_version": to, "trail": [*data.get("trail", ()), to]}

    monkeypatch.setattr(upgrade, "STEPS", {("capture", 1): step(2), ("capture", 2): step(3), ("diff", 1): step(9)})
    assert upgrade.upgrade("capture", {"schema_version": 1}) == {"schema_version": 3, "trail": [2, 3]}
    assert upgrade.upgrade("capture", {"schema_version": 3}) == {"schema_version": 3}
    assert upgrade.upgrade("diff", {"schema_version": 1})["trail"] == [9]


def test_the_diff_ranks_by_the_registrys_areas() -> None:
    assert get_args(diff.Area) == AREAS


def test_golden_files_hold_no_path_of_a_machine() -> None:
    for path in RELEASED:
        assert not re.search(r"/(?:root|home|tmp|work)/", path.read_text(encoding="utf-8"))
