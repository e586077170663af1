"""The exact command that a launch would run, for a person to read and to paste. Nothing is started."""

from __future__ import annotations

import os
import shlex
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from engdiff.environments.container import is_secret
from engdiff.redact import redact_words
from engdiff.references import EngineReference
from engdiff.sources.acquire import Wishes, order
from engdiff.sources.launch import Prepared, prepare
from engdiff.sources.order import Order, Progress


def rehearse(reference: EngineReference, wishes: Wishes, progress: Progress) -> str:
    """One line for a POSIX shell. What it needs beside itself is told through ``progress``.

    The probe that it names is written into a folder, which stays, so that the line works when it is pasted.
    Raises what a launch raises before it starts.
    """
    made = order(reference, replace(wishes, rehearse=True), progress)
    folder = Path(tempfile.mkdtemp(prefix="engdiff-dry-"))
    kept = False
    try:
        prepared = prepare(made, folder)
        kept = bool(prepared.plan.probe_files)
    finally:
        if not kept:
            shutil.rmtree(folder)
    words = _by_name(prepared.command.argv) if made.container else _with_variables(prepared)
    shown = redact_words(words)
    _tell(made, prepared, folder, progress, hidden=shown != tuple(words))
    return shlex.join(shown)


def _by_name(argv: Sequence[str]) -> tuple[str, ...]:
    """With docker or podman as a person types them."""
    return (Path(argv[0]).name, *argv[1:])


def _with_variables(prepared: Prepared) -> tuple[str, ...]:
    """``env`` with what the engine's environment has other than this shell's, but for secrets."""
    wanted, shell = prepared.command.env, os.environ
    gone = (word for name in sorted(shell) if name not in wanted for word in ("-u", name))
    new = {name: value for name, value in sorted(wanted.items()) if shell.get(name) != value}
    changes = (*gone, *(f"{name}={value}" for name, value in new.items() if not is_secret(name, value)))
    return ("env", *changes, *prepared.command.argv) if changes else prepared.command.argv


def _tell(made: Order, prepared: Prepared, folder: Path, progress: Progress, *, hidden: bool) -> None:
    for name in _not_in_this_shell(made.explicit):
        progress(f"note: {name} is a secret, which is not shown: export it before the command is run")
    if hidden:
        progress("note: a secret among the words is shown as [redacted]: write it in again before the command is run")
    if prepared.plan.probe_files:
        read = f"; afterwards: engdiff capture --probe {prepared.plan.probe_output}"
        progress(f"note: {folder} holds the probe that the command uses{read if made.engine.exported_probe else ''}")


def _not_in_this_shell(explicit: Mapping[str, str]) -> list[str]:
    return [n for n, value in explicit.items() if is_secret(n, value) and os.environ.get(n) != value]
