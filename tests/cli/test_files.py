"""Verbs on files: exit codes, what goes where, and every refusal with its sentence."""

from __future__ import annotations

import json
import os
from pathlib import Path

import jsonschema
import pytest

from engdiff import __version__
from engdiff.diff import compare
from engdiff.schema.capture import CAPTURE_SCHEMA, Capture
from engdiff.schema.diff import Diff
from engdiff.schema.files import dump, parse
from tests import factories as make
from tests.cli.conftest import Call

VERBS = ["capture", "diff", "show", "doctor", "schema", "env list", "env remove", "env prune"]


# --- diff -----------------------------------------------------------------------------------------------------------


def test_equal(call: Call, old: str) -> None:
    ended = call("diff", old, old)
    assert (ended.code, ended.err) == (0, "")
    assert "nothing moved" in ended.out


def test_differs(call: Call, old: str, new: str) -> None:
    ended = call("diff", old, new)
    assert (ended.code, ended.err) == (1, "")
    assert "the KV cache grew: 4 MiB → 16 MiB (×4)" in ended.out
    assert "llama-server -m /models/tiny.gguf -np 4 -c 4096" in ended.out.splitlines()


def test_accepted_differences_are_none(call: Call, old: str, new: str, tmp_path: Path) -> None:
    (tmp_path / "accept.toml").write_text('[[accept]]\nkey = "*"\nreason = "planned"\n')
    ended = call("diff", old, new, "--accept", "accept.toml")
    assert ended.code == 0
    assert "accepted: planned" in ended.out


@pytest.mark.parametrize("words", [["--json"], ["--format", "json"]])
def test_json(call: Call, old: str, new: str, words: list[str]) -> None:
    ended = call("diff", old, new, *words)
    assert (ended.code, ended.err) == (1, "")
    found = parse(ended.out, "stdout", Diff)
    assert found.findings[0].kind == "PoolGrew"
    assert (found.old.label, found.new.label) == (old, new)


def test_formats(call: Call, old: str, new: str) -> None:
    assert call("diff", old, new, "--format", "markdown").out.startswith("## llamacpp ")
    assert call("diff", old, new, "--format", "github").out.startswith("::warning ")
    assert call("diff", old, old, "--format", "github").out == ""


def test_pins_as_variables(call: Call, old: str, new: str) -> None:
    assert "LLAMA_ARG_CTX_SIZE=4096" in call("diff", old, new, "--pins", "env").out


def test_everything(call: Call, tmp_path: Path) -> None:
    for name, value in (("a", 1), ("b", 2)):
        made = make.with_native("config.example_config.odd", value)(make.vllm())
        (tmp_path / f"{name}.json").write_text(dump(make.with_native(f"config.only_{name}", 1)(made)))
    few, all_ = call("diff", "a.json", "b.json").out, call("diff", "a.json", "b.json", "--all").out
    assert "config.only_b" not in few
    assert "config.only_b" in all_


@pytest.mark.parametrize("first", [True, False])
def test_standard_input(call: Call, old: str, new: str, tmp_path: Path, first: bool) -> None:
    text = (tmp_path / (old if first else new)).read_text(encoding="utf-8")
    ended = call("diff", *(("-", new) if first else (old, "-")), "--json", stdin=text)
    assert ended.code == 1
    side = parse(ended.out, "stdout", Diff)
    assert (side.old if first else side.new).label == "-"


def test_output(call: Call, old: str, new: str, tmp_path: Path) -> None:
    ended = call("diff", old, new, "-o", "diff.json")
    assert ended.code == 1
    assert "the KV cache grew" in ended.out
    assert parse((tmp_path / "diff.json").read_text(encoding="utf-8"), "diff.json", Diff).findings
    again = call("diff", old, new, "-o", "diff.json")
    assert (again.code, again.out) == (2, "")
    assert "diff.json exists already" in again.err
    assert "--force" in again.err
    assert call("diff", old, new, "-o", "diff.json", "--force").code == 1


# --- refusals -------------------------------------------------------------------------------------------------------

TRUNCATED = dump(make.llamacpp())[:2000]
NEWER = dump(make.llamacpp()).replace(f'"schema_version": {CAPTURE_SCHEMA}', '"schema_version": 99')
FILES = {
    "truncated.json": TRUNCATED,
    "foreign.json": '{"a": 1}',
    "list.json": "[1]",
    "text.json": "INFO 12-02 engine started",
    "text.txt": "12-02 something started",
    "newer.json": NEWER,
    "diff.json": dump(
        compare.compare(make.llamacpp(), make.llamacpp(), old_label="a", new_label="b"),
    ),
    "edited.json": dump(make.llamacpp()).replace('"cpu_count": 16', '"cpu_count": "many"'),
    "empty.json": "",
}

REFUSED: list[tuple[list[str], str, str]] = [
    (["diff", "missing.json", "old.json"], "missing.json: no such file", "engdiff capture"),
    (["diff", "truncated.json", "old.json"], "truncated.json: the file breaks off at line", "copy it again"),
    (["diff", "foreign.json", "old.json"], "foreign.json: expected an engdiff capture", "engdiff capture -o FILE"),
    (["diff", "list.json", "old.json"], "list.json: expected an engdiff capture", "engdiff capture -o FILE"),
    (["diff", "diff.json", "old.json"], "diff.json: expected an engdiff capture, found a diff", "engdiff capture"),
    (["diff", "text.json", "old.json"], "text.json: not JSON (line 1, column 1)", "engdiff capture -o FILE"),
    (["diff", "empty.json", "old.json"], "empty.json: ", "engdiff"),
    (["diff", "newer.json", "old.json"], "newer.json: schema 99 is newer", "upgrade engdiff"),
    (["diff", "edited.json", "old.json"], "edited.json: key `identity.host.cpu_count`", "capture again"),
    (["diff", "old.json", "-"], "standard input: ", "engdiff"),
    (["diff", "old.json"], "one side alone cannot differ", "engdiff diff OLD NEW"),
    (["diff", "-", "-"], "`-` can be given once", "write one of the two to a file"),
    (["diff", "old.json", "old.json", "--", "--max-model-len", "8"], "nothing is launched here", "leave them out"),
    (["diff", "old.json", "old.json", "--python", "/bin/python"], "--python names the interpreter of one engine", ""),
    (["diff", "old.json", "old.json", "--env", "A"], "--env A: not NAME=VALUE", "--env VLLM"),
    (["diff", "old.json", "old.json", "--env", "=1"], "--env =1: not NAME=VALUE", "--env VLLM"),
    (["diff", "old.json", "old.json", "--accept", "none.toml"], "none.toml: no such file", ""),
    (["diff", "old.json", "old.json", "-o", "none/diff.json"], "the folder none does not exist", "-o"),
    (["diff", "old.json", "old.json", "-o", "."], "it is a folder", "-o"),
    (["diff", "old.json", "vlm@0.32.0"], "no engine is called `vlm`", "did you mean `vllm`?"),
    (["diff", "old.json", "llama.cpp"], "no engine is called `llama.cpp`", "did you mean `llamacpp`?"),
    (["diff", "old.json", "vllm@"], "neither a file nor ENGINE@VERSION", "examples"),
    (["diff", "old.json", "http://localhost:1"], "nothing listens there", "is the server up?"),
    (
        ["diff", "old.json", "text.txt"],
        "text.txt: none of its 1 lines is one that vLLM, SGLang",
        "engdiff capture ENGINE",
    ),
    (["diff", "old.json", "none.log"], "none.log: no such file", ""),
    (["diff", "old.json", "llamacpp/h100"], "llama.cpp has the same defaults", "llamacpp@VERSION/any"),
    (["show", "http://localhost:8000"], "is a server, not a capture", "engdiff capture --attach http://localhost:8000"),
    (["show", "text.txt"], "text.txt: none of its 1 lines", "give the log from its beginning"),
    (["show", "vllm@0.32.0"], "is an engine, not a capture", "engdiff capture vllm@0.32.0"),
    (["show", "nofile"], "nofile: no such file", "engdiff capture"),
    (["show", "truncated.json"], "truncated.json: the file breaks off", "copy it again"),
    (["show", "old.json", "--", "-np", "4"], "`show` starts no engine", "leave it out"),
    (["schema", "capture", "--", "-np", "4"], "`schema` starts no engine", "leave it out"),
    (["env", "list", "--", "-np", "4"], "`env` starts no engine", "leave it out"),
    (["env", "remove", "vllm@1.2.3"], "no environment is called `vllm@1.2.3`", "engdiff env list"),
    (["capture", "old.json"], "is not an engine", "engdiff show old.json"),
    (["capture"], "nothing to capture was named", "--log FILE"),
    (["capture", "--log", "none.log"], "none.log: no such file", ""),
    (["capture", "--log", "text.txt"], "text.txt: none of its 1 lines", "give the log from its beginning"),
    (["capture", "--log", "-", "--log", "-"], "`--log -` can be given once", "write one of them to a file"),
    (["capture", "vllm@0.32.0", "--log", "text.txt"], "the version is what engdiff reads", "say vllm"),
    (["capture", "--log", "text.txt", "--", "--x"], "nothing is launched here", "leave them out"),
    (["capture", "--attach", "http://localhost:1"], "nothing listens there", "is the server up?"),
    (["capture", "--attach", "localhost"], "localhost/v1/models: not a URL of a server", "http://127.0.0.1:8000"),
    (["capture", "--attach", "http://localhost:1", "--token-env", "NONE_SET"], "no such variable", "export NONE_SET"),
    (["capture", "--probe", "none"], "none: no such folder", "ENGDIFF_PROBE_OUT"),
    (["capture", "--like", "none.yaml"], "none.yaml: no such file", ""),
    (["probe", "export", "llamacpp", "p"], "llama.cpp takes no probe from outside", "--attach URL"),
    (["probe", "export", "vllm", "."], "exists already", "--force"),
    (["capture", "llamacpp"], "no model was given", "--model"),
    (["capture", "llamacpp", "--model", "none.gguf"], "none.gguf: no such file", ".gguf"),
    (["capture", "vllm", "--model", "./none"], "none: no such file or folder", "--model"),
    (["capture", "vllm", "--model", "tiny", "--like", "none.json"], "none.json: no such file", ""),
    (["capture", "vllm", "--like", "old.json"], "that capture is of llamacpp", "after --"),
    (["capture", "nope@1", "--model", "tiny"], "no engine is called `nope`", "engines: "),
    (["capture", "vllm", "--model", "tiny", "-o", "none/new.json"], "the folder none does not exist", "-o"),
    (["capture", "vllm", "--model", "tiny", "-o", "old.json"], "old.json exists already", "--force"),
]


@pytest.mark.parametrize(("words", "message", "advice"), REFUSED, ids=[" ".join(case[0]) for case in REFUSED])
def test_refused(call: Call, old: str, tmp_path: Path, words: list[str], message: str, advice: str) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    ended = call(*words)
    assert (ended.code, ended.out) == (2, ""), ended.err
    first, *rest = ended.err.splitlines()
    assert first.startswith("error: ")
    assert message in first
    assert advice in " ".join(rest)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["frob"], "No such command 'frob'"),
        (["diff", "old.json", "old.json", "--frob"], "No such option: --frob"),
        (["diff"], "Missing argument"),
        (["diff", "old.json", "old.json", "--format", "pdf"], "'pdf'"),
        (["schema", "frob"], "'frob' is not one of"),
        (["env", "prune", "--days", "-1"], "Invalid value for '--days'"),
    ],
)
def test_usage(call: Call, old: str, words: list[str], message: str) -> None:
    ended = call(*words)
    assert (ended.code, ended.out) == (2, "")
    assert message in ended.err
    assert "Usage: engdiff" in ended.err


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_is_not_ours(call: Call, old: str, tmp_path: Path) -> None:
    folder = tmp_path / "theirs"
    folder.mkdir(mode=0o500)
    ended = call("diff", old, old, "-o", "theirs/diff.json")
    assert ended.code == 2
    assert "no permission in theirs" in ended.err


def test_a_folder_that_refuses(call: Call, old: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.access", lambda path, mode: False)
    ended = call("diff", old, old, "-o", "diff.json")
    assert (ended.code, ended.out) == (2, "")
    assert "diff.json: cannot be written: no permission" in ended.err


# --- show, schema, env, version, help -------------------------------------------------------------------------------


def test_show(call: Call, old: str) -> None:
    ended = call("show", old)
    assert (ended.code, ended.err) == (0, "")
    assert "KV cache: 4 MiB" in ended.out
    assert "4 more hold their declared default (--all)" in ended.out
    assert "server.timeout_seconds" not in ended.out
    assert "server.timeout_seconds" in call("show", old, "--all").out


def test_show_from_standard_input_as_json(call: Call, old: str, tmp_path: Path) -> None:
    text = (tmp_path / old).read_text(encoding="utf-8")
    ended = call("show", "-", "--json", stdin=text)
    assert (ended.code, ended.err) == (0, "")
    assert parse(ended.out, "stdout", Capture) == make.llamacpp()


@pytest.mark.parametrize("kind", ["capture", "diff"])
def test_schema(call: Call, old: str, new: str, tmp_path: Path, kind: str) -> None:
    ended = call("schema", kind)
    assert (ended.code, ended.err) == (0, "")
    schema = json.loads(ended.out)
    jsonschema.Draft202012Validator.check_schema(schema)
    text = (tmp_path / old).read_text(encoding="utf-8") if kind == "capture" else call("diff", old, new, "--json").out
    jsonschema.validate(json.loads(text), schema)


def test_no_environments(call: Call) -> None:
    assert "no environments in" in call("env", "list").out
    assert call("env", "prune").out == "nothing to remove\n"


def test_version(call: Call) -> None:
    ended = call("--version")
    assert (ended.code, ended.out, ended.err) == (0, f"engdiff {__version__}\n", "")


@pytest.mark.parametrize("words", [["--help"], ["-h"]])
def test_help(call: Call, words: list[str]) -> None:
    ended = call(*words)
    assert (ended.code, ended.err) == (0, "")
    assert all(verb.split()[0] in ended.out for verb in VERBS)


def test_no_words_at_all_is_help(call: Call) -> None:
    ended = call()
    assert "Usage: engdiff" in ended.out + ended.err


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_an_example(call: Call, verb: str) -> None:
    ended = call(*verb.split(), "--help")
    assert (ended.code, ended.err) == (0, "")
    text = " ".join(ended.out.split())
    assert text.count(f"engdiff {verb}") >= 2, "once in the usage, once in an example"


# --- a defect -------------------------------------------------------------------------------------------------------


def test_a_defect_is_a_sentence_and_a_file(
    call: Call, old: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def broken(*args: object, **kwargs: object) -> None:
        raise RuntimeError("api_key=abcdefghijklmnop")

    monkeypatch.setattr(compare, "compare", broken)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    ended = call("diff", old, old, defect=True)
    assert (ended.code, ended.out) == (70, "")
    assert "engdiff itself failed (RuntimeError: " in ended.err
    (report,) = tmp_path.glob("engdiff-defect-*.txt")
    assert str(report) in ended.err
    assert "Traceback" in report.read_text(encoding="utf-8")
    assert "abcdefghijklmnop" not in ended.err + report.read_text(encoding="utf-8")
