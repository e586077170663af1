"""Run a command line in this process, and capture files to run it on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from io import BufferedReader, BytesIO, TextIOWrapper
from pathlib import Path

import pytest

from engdiff.cli.app import run
from engdiff.schema.files import dump
from tests import factories as make


@dataclass(frozen=True)
class Ended:
    """What a command left."""

    code: int
    out: str
    err: str


Call = Callable[..., Ended]


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Call:
    """``call("diff", "a.json", "b.json", stdin="")``; no traceback and no defect, whatever is asked."""
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ENGDIFF_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)

    def called(*words: str, stdin: str = "", defect: bool = False) -> Ended:
        given = BufferedReader(BytesIO(stdin.encode("utf-8", "surrogatepass")))
        monkeypatch.setattr("sys.stdin", TextIOWrapper(given, encoding="utf-8"))
        code = run(list(words))
        out, err = capsys.readouterr()
        assert "Traceback" not in out + err
        assert "\x1b" not in out + err
        assert defect or code != 70, err
        return Ended(code, out, err)

    return called


@pytest.fixture
def old(tmp_path: Path) -> str:
    """A capture file."""
    (tmp_path / "old.json").write_text(dump(make.llamacpp()), encoding="utf-8")
    return "old.json"


@pytest.fixture
def new(tmp_path: Path) -> str:
    """The same engine with a cache four times as big."""
    (tmp_path / "new.json").write_text(dump(make.llamacpp(cells=4096)), encoding="utf-8")
    return "new.json"
