"""Reading and writing documents: every way a file can be wrong has its one error."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engdiff import errors
from engdiff.schema import files
from engdiff.schema.budget import Budget
from engdiff.schema.capture import CAPTURE_SCHEMA, Capture
from engdiff.schema.diff import Diff

GOLDEN = (Path(__file__).parent / "golden" / "capture-1.json").read_text(encoding="utf-8")
DIFF = (Path(__file__).parent / "golden" / "diff-1.json").read_text(encoding="utf-8")
DAMAGED = (errors.DocumentTruncated, errors.DocumentNotJson, errors.DocumentInvalid, errors.DocumentForeign)

needs_permissions = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() == 0, reason="nothing is forbidden to this user"
)


def edited(path: str, value: Any) -> str:
    """The golden capture with one key changed."""
    data = json.loads(GOLDEN)
    *parents, last = path.split("/")
    at = data
    for name in parents:
        at = at[int(name)] if isinstance(at, list) else at[name]
    at[last] = value
    return json.dumps(data)


# --- reading ----------------------------------------------------------------------------------------------------


def test_a_whole_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(GOLDEN, encoding="utf-8")
    assert files.load_capture(path).identity.engine == "vllm"


def test_missing(tmp_path: Path) -> None:
    with pytest.raises(errors.DocumentMissing, match=r"none\.json: no such file"):
        files.load_capture(tmp_path / "none.json")


def test_a_directory(tmp_path: Path) -> None:
    with pytest.raises(errors.DocumentUnreadable, match=str(tmp_path.name)):
        files.load_capture(tmp_path)


def test_a_name_that_no_file_can_have(tmp_path: Path) -> None:
    below = tmp_path / "file"
    below.touch()
    for path in (tmp_path / ("x" * 300), below / "a.json"):
        with pytest.raises(errors.DocumentUnreadable, match="cannot be read"):
            files.load_capture(path)


def test_a_file_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> str:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "read_text", refuse)
    with pytest.raises(errors.DocumentUnreadable, match=r"mine\.json: cannot be read: Permission denied"):
        files.load_capture(tmp_path / "mine.json")


@needs_permissions
def test_no_permission(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(GOLDEN, encoding="utf-8")
    path.chmod(0)
    with pytest.raises(errors.DocumentUnreadable, match="ermission"):
        files.load_capture(path)


@pytest.mark.parametrize(
    "content",
    [b"\x00\x01\xff\xfe", b"\x1f\x8b\x08\x00junk", GOLDEN.encode("utf-16"), b"GGUF\x03\x00\x00\x00\xf0"],
    ids=["binary", "gzip", "utf-16", "gguf"],
)
def test_binary(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(content)
    with pytest.raises(errors.DocumentNotJson, match=r"a\.json: not JSON"):
        files.load_capture(path)


@pytest.mark.parametrize(
    ("text", "error", "says"),
    [
        ("", errors.DocumentNotJson, "x: not JSON (line 1, column 1)"),
        ("INFO 12-02 starting", errors.DocumentNotJson, "not JSON (line 1, column 1)"),
        ('{"a": 1,\n "b": oops, "c": 2}', errors.DocumentNotJson, "not JSON (line 2, column 7)"),
        ("9" * 5000, errors.DocumentNotJson, "not JSON"),
        ("[" * 200_000, errors.DocumentNotJson, "not JSON"),
        ("{", errors.DocumentTruncated, "breaks off at line 1"),
        ('{"a": 1,\n "b": ', errors.DocumentTruncated, "breaks off at line 2"),
        ('{"a": tru', errors.DocumentTruncated, "breaks off"),
        ('{"a": "half a wo', errors.DocumentTruncated, "breaks off"),
        ("3", errors.DocumentForeign, "expected an engdiff capture, found JSON of another kind"),
        ("[]", errors.DocumentForeign, "found JSON of another kind"),
        ("{}", errors.DocumentForeign, "found JSON of another kind"),
        ('{"schema_version": 1}', errors.DocumentForeign, "found JSON of another kind"),
        ('{"schema_version": 1, "document": "sbom"}', errors.DocumentForeign, "found JSON of another kind"),
        ('{"schema_version": 1, "document": []}', errors.DocumentForeign, "found JSON of another kind"),
        (DIFF, errors.DocumentForeign, "expected an engdiff capture, found a diff"),
        (edited("schema_version", "1"), errors.DocumentInvalid, "key `schema_version`: is not a whole number"),
        (edited("schema_version", 1.0), errors.DocumentInvalid, "key `schema_version`: is not a whole number"),
        (edited("schema_version", True), errors.DocumentInvalid, "key `schema_version`: is not a whole number"),
        (edited("schema_version", None), errors.DocumentInvalid, "key `schema_version`: is not a whole number"),
        (edited("schema_version", 0), errors.DocumentInvalid, "key `schema_version`: is not a whole number from 1 on"),
        (edited("schema_version", CAPTURE_SCHEMA + 1), errors.DocumentTooNew, f"up to {CAPTURE_SCHEMA}"),
        (edited("identity/engine", 5), errors.DocumentInvalid, "key `identity.engine`: Input should be a valid string"),
        (edited("surprise", 5), errors.DocumentInvalid, "key `surprise`: Extra inputs are not permitted"),
        (edited("identity/version", {}), errors.DocumentInvalid, "key `identity.version"),
        (edited("instances/0/role", "chef"), errors.DocumentInvalid, "key `instances.0.role`"),
        (edited("notes", ["\ud800"]), errors.DocumentInvalid, "half a character"),
        ('{"a": 1}\n}', errors.DocumentNotJson, "not JSON (line 2"),
        ('{"a": NaN}', errors.DocumentNotJson, "not JSON"),
        ('{"a": -Infinity}', errors.DocumentNotJson, "not JSON"),
        (edited("settings/model.max_model_len/origin", "luck"), errors.DocumentInvalid, "model.max_model_len.origin`"),
    ],
)
def test_wrong_text(text: str, error: type[errors.DocumentError], says: str) -> None:
    with pytest.raises(error) as raised:
        files.parse(text, "x", Capture)
    assert says in str(raised.value)
    assert str(raised.value).startswith("x: ")


def test_a_missing_key_is_named() -> None:
    data = json.loads(GOLDEN)
    del data["runner"]["name"]
    with pytest.raises(errors.DocumentInvalid, match=r"key `runner\.name`: Field required"):
        files.parse(json.dumps(data), "x", Capture)


def test_a_capture_is_no_diff() -> None:
    with pytest.raises(errors.DocumentForeign, match="expected an engdiff diff, found a capture"):
        files.parse(GOLDEN, "x", Diff)
    assert files.parse(DIFF, "x", Diff).old.engine == "vllm"


def test_truncated_at_any_byte(tmp_path: Path) -> None:
    """A capture that breaks off is never taken for a whole one, and never a traceback."""
    whole = json.dumps(json.loads(GOLDEN), ensure_ascii=False).encode()
    path = tmp_path / "a.json"
    told = 0
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(DAMAGED) as raised:
            files.load_capture(path)
        assert not isinstance(raised.value, errors.DocumentForeign)
        told += isinstance(raised.value, errors.DocumentTruncated)
    assert told > 0.99 * len(whole), "nearly everywhere it is called what it is"


@given(st.text() | st.binary().map(lambda b: b.decode("latin-1")))
def test_any_text_fuzz(text: str) -> None:
    with pytest.raises(DAMAGED):
        files.parse(text, "x", Capture)


@given(
    st.integers(0, len(GOLDEN) - 1),
    st.text(st.sampled_from('0123456789{}[]",:.-eEtfn\\ux \n'), max_size=3),
    st.integers(0, 3),
)
def test_a_damaged_capture_fuzz(position: int, inserted: str, removed: int) -> None:
    text = GOLDEN[:position] + inserted + GOLDEN[position + removed :]
    try:
        document = files.parse(text, "x", Capture)
    except errors.DocumentError as error:
        assert error.advice  # noqa: PT017 - most damage is refused; some makes another valid capture
    else:
        assert files.parse(files.dump(document), "x", Capture).identity.engine == document.identity.engine


any_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(key=st.sampled_from(sorted(json.loads(GOLDEN))), value=any_json)
def test_any_value_under_any_key_loads_or_is_refused_property(key: str, value: Any) -> None:
    try:
        document = files.parse(edited(key, value), "x", Capture)
    except errors.DocumentError as error:
        assert error.advice  # noqa: PT017 - either outcome is fine
    else:
        assert files.parse(files.dump(document), "again", Capture) == document


def test_text_that_is_no_utf8_is_written_all_the_same() -> None:
    """A variable may hold any bytes; the launch behind the capture is too dear to lose."""
    document = files.parse(GOLDEN, "x", Capture)
    launch = document.launch.model_copy(update={"variables": {"VLLM_X": "a\udcff", "B": "ü 😀"}})
    again = files.parse(files.dump(document.model_copy(update={"launch": launch})), "again", Capture)
    assert again.launch.variables == {"VLLM_X": "a?", "B": "ü 😀"}
    assert again.model_copy(update={"launch": document.launch}) == document


# --- writing ----------------------------------------------------------------------------------------------------


def test_write_is_an_ordinary_file_and_leaves_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    files.write_text(path, "one — 1\n")
    files.write_text(path, "two\n")
    assert path.read_text(encoding="utf-8") == "two\n"
    assert [p.name for p in tmp_path.iterdir()] == ["a.json"]
    if os.name == "posix":
        mask = os.umask(0)
        os.umask(mask)
        assert path.stat().st_mode & 0o777 == 0o666 & ~mask


@pytest.mark.parametrize("call", ["fsync", "replace", "chmod"])
def test_a_failed_write_keeps_the_old_file(call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.json"
    path.write_text("old", encoding="utf-8")

    def full(*args: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(f"engdiff.schema.files.os.{call}", full)
    with pytest.raises(errors.OutputUnwritable, match="No space left on device"):
        files.write_text(path, "new")
    assert path.read_text(encoding="utf-8") == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["a.json"]


def test_an_interrupted_write_leaves_no_partial_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*args: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("engdiff.schema.files.os.fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        files.write_text(tmp_path / "a.json", "new")
    assert list(tmp_path.iterdir()) == []


def test_write_into_no_folder(tmp_path: Path) -> None:
    with pytest.raises(errors.OutputUnwritable, match=r"a\.json: cannot be written"):
        files.write_text(tmp_path / "none" / "a.json", "new")


def test_write_somewhere_keeps_what_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert files.write_somewhere(tmp_path / "a.json", "new") == tmp_path / "a.json"
    with pytest.raises(errors.OutputUnwritable) as raised:
        files.write_somewhere(tmp_path / "none" / "b.json", "kept")
    (kept,) = (p for p in tmp_path.iterdir() if p.name.startswith("engdiff-"))
    assert kept.read_text(encoding="utf-8") == "kept"
    assert str(kept) in raised.value.advice


def test_nowhere_to_keep_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "neither"))
    with pytest.raises(errors.OutputUnwritable) as raised:
        files.write_somewhere(tmp_path / "none" / "a.json", "text")
    assert "nothing is lost" not in raised.value.advice


@pytest.mark.parametrize("force", [False, True])
def test_check_output(force: bool, tmp_path: Path) -> None:
    files.check_output(tmp_path / "new.json", force=force)
    cases = {
        tmp_path: "it is a folder",
        tmp_path / "none" / "a.json": "the folder .* does not exist",
        tmp_path / ("a" * 5000): "cannot be written",
    }
    for path, says in cases.items():
        with pytest.raises(errors.OutputUnwritable, match=says):
            files.check_output(path, force=force)
    assert list(tmp_path.iterdir()) == []


def test_check_output_asks_before_it_replaces(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.touch()
    with pytest.raises(errors.OutputExists, match=r"a\.json exists already") as raised:
        files.check_output(path, force=False)
    assert "--force" in raised.value.advice
    files.check_output(path, force=True)


@needs_permissions
def test_check_output_in_a_folder_of_others(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(errors.OutputUnwritable, match="no permission in"):
            files.check_output(tmp_path / "a.json", force=False)
    finally:
        tmp_path.chmod(0o700)


def test_a_budget_may_stand_where_a_capture_may(tmp_path: Path, full_budget: Budget) -> None:
    """What it predicts is a capture."""
    path = tmp_path / "budget.json"
    path.write_text(files.dump(full_budget), encoding="utf-8")
    assert files.load_capture(path) == full_budget.capture
