"""What probes write: any object as plain data, no secret, and why something could not be read."""

from __future__ import annotations

import argparse
import dataclasses
import enum
import json
from pathlib import Path
from typing import Any

import pytest

from engdiff.engines import probe_kit


class Colour(enum.Enum):
    RED = 1


@dataclasses.dataclass
class Config:
    size: int = 3
    api_key: str = "sk-secret"
    eos_token: str = "</s>"


class Plain:
    def __init__(self) -> None:
        self.held = 1


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Colour.RED, "RED"),
        (float("inf"), "inf"),
        ({Colour.RED: {2, 1}}, {"RED": [1, 2]}),
        (Config(), {"size": 3, "api_key": probe_kit.HIDDEN, "eos_token": "</s>"}),
        (Plain, "tests.engines.test_probe_kit.Plain"),
        (Plain(), "<Plain>"),
        (Path("/a/b"), "/a/b"),
    ],
)
def test_plain(value: Any, expected: Any) -> None:
    assert json.loads(json.dumps(probe_kit.plain(value))) == expected


def test_objects_of_the_engines_own_package_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe_kit, "PACKAGES", {"tests"})
    assert probe_kit.plain(Plain()) == {"held": 1}


def test_first_takes_the_first_path_that_leads_somewhere() -> None:
    thing = argparse.Namespace(a=argparse.Namespace(b=None, c=2))
    assert probe_kit.first(thing, "a.b", "x.y", "a.c") == 2
    assert probe_kit.first(thing, "a.b") is None


def test_a_command_line_is_split_into_what_was_written_and_what_was_not() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", type=int, default=3)
    parser.add_argument("--fast", action="store_true")
    parser.add_argument("--cache", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--sizes", nargs="+", type=int)
    takes = {flag["dest"]: flag["takes"] for flag in probe_kit.flags_of(parser)}
    assert takes == {"help": "flag", "size": "value", "fast": "flag", "cache": "switch", "sizes": "list"}
    assert probe_kit.explicit_of(parser, ["--no-cache", "--sizes", "1", "2"]) == {"cache": False, "sizes": [1, 2]}


def test_words_that_the_parser_refuses_end_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match="refuses"):
        probe_kit.explicit_of(argparse.ArgumentParser(), ["--no-such-flag"])
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--api-key", "a", "b", "--port", "1"], ["--api-key", "[redacted]", "[redacted]", "--port", "1"]),
        (["--api-key=a", "--model", "m"], ["--api-key=[redacted]", "--model", "m"]),
    ],
)
def test_secret_words_are_hidden(words: list[str], expected: list[str]) -> None:
    assert probe_kit.without_secrets(words) == expected


def test_writing_never_raises(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(probe_kit.OUT, str(tmp_path))
    probe_kit.write("good", lambda: {"a": 1})
    nothing: dict[str, dict[str, int]] = {}
    probe_kit.write("bad", lambda: nothing["missing"])
    assert json.loads((tmp_path / "good.json").read_text())["a"] == 1
    assert json.loads((tmp_path / "bad.json").read_text())["unreadable"] == "KeyError: 'missing'"
    monkeypatch.setenv(probe_kit.OUT, str(tmp_path / "nowhere"))
    probe_kit.write("good", lambda: {"a": 1})
    assert "engdiff probe:" in capsys.readouterr().err
