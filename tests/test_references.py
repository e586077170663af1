"""What a word on the command line names."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engdiff import errors, references
from engdiff.references import EngineReference, FileReference, StdinReference


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("text", "reference"),
    [
        ("-", StdinReference()),
        ("vllm", EngineReference("vllm", None)),
        ("VLLM", EngineReference("vllm", None)),
        ("vLLM@0.32.0", EngineReference("vllm", "0.32.0")),
        ("vllm@0.32.0/H100-80GB:8", EngineReference("vllm", "0.32.0", "H100-80GB:8")),
        ("vllm/here", EngineReference("vllm", None, "here")),
        ("llama.cpp@b7376", EngineReference("llama.cpp", "b7376")),
        ("my-engine_2@1.0+cpu", EngineReference("my-engine_2", "1.0+cpu")),
        ("vllm@latest", EngineReference("vllm", "latest")),
        ("vllm@0.12.0.post2", EngineReference("vllm", "0.12.0.post2")),
        ("old.json", FileReference(Path("old.json"))),
        ("a/b/old.json", FileReference(Path("a/b/old.json"))),
        ("vllm@0.32.0.json", FileReference(Path("vllm@0.32.0.json"))),
        ("engine.log", FileReference(Path("engine.log"))),
        ("capture.json.gz", FileReference(Path("capture.json.gz"))),
        ("-.json", FileReference(Path("-.json"))),
    ],
)
def test_references(text: str, reference: references.Reference) -> None:
    assert references.parse(text) == reference


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "neither a file nor ENGINE@VERSION"),
        (" ", "neither a file nor ENGINE@VERSION"),
        ("vllm@", "neither a file nor ENGINE@VERSION"),
        ("@0.32.0", "neither a file nor ENGINE@VERSION"),
        ("vllm@0.32.0@cpu", "neither a file nor ENGINE@VERSION"),
        ("vllm 0.32.0", "neither a file nor ENGINE@VERSION"),
        ("0.32.0", "neither a file nor ENGINE@VERSION"),
        ("/no/such/thing", "neither a file nor ENGINE@VERSION"),
        ("../vllm", "neither a file nor ENGINE@VERSION"),
        ("vllm\n", "neither a file nor ENGINE@VERSION"),
        ("x" * 5000 + "!", "neither a file nor ENGINE@VERSION"),
        ("a\0b", "neither a file nor ENGINE@VERSION"),
        ("vllm@/H100", "neither a file nor ENGINE@VERSION"),
        ("vllm@0.32.0/", "neither a file nor ENGINE@VERSION"),
    ],
)
def test_no_references(text: str, says: str) -> None:
    with pytest.raises(errors.ReferenceInvalid, match=says) as caught:
        references.parse(text)
    assert caught.value.advice


def test_a_file_that_is_there_wins_over_an_engine(empty_folder: Path) -> None:
    (empty_folder / "vllm").write_text("{}")
    (empty_folder / "vllm@0.32.0").write_text("{}")
    assert references.parse("vllm") == FileReference(Path("vllm"))
    assert references.parse("vllm@0.32.0") == FileReference(Path("vllm@0.32.0"))


def test_a_folder_does_not_hide_an_engine(empty_folder: Path) -> None:
    (empty_folder / "vllm").mkdir()
    assert references.parse("vllm") == EngineReference("vllm", None)


@given(st.text(max_size=30) | st.text("vllm@./-0123 :h\n", max_size=15))
def test_property_any_text_is_a_reference_or_is_refused(text: str) -> None:
    try:
        reference = references.parse(text)
    except errors.ReferenceInvalid:
        return
    if isinstance(reference, EngineReference):
        written = reference.engine + ("" if reference.version is None else f"@{reference.version}")
        written += "" if reference.gpu is None else f"/{reference.gpu}"
        assert written.lower() == text.lower()
        assert references.parse(written) == reference
