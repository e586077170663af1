"""Programs that start another program: ``exec``, ``env``, ``numactl``, ``tini``, ``uv run`` and their like."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from engdiff.deployments.options import base

_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_PYTHON = re.compile(r"^(?:python|pypy)\d*(?:\.\d+)*$")
_PYTHON_VALUED = ("-X", "-W", "--check-hash-based-pycs")
_SHELLS = ("sh", "bash", "dash", "ash", "zsh", "ksh")


@dataclass(frozen=True)
class _Wrapper:
    """How to find the program that a wrapper starts.

    ``valued`` options take a word each, ``pairs`` two; ``operands`` words stand before the program; all of
    ``after`` must come first (``uv run``).
    """

    valued: frozenset[str] = frozenset()
    pairs: frozenset[str] = frozenset()
    operands: int = 0
    after: str = ""


def _w(valued: str = "", *, pairs: str = "", operands: int = 0, after: str = "") -> _Wrapper:
    return _Wrapper(frozenset(valued.split()), frozenset(pairs.split()), operands, after)


_UV_RUN = (
    "--with --with-editable --with-requirements --python -p --extra --group --only-group --no-group --no-extra "
    "--project --directory --env-file --index-url -i --index --default-index --extra-index-url --find-links -f "
    "--package --cache-dir --config-file --refresh-package --upgrade-package -P --link-mode --color"
)
_MPI_VALUED = "-n -np --n --np -c -H -host --host --hostfile -hostfile -x --map-by --bind-to --rank-by -N --npernode"

_WRAPPERS = {
    "exec": _w("-a"),
    "command": _w(),
    "builtin": _w(),
    "nohup": _w(),
    "time": _w("-f -o"),
    "nice": _w("-n --adjustment"),
    "ionice": _w("-c -n --class --classdata"),
    "setsid": _w(),
    "stdbuf": _w("-i -o -e"),
    "numactl": _w("-i -N -m -C -p --membind --cpunodebind --physcpubind --interleave --preferred"),
    "taskset": _w(operands=1),
    "chrt": _w(operands=1),
    "tini": _w("-p -e"),
    "tini-static": _w("-p -e"),
    "dumb-init": _w("-r --rewrite"),
    "catatonit": _w(),
    "timeout": _w("-k -s --kill-after --signal", operands=1),
    "gosu": _w(operands=1),
    "su-exec": _w(operands=1),
    "sudo": _w("-u -g --user --group"),
    "env": _w("-u --unset -C --chdir"),
    "uv": _w(_UV_RUN, after="run"),
    "poetry": _w(after="run"),
    "pdm": _w(after="run"),
    "pixi": _w("-e --environment --manifest-path", after="run"),
    "conda": _w("-n --name -p --prefix", after="run"),
    "micromamba": _w("-n --name -p --prefix", after="run"),
    "mpirun": _w(_MPI_VALUED, pairs="--mca -mca --gmca"),
    "mpiexec": _w(_MPI_VALUED, pairs="--mca -mca --gmca"),
    "trtllm-llmapi-launch": _w(),
    "nvidia_entrypoint.sh": _w(),
}


@dataclass
class Peeled:
    """The program under its wrappers, and what they set or hide."""

    words: tuple[str, ...]
    variables: dict[str, str] = field(default_factory=dict)
    removed: set[str] = field(default_factory=set)
    is_clean: bool = False
    unknown: list[str] = field(default_factory=list)


def peel(words: Sequence[str]) -> Peeled:
    """The words without wrappers, and Python without options that do not matter here."""
    peeled = Peeled(tuple(words))
    while peeled.words and (wrapper := _WRAPPERS.get(base(peeled.words[0]))):
        inner = _inner(peeled, wrapper)
        if not inner:
            break
        peeled.words = inner
    peeled.words = _python(peeled.words)
    return peeled


def _inner(peeled: Peeled, wrapper: _Wrapper) -> tuple[str, ...]:
    """The words of the program that a wrapper starts; empty where it starts none, or none that is known."""
    name, rest = base(peeled.words[0]), list(peeled.words[1:])
    if wrapper.after:
        if wrapper.after not in rest:
            return ()
        rest = rest[rest.index(wrapper.after) + 1 :]
    operands = wrapper.operands
    while rest:
        word = rest[0]
        if word == "--":
            rest.pop(0)
            if not operands:
                break
        elif name == "env" and _sets(word, peeled):
            rest.pop(0)
        elif word.startswith("-") and len(word) > 1:
            if name == "uv" and word in ("-m", "--module"):
                return ("python", "-m", *rest[1:])
            if not _option(name, rest, wrapper, peeled):
                return ()
        elif operands:
            operands -= 1
            rest.pop(0)
        else:
            break
    while name == "env" and rest and _sets(rest[0], peeled):
        rest.pop(0)
    return tuple(rest)


def _option(name: str, rest: list[str], wrapper: _Wrapper, peeled: Peeled) -> bool:
    """Take an option with its values; false where what follows cannot be known."""
    word = rest.pop(0)
    if name == "env":
        if word in ("-S", "--split-string") or word.startswith(("-S", "--split-string=")):
            peeled.unknown.append("`env -S` is not followed")
            return False
        if word in ("-i", "-", "--ignore-environment"):
            peeled.is_clean = True
        if word in ("-u", "--unset") and rest:
            peeled.removed.add(rest[0])
        if word.startswith("--unset="):
            peeled.removed.add(word.partition("=")[2])
    if name == "taskset" and word in ("-c", "--cpu-list"):
        return True  # the list is the operand
    takes = 1 if word in wrapper.valued else 2 if word in wrapper.pairs else 0
    del rest[:takes]
    return True


def _sets(word: str, peeled: Peeled) -> bool:
    if not _ASSIGNMENT.match(word):
        return False
    name, _, value = word.partition("=")
    peeled.variables[name] = value
    return True


def _python(words: tuple[str, ...]) -> tuple[str, ...]:
    """``python -u -m module`` as ``python -m module``."""
    if not words or not _PYTHON.match(base(words[0])):
        return words
    at = 1
    while at < len(words) and words[at].startswith("-"):
        word = words[at]
        if word in _PYTHON_VALUED:
            at += 2
        elif word == "-m" or word == "-c":
            break
        elif re.fullmatch(r"-[bBdEhiIOPqsSuvVx]+m", word):  # -um
            return (words[0], "-m", *words[at + 1 :])
        else:
            at += 1
    return (words[0], *words[at:])


@dataclass(frozen=True)
class ShellCall:
    """``sh -c SCRIPT NAME ARGUMENT…``; ``script`` is ``None`` for a script that is a file in the image."""

    script: str | None
    positional: tuple[str, ...]
    file: str = ""


def shell_call(words: Sequence[str]) -> ShellCall | None:
    """The script that a shell is given; ``None`` where no shell is started."""
    if not words or base(words[0]) not in _SHELLS:
        return None
    rest = list(words[1:])
    has_script = False
    while rest and rest[0][:1] in ("-", "+") and len(rest[0]) > 1:
        option = rest.pop(0)
        if option in ("--", "-"):
            break
        if option.startswith("--"):
            if option in ("--rcfile", "--init-file"):
                del rest[:1]
            continue
        has_script = has_script or "c" in option
        del rest[: option.count("o") + option.count("O")]
    if not rest:
        return None
    if has_script:
        return ShellCall(rest[0], tuple(rest[1:]) or (words[0],))
    return ShellCall(None, (), rest[0])
