"""Documents on disk: the golden files load for ever, and every bad file has one clear error."""

from __future__ import annotations

import errno
import json
import os
import stat
import tempfile
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from engdiff import errors
from engdiff.schema import files
from engdiff.schema.capture import CAPTURE_SCHEMA, Capture
from engdiff.schema.diff import DIFF_SCHEMA, Diff
from engdiff.schema.export import json_schema
from engdiff.schema.upgrade import STEPS, upgrade

GOLDEN = Path(__file__).parent / "golden"
CAPTURE = GOLDEN / "capture-1.json"
GOLDEN_FILES = sorted(GOLDEN.glob("*.json"))


def kind_of(path: Path) -> str:
    return path.stem.partition("-")[0]


def load(path: Path) -> Capture | Diff:
    text = files.read_text(path)
    return files.parse(text, str(path), Capture if kind_of(path) == "capture" else Diff)


# --- golden files -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "newest"), [("capture", CAPTURE_SCHEMA), ("diff", DIFF_SCHEMA)])
def test_each_schema_has_a_golden_file_and_a_way_to_the_newest(kind: str, newest: int) -> None:
    """A released schema never loses its file: add one with each new schema, and leave the old ones alone."""
    assert {p.name for p in GOLDEN_FILES if kind_of(p) == kind} == {f"{kind}-{n}.json" for n in range(1, newest + 1)}
    assert {n for k, n in STEPS if k == kind} == set(range(1, newest))


@pytest.mark.parametrize("path", GOLDEN_FILES, ids=lambda p: p.stem)
def test_golden_loads_for_ever(path: Path) -> None:
    document = load(path)
    assert document.schema_version == files.NEWEST[kind_of(path)]
    model = Capture if isinstance(document, Capture) else Diff
    assert files.parse(files.dump(document), "again", model) == document


@pytest.mark.parametrize("kind", ["capture", "diff"])
def test_newest_golden_round_trips_to_the_byte(kind: str) -> None:
    path = GOLDEN / f"{kind}-{files.NEWEST[kind]}.json"
    assert files.dump(load(path)) == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", ["capture", "diff"])
def test_newest_golden_uses_every_optional_part(kind: str) -> None:
    """So that the promise to read it covers every part."""
    seen: dict[type[BaseModel], set[str]] = {}
    _collect(load(GOLDEN / f"{kind}-{files.NEWEST[kind]}.json"), seen)
    unused = {
        f"{model.__name__}.{name}"
        for model, used in seen.items()
        for name, field in model.model_fields.items()
        if name not in used and not field.is_required()
    }
    assert unused - {f"{kind.title()}.document", f"{kind.title()}.schema_version"} == set()


def _collect(value: Any, seen: dict[type[BaseModel], set[str]]) -> None:
    if isinstance(value, BaseModel):
        used = seen.setdefault(type(value), set())
        for name, field in type(value).model_fields.items():
            part = getattr(value, name)
            if field.is_required() or part != field.get_default(call_default_factory=True):
                used.add(name)
            _collect(part, seen)
    elif isinstance(value, dict):
        for part in value.values():
            _collect(part, seen)
    elif isinstance(value, tuple):
        for part in value:
            _collect(part, seen)


@pytest.mark.parametrize("kind", ["capture", "diff"])
def test_exported_schema_validates_the_golden(kind: str) -> None:
    schema = json_schema(kind)
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    data = json.loads((GOLDEN / f"{kind}-{files.NEWEST[kind]}.json").read_text(encoding="utf-8"))
    validator.validate(data)
    data["surprise"] = 1
    with pytest.raises(jsonschema.ValidationError):
        validator.validate(data)


def test_upgrade_runs_step_by_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(STEPS, ("capture", 7), lambda data: data | {"schema_version": 8, "a": 1})
    monkeypatch.setitem(STEPS, ("capture", 8), lambda data: data | {"schema_version": 9, "b": data["a"] + 1})
    assert upgrade("capture", {"schema_version": 7}) == {"schema_version": 9, "a": 1, "b": 2}
    assert upgrade("diff", {"schema_version": 7}) == {"schema_version": 7}


def test_documents_are_frozen_and_keep_unknown_apart_from_known() -> None:
    document = files.load_capture(CAPTURE)
    with pytest.raises(ValueError, match="frozen"):
        document.notes = ()
    assert document.settings["kernels.threads"].final == document.settings["kernels.threads"].resolved
    final = document.settings["model.context_total"].final
    assert getattr(final, "value", None) == 16384


# --- what is wrong with a file ----------------------------------------------------------------------------------


def edited(**changes: Any) -> str:
    """The golden capture with some keys (``__`` for a dot) set; ``...`` takes a key away."""
    data = json.loads(CAPTURE.read_text(encoding="utf-8"))
    for path, value in changes.items():
        at = data
        *parents, last = path.split("__")
        for name in parents:
            at = at[name]
        if value is ...:
            del at[last]
        else:
            at[last] = value
    return json.dumps(data)


@pytest.mark.parametrize(
    ("content", "error", "says"),
    [
        ("", errors.DocumentNotJson, ("line 1",)),
        ("hello", errors.DocumentNotJson, ("line 1, column 1",)),
        ("{'a': 1}", errors.DocumentNotJson, ("line 1, column 2",)),
        ('{"a": 1}\n}', errors.DocumentNotJson, ("line 2",)),
        ("9" * 5000, errors.DocumentNotJson, ()),
        ("[" * 100_000, errors.DocumentNotJson, ()),
        ('{"a": 1', errors.DocumentTruncated, ("breaks off at line 1",)),
        ('{"a":\n"b', errors.DocumentTruncated, ("line 2",)),
        ('{"a": tr', errors.DocumentTruncated, ()),
        ('{"a": nul', errors.DocumentTruncated, ()),
        ("[", errors.DocumentTruncated, ()),
        ("[1, 2]", errors.DocumentForeign, ("capture", "JSON of another kind")),
        ("3", errors.DocumentForeign, ()),
        ('"text"', errors.DocumentForeign, ()),
        ("null", errors.DocumentForeign, ()),
        ("{}", errors.DocumentForeign, ()),
        ('{"schema_version": 1}', errors.DocumentForeign, ()),
        ('{"document": "capture"}', errors.DocumentForeign, ()),
        ('{"document": "invoice", "schema_version": 1}', errors.DocumentForeign, ("JSON of another kind",)),
        ('{"document": "diff", "schema_version": 1}', errors.DocumentForeign, ("an engdiff capture, found a diff",)),
        (edited(schema_version=CAPTURE_SCHEMA + 1), errors.DocumentTooNew, (str(CAPTURE_SCHEMA + 1), "newer")),
        (edited(schema_version="1"), errors.DocumentInvalid, ("`schema_version`",)),
        (edited(schema_version=1.0), errors.DocumentInvalid, ("`schema_version`",)),
        (edited(schema_version=True), errors.DocumentInvalid, ("`schema_version`",)),
        (edited(schema_version=None), errors.DocumentInvalid, ("`schema_version`",)),
        (edited(schema_version=0), errors.DocumentInvalid, ("`schema_version`",)),
        (edited(schema_version=-1), errors.DocumentInvalid, ("`schema_version`",)),
        (edited(identity__engine=3), errors.DocumentInvalid, ("`identity.engine`",)),
        (edited(identity__host__cpu_count="many"), errors.DocumentInvalid, ("`identity.host.cpu_count`",)),
        (edited(identity__host=...), errors.DocumentInvalid, ("`identity.host`", "required")),
        (edited(surprise=1), errors.DocumentInvalid, ("`surprise`",)),
        (edited(boot=[{"name": 1}]), errors.DocumentInvalid, ("`boot.0.name`",)),
        (edited(instances=None), errors.DocumentInvalid, ("`instances`",)),
    ],
)  # fmt: skip
def test_bad_content(content: str, error: type[errors.DocumentError], says: tuple[str, ...], tmp_path: Path) -> None:
    path = tmp_path / "old.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(errors.DocumentError) as caught:
        files.load_capture(path)
    assert type(caught.value) is error
    assert caught.value.exit_code == errors.EXIT_USAGE
    assert caught.value.advice
    for words in (str(path), *says):
        assert words in str(caught.value)


def test_a_capture_is_no_diff() -> None:
    with pytest.raises(errors.DocumentForeign, match="expected an engdiff diff, found a capture"):
        files.parse(CAPTURE.read_text(encoding="utf-8"), "x", Diff)


def test_bad_files(tmp_path: Path) -> None:
    binary = tmp_path / "binary.json"
    binary.write_bytes(b"\x7fELF\xff\xfe\x00\x80")
    cases: list[tuple[Path, type[errors.DocumentError]]] = [
        (tmp_path / "missing.json", errors.DocumentMissing),
        (tmp_path, errors.DocumentUnreadable),
        (binary, errors.DocumentNotJson),
        (tmp_path / ("x" * 300), errors.DocumentUnreadable),
        (binary / "below", errors.DocumentUnreadable),
    ]
    for path, error in cases:
        with pytest.raises(errors.DocumentError) as caught:
            files.load_capture(path)
        assert type(caught.value) is error, path
        assert str(path) in str(caught.value)
        assert caught.value.advice


def test_a_file_without_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> str:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "read_text", refuse)
    with pytest.raises(errors.DocumentUnreadable, match="Permission denied"):
        files.load_capture(tmp_path / "mine.json")


def test_truncated_at_every_byte_is_never_a_traceback() -> None:
    text = json.dumps(json.loads(CAPTURE.read_text(encoding="utf-8")), ensure_ascii=False)
    broken = 0
    for length in range(len(text)):
        with pytest.raises(errors.DocumentError) as caught:
            files.parse(text[:length], "cut.json", Capture)
        assert isinstance(caught.value, errors.DocumentTruncated | errors.DocumentNotJson), text[:length][-40:]
        broken += isinstance(caught.value, errors.DocumentTruncated)
    assert broken > 0.9 * len(text)


@given(st.text() | st.binary().map(lambda b: b.decode("latin-1")))
def test_property_arbitrary_text_is_a_document_error(text: str) -> None:
    with pytest.raises(errors.DocumentError):
        files.parse(text, "any.json", Capture)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(key=st.sampled_from(sorted(json.loads(CAPTURE.read_text(encoding="utf-8")))), value=_JSON)
def test_property_any_value_under_any_key_loads_or_names_a_key(key: str, value: Any) -> None:
    try:
        document = files.parse(edited(**{key: value}), "any.json", Capture)
    except errors.DocumentError as error:
        assert error.advice  # noqa: PT017 - either outcome is fine
    else:
        assert files.parse(files.dump(document), "again", Capture) == document


# --- writing ----------------------------------------------------------------------------------------------------


def test_write_is_whole_and_an_ordinary_file(tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    path.write_text("old")
    files.write_text(path, "new ü\n")
    assert path.read_text(encoding="utf-8") == "new ü\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~files._umask()
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_write_that_fails_leaves_the_old_file_and_no_rest(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "out.json"
    path.write_text("old")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, step, full)
    with pytest.raises(errors.OutputUnwritable, match="No space left on device") as caught:
        files.write_text(path, "new")
    assert caught.value.exit_code == errors.EXIT_USAGE
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_write_into_no_folder(tmp_path: Path) -> None:
    with pytest.raises(errors.OutputUnwritable, match="No such file or directory"):
        files.write_text(tmp_path / "none" / "out.json", "text")


def test_what_cannot_be_written_is_kept_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spare = tmp_path / "spare"
    spare.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(spare))
    with pytest.raises(errors.OutputUnwritable) as caught:
        files.write_somewhere(tmp_path / "none" / "out.json", "dear text")
    (kept,) = spare.iterdir()
    assert kept.read_text() == "dear text"
    assert "out.json" in kept.name
    assert str(kept) in caught.value.advice
    assert "nothing is lost" in caught.value.advice
    assert str(tmp_path / "none" / "out.json") in str(caught.value)


def test_what_can_be_written_is_not_kept_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spare = tmp_path / "spare"
    spare.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(spare))
    assert files.write_somewhere(tmp_path / "out.json", "text") == tmp_path / "out.json"
    assert list(spare.iterdir()) == []


def test_nowhere_to_keep_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "neither"))
    with pytest.raises(errors.OutputUnwritable) as caught:
        files.write_somewhere(tmp_path / "none" / "out.json", "text")
    assert "nothing is lost" not in caught.value.advice


def test_check_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    there = tmp_path / "there.json"
    there.write_text("x")
    cases: list[tuple[Path, bool, type[errors.OutputRefused] | None, str]] = [
        (tmp_path / "new.json", False, None, ""),
        (there, True, None, ""),
        (there, False, errors.OutputExists, "exists already"),
        (tmp_path, True, errors.OutputUnwritable, "it is a folder"),
        (tmp_path / "none" / "new.json", False, errors.OutputUnwritable, "does not exist"),
        (there / "below.json", False, errors.OutputUnwritable, "does not exist"),
        (tmp_path / ("x" * 300), False, errors.OutputUnwritable, "too long"),
    ]
    for path, force, error, says in cases:
        if error is None:
            files.check_output(path, force=force)
            continue
        with pytest.raises(errors.OutputRefused, match=says) as caught:
            files.check_output(path, force=force)
        assert type(caught.value) is error, path
        assert caught.value.advice
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(errors.OutputUnwritable, match="no permission"):
        files.check_output(tmp_path / "new.json", force=False)
    assert there.read_text() == "x"
