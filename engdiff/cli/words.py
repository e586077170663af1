"""What several verbs share: the words after ``--``, options of a launch, and how a variable is written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from engdiff.errors import UsageError


@dataclass(frozen=True)
class EngineWords:
    """The words after ``--``; ``None`` when there was no ``--``."""

    words: tuple[str, ...] | None

    def refuse(self, verb: str) -> None:
        """For verbs that launch nothing."""
        if self.words:
            raise UsageError(
                f"`{verb}` starts no engine: `-- {' '.join(self.words)}` has no meaning here", "leave it out"
            )


Model = Annotated[str | None, typer.Option("--model", "-m", help="Path or id of the model; `tiny` is bundled.")]
Python = Annotated[Path | None, typer.Option("--python", help="Interpreter of an engine that is installed already.")]
Build = Annotated[
    str | None, typer.Option("--build", help="Which build: cpu or cuda. Chosen by looking at the machine otherwise.")
]
Container = Annotated[
    str | None,
    typer.Option(
        "--container",
        metavar="IMAGE",
        help="Launch in this image (docker or podman); `default`: the --like file's, else the engine's own.",
    ),
]
Variables = Annotated[
    list[str] | None, typer.Option("--env", "-e", help="NAME=VALUE for the engine's environment; repeat it.")
]
Limit = Annotated[float | None, typer.Option("--start-limit", min=1, help="Seconds until the engine must answer.")]
Force = Annotated[bool, typer.Option("--force", "-f", help="Replace the output file.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress on stderr.")]


def variables(pairs: Sequence[str] | None) -> dict[str, str]:
    """``NAME=VALUE`` words as a mapping. Raises :class:`~engdiff.errors.UsageError` that names the word."""
    out = {}
    for pair in pairs or ():
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise UsageError(f"--env {pair}: not NAME=VALUE", "write for example --env VLLM_CPU_KVCACHE_SPACE=1")
        out[name] = value
    return out
