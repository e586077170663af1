"""Shells and wrappers are taken off; what only a running shell knows is named."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engdiff.deployments.command import Command, commands
from engdiff.deployments.container import Container
from engdiff.deployments.interpolate import Interpolation

VARIABLES = {"MODEL": "org/m", "ARGS": "--a 1  --b 2", "EMPTY": "", "PORT": "80"}


def run(*words: str, unknown: dict[str, str] | None = None) -> tuple[Command, ...]:
    return commands(Container("c", "i", words, (), VARIABLES, unknown or {}, "services.c", Path("d.yaml")))


def script(text: str) -> list[tuple[str, ...]]:
    return [c.words for c in run("sh", "-c", text)]


SERVE = ("vllm", "serve", "org/m")

WORDS: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    (("vllm", "serve", "org/m"), SERVE),
    (("sh", "-c", "vllm serve org/m"), SERVE),
    (("/bin/bash", "-lc", "exec vllm serve org/m"), SERVE),
    (("bash", "-euo", "pipefail", "-c", "vllm serve org/m"), SERVE),
    (("bash", "--login", "-c", "vllm serve org/m"), SERVE),
    (("sh", "-c", "bash -c 'exec vllm serve org/m'"), SERVE),
    (("sh", "-c", 'exec vllm serve "$@"', "--", "org/m"), SERVE),
    (("sh", "-c", 'exec "$@"', "sh", "vllm", "serve", "org/m"), SERVE),
    (("sh", "-c", "vllm $0 $1", "serve", "org/m"), SERVE),
    (("nohup", "vllm", "serve", "org/m"), SERVE),
    (("env", "-u", "X", "A=1", "vllm", "serve", "org/m"), SERVE),
    (("numactl", "--cpunodebind=0", "-m", "0", "vllm", "serve", "org/m"), SERVE),
    (("numactl", "-N0", "-l", "vllm", "serve", "org/m"), SERVE),
    (("taskset", "-c", "0-7", "vllm", "serve", "org/m"), SERVE),
    (("tini", "-g", "--", "vllm", "serve", "org/m"), SERVE),
    (("dumb-init", "vllm", "serve", "org/m"), SERVE),
    (("uv", "run", "--with", "x", "--no-sync", "vllm", "serve", "org/m"), SERVE),
    (("uv", "run", "--", "vllm", "serve", "org/m"), SERVE),
    (("timeout", "-k", "5", "1h", "vllm", "serve", "org/m"), SERVE),
    (("nice", "-n", "5", "vllm", "serve", "org/m"), SERVE),
    (("python3", "-u", "-m", "x.y", "--a"), ("python3", "-m", "x.y", "--a")),
    (("python", "-X", "dev", "-um", "x"), ("python", "-m", "x")),
    (("uv", "run", "-m", "x.y", "--a"), ("python", "-m", "x.y", "--a")),
    (("mpirun", "-n", "8", "--mca", "a", "b", "trtllm-serve", "m"), ("trtllm-serve", "m")),
)


@pytest.mark.parametrize(("given_words", "words"), WORDS, ids=lambda w: " ".join(w))
def test_wrappers(given_words: tuple[str, ...], words: tuple[str, ...]) -> None:
    (command,) = run(*given_words)
    assert (command.words, command.unknown) == (words, ())


SCRIPTS: tuple[tuple[str, list[tuple[str, ...]]], ...] = (
    ("a 1 && b 2; c 3 || d\ne &", [("a", "1"), ("b", "2"), ("c", "3"), ("d",), ("e",)]),
    ("a \\\n  --x \\\n  'y z'", [("a", "--x", "y z")]),
    ("a \"$MODEL\" ${MODEL} '$MODEL' \\$MODEL", [("a", "org/m", "org/m", "$MODEL", "$MODEL")]),
    ("a $ARGS \"$ARGS\"", [("a", "--a", "1", "--b", "2", "--a 1  --b 2")]),
    ("a x$EMPTY $EMPTY \"$EMPTY\"", [("a", "x", "")]),
    ("a ${NO:-d e} \"${NO:-d e}\" ${EMPTY:-x} ${EMPTY-y}", [("a", "d", "e", "d e", "x")]),
    ("a ${NO:-${MODEL}} ${MODEL:+--m $MODEL} ${NO:+x}", [("a", "org/m", "--m", "org/m")]),
    ("X=1; Y=$X.0; a $Y", [("a", "1.0")]),
    ("A=x; A+=y; a $A", [("a", "xy")]),
    ("a > /dev/null 2>&1 < x", [("a",)]),
    ("a 2>&1 | tee -a log", [("a",), ("tee", "-a", "log")]),
    ("# no\na # no\nb#yes", [("a",), ("b#yes",)]),
    ("a '{\"x\": {\"y\": 1}}'", [("a", '{"x": {"y": 1}}')]),
    ("a --o={\"x\":1}", [("a", "--o={x:1}")]),
    ("exec a; b", [("a",)]),
    ("exec > log; a", [("a",)]),
    ("exit 0; a", [("exit", "0")]),
    ("! a", [("a",)]),
    ("f() { x; }\na", [("a",)]),
    ("[[ -n $X && -f y ]] && a", [("a",)]),
)  # fmt: skip


@pytest.mark.parametrize(("text", "words"), SCRIPTS, ids=lambda p: p if isinstance(p, str) else "")
def test_scripts(text: str, words: list[tuple[str, ...]]) -> None:
    assert script(text) == words


UNKNOWN: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("a $(nproc) b", ("a", "$(nproc)", "b"), "`$(nproc)`: what a command prints"),
    ("a `nproc`", ("a", "`nproc`"), "`nproc`"),
    ("a $((1 + 2))", ("a", "$((1 + 2))"), "arithmetic"),
    ("a ${X%.gguf}", ("a", "${X%.gguf}"), "transformed"),
    ("a $NOPE", ("a", "$NOPE"), "`$NOPE`: not set in this file"),
    ("a $SECRET", ("a", "$SECRET"), "`$SECRET`: from secret s"),
    ("X=$(nproc); a $X", ("a", "$X"), "set to what is not known"),
    ("test -f x && X=1; a $X", ("a", "$X"), "set only under a condition"),
    ("for X in 1 2; do echo $X; done; a $X", ("a", "$X"), "set in a `for` loop"),
    ("if b; then MODEL=x; fi; a $MODEL", ("a", "$MODEL"), "set in an `if`"),
    ("A=(1 2); a $A", ("a", "$A"), "an array"),
    ("read X; a $X", ("a", "$X"), "read from input"),
    ("a $$", ("a", "$$"), "running shell"),
    ("a <<EOF\nif x; 'never closed\nEOF\n", ("a",), "here-document"),
    ("a ${MAYBE:-x}", ("a", "x"), "which env_file .env may change"),
)


@pytest.mark.parametrize(("text", "words", "why"), UNKNOWN, ids=lambda p: p if isinstance(p, str) else "")
def test_unknown_is_kept_and_named(text: str, words: tuple[str, ...], why: str) -> None:
    command = run("sh", "-c", text, unknown={"SECRET": "from secret s", "env_file .env": "not read"})[-1]
    assert command.words == words
    assert any(why in reason for reason in command.unknown)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("for x in 1 2; do vllm serve A; done", "a `for` loop is not followed"),
        ("case $x in a) vllm serve A;; *) b;; esac", "a `case` is not followed"),
        ("(vllm serve A)", "a subshell"),
        ("if a; then if b; then c; fi; else d; fi", "an `if`"),
        ("vllm serve 'A", "a quote (') is not closed"),
        ("A=x; " + "A=$A$A$A$A;" * 30, "longer than Linux takes"),
        ("a " + "${A:-" * 100, "nested too deep"),
    ],
)
def test_what_is_not_followed_has_no_words(text: str, why: str) -> None:
    command = run("sh", "-c", text)[-1]
    assert command.words == ()
    assert why in command.unknown[-1]


def test_what_follows_a_loop_is_read() -> None:
    text = "until curl x; do sleep 1; done\nwhile true; do if a; then b; fi; done & vllm serve A"
    assert script(text) == [(), (), ("vllm", "serve", "A")]


def test_a_script_file_is_not_read() -> None:
    (command,) = run("bash", "/app/start.sh", "--x")
    assert command.words == ("bash", "/app/start.sh", "--x")
    assert command.unknown == ("`/app/start.sh` is a script in the image, which is not read",)


def test_variables_set_in_front_and_exported() -> None:
    first, second = run("sh", "-c", "export A=1 PORT; B=2 first; C=3; env D=4 -u x E=$(x) second")
    assert first.variables == {**VARIABLES, "A": "1", "B": "2"}
    assert second.variables["D"] == "4"
    assert "B" not in second.variables
    assert "C" not in second.variables
    (third,) = run("sh", "-c", "export A=$(x); third")
    assert "what a command prints" in third.unknown_variables["A"]
    (clean,) = run("env", "-i", "A=1", "x")
    assert clean.variables == {"A": "1"}


def test_words_of_the_image_are_appended() -> None:
    container = Container("c", "i", None, ("--model", "m"), {}, {}, "services.c", Path("d.yaml"))
    assert commands(container)[0].appended
    assert not run("--model", "m")[0].appended


@given(st.text(alphabet="ab$(){}'\"`\\;&|<>\n #=!-*[]AXif", max_size=60))
def test_property_any_script(text: str) -> None:
    for command in run("sh", "-c", text):
        assert command.words or command.unknown


INTERPOLATED: tuple[tuple[str, str, int], ...] = (
    ("$A ${A} $$A $${A}", "1 1 $A ${A}", 0),
    ("${A:-x} ${N:-x} ${E:-x} ${E-x} ${N-}", "1 x x  ", 0),
    ("${N:-${A}-${N:-y}}", "1-y", 0),
    ("${A:?no} ${N:?no}", "1 ${N:?no}", 1),
    ("${A:+x} ${N:+x} ${E+x}", "x  x", 0),
    ("$N ${N}", "$N ${N}", 2),
    ("${ $ 5$ ${A", "${ $ 5$ ${A", 2),
    ("${A/x/y}", "${A/x/y}", 1),
)


@pytest.mark.parametrize(("text", "filled", "missing"), INTERPOLATED)
def test_interpolation(text: str, filled: str, missing: int) -> None:
    interpolation = Interpolation({"A": "1", "E": ""})
    assert interpolation.fill(text) == filled
    assert len(interpolation.missing) == missing
