"""A container image, before an engine is started in it: it is pulled where it is missing, and asked what it holds."""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any

from engdiff.environments.container import Tool
from engdiff.environments.container_failures import last_lines, trouble
from engdiff.environments.given import QUESTION, answer, environment_in, no_package
from engdiff.environments.recipe import Environment
from engdiff.errors import ImageFailed

Progress = Callable[[str], None]

_ASK_LIMIT_S = 300.0  # the first container of an image on a slow disk takes a minute


@dataclass(frozen=True)
class Inspected:
    """What docker or podman knows of an image: its id (``sha256:…``) and the variables that it sets."""

    identity: str
    variables: Mapping[str, str] = field(default_factory=dict)


def inspect(tool: Tool, image: str) -> Inspected | None:
    """What is known of an image that is here; ``None`` when it is not, or nothing can be learnt."""
    code, said = ask_tool([tool.program, "image", "inspect", image])
    facts: Any = None
    with suppress(ValueError):
        facts = json.loads(said) if code == 0 else None
    if not isinstance(facts, list) or not facts or not isinstance(facts[0], dict):
        return None
    config = facts[0].get("Config")
    pairs = (config.get("Env") or ()) if isinstance(config, dict) else ()
    variables = {name: value for name, _, value in (str(pair).partition("=") for pair in pairs)}
    return Inspected(str(facts[0].get("Id", "")), variables)


def provide(tool: Tool, image: str, progress: Progress) -> Inspected:
    """The image, pulled when it is not here. Raises ImageFailed with what docker or podman says."""
    found = inspect(tool, image)
    if found is not None:
        return found
    code, said = ask_tool(
        [tool.program, "pull", image], limit_s=None, tick=lambda s: progress(f"pulling {image}, {s} s")
    )
    if code != 0:
        raise failed(tool, image, said)
    return inspect(tool, image) or Inspected("")


def ask(tool: Tool, image: str, interpreter: Path, distributions: Sequence[str]) -> Environment:
    """The engine and everything else that is installed for an image's Python. Raises ImageFailed."""
    words = [tool.program, "run", "--rm", "--init", "--network", "none", "--entrypoint", str(interpreter), image]
    code, said = ask_tool([*words, "-c", QUESTION], limit_s=_ASK_LIMIT_S)
    facts = answer(said) if code == 0 else None
    if facts is None:
        raise failed(tool, image, said)
    found = environment_in(facts, interpreter, distributions)
    if found is None:
        raise ImageFailed(
            image, f"the engine is not in it: {no_package(distributions)}", "name an image of it: --container IMAGE"
        )
    return replace(found, folder=Path(), python=interpreter)


def failed(tool: Tool, image: str, said: str) -> ImageFailed:
    """The error that fits what docker or podman said."""
    known = trouble(said, tool.kind)
    if known:
        return ImageFailed(image, known.problem, known.advice, last_lines(said))
    return ImageFailed(image, f"{tool.kind} failed", f"the last lines are {tool.kind}'s own", last_lines(said))


def ask_tool(
    words: Sequence[str], limit_s: float | None = 60.0, tick: Callable[[int], None] | None = None
) -> tuple[int, str]:
    """Exit code and output, of a failure the error output too; the process is gone when this returns or raises.

    ``tick`` is called every second with the seconds so far.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        try:
            process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=out, stderr=err)
        except OSError as error:
            return 1, str(error)
        try:
            code = _wait(process, limit_s, tick)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
        if code is None:
            return 1, f"no answer within {limit_s:.0f} s"
        return code, "\n".join(_read(stream) for stream in ((out, err) if code else (out,)))


def _wait(process: subprocess.Popen[bytes], limit_s: float | None, tick: Callable[[int], None] | None) -> int | None:
    """The exit code; ``None`` when the time is over."""
    began = time.monotonic()
    while limit_s is None or time.monotonic() - began < limit_s:
        with suppress(subprocess.TimeoutExpired):
            return process.wait(1.0)
        if tick:
            tick(round(time.monotonic() - began))
    return None


def _read(stream: IO[bytes]) -> str:
    stream.seek(0)
    return stream.read().decode("utf-8", "replace")
