"""Every error a user can see: one class each, with its exit code and its advice.

A message says what happened and names the file, key or line; the advice says what to do next.
Exit codes (see README): 0 fine, 1 differs, 2 wrong usage or input, 3 inconclusive, 4 the engine
failed, 5 the machine is unfit, 70 a defect of engdiff, 130 interrupted.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

EXIT_FINE = 0
EXIT_DIFFERS = 1
EXIT_USAGE = 2
EXIT_INCONCLUSIVE = 3
EXIT_ENGINE_FAILED = 4
EXIT_UNFIT = 5
EXIT_DEFECT = 70
EXIT_INTERRUPTED = 130


class EngdiffError(Exception):
    """Base of all errors a user can see. ``str(error)`` is the message, ``advice`` the next step."""

    exit_code: ClassVar[int] = EXIT_USAGE

    def __init__(self, message: str, advice: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.advice = advice


class UsageError(EngdiffError):
    """The command line cannot be carried out as it is written."""


class DocumentError(EngdiffError):
    """A file is not a document that this engdiff can read."""


class DocumentMissing(DocumentError):
    """No such file."""

    def __init__(self, path: Path | str) -> None:
        super().__init__(
            f"{path}: no such file", "check the path, or make one with `engdiff capture ENGINE@VERSION -o FILE`"
        )


class DocumentUnreadable(DocumentError):
    """The file is there and cannot be opened."""

    def __init__(self, path: Path | str, why: str) -> None:
        super().__init__(f"{path}: cannot be read: {why}", "check the file's permissions and that it is a file")


class DocumentTruncated(DocumentError):
    """The JSON ends before it is complete."""

    def __init__(self, path: Path | str, line: int) -> None:
        super().__init__(
            f"{path}: the file breaks off at line {line}; it is not complete JSON",
            "copy it again from its source; engdiff itself never leaves a half-written document",
        )


class DocumentNotJson(DocumentError):
    """The file is not JSON at all."""

    def __init__(self, path: Path | str, line: int, column: int) -> None:
        super().__init__(
            f"{path}: not JSON (line {line}, column {column})",
            "a capture is the JSON file that `engdiff capture -o FILE` writes",
        )


class DocumentForeign(DocumentError):
    """JSON, but not a document of engdiff, or not of the kind wanted."""

    def __init__(self, path: Path | str, wanted: str, found: str) -> None:
        super().__init__(
            f"{path}: expected an engdiff {wanted}, found {found}", "give the file that `engdiff capture -o FILE` wrote"
        )


class DocumentTooNew(DocumentError):
    """Written by a newer engdiff."""

    def __init__(self, path: Path | str, found: int, newest: int) -> None:
        super().__init__(
            f"{path}: schema {found} is newer than this engdiff understands (up to {newest})",
            "upgrade engdiff: this one is older than the file",
        )


class DocumentInvalid(DocumentError):
    """A document of the right kind with a value out of place."""

    def __init__(self, path: Path | str, key: str, problem: str) -> None:
        super().__init__(f"{path}: key `{key}`: {problem}", "the file was edited or damaged; capture again")


class OutputRefused(EngdiffError):
    """The result cannot be written where the user wants it."""


class OutputExists(OutputRefused):
    """The output file is there already."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"{path} exists already", "choose another -o, or replace it with --force")


class OutputUnwritable(OutputRefused):
    """No permission, no folder, or no space. ``kept`` is where the result was saved instead."""

    def __init__(self, path: Path, why: str, kept: Path | None = None) -> None:
        advice = (
            f"nothing is lost: it is in {kept}" if kept else "give -o a folder that exists, is yours, and has space"
        )
        super().__init__(f"{path}: cannot be written: {why}", advice)
        self.why = why


class ReferenceInvalid(UsageError):
    """A word that should name a capture names nothing engdiff knows."""


class UnknownEngine(UsageError):
    """No engine of this name."""

    def __init__(self, name: str, known: Sequence[str], nearest: str | None = None) -> None:
        hint = f"did you mean `{nearest}`? " if nearest else ""
        super().__init__(
            f"no engine is called `{name}`, and there is no such file", f"{hint}engines: {', '.join(known)}"
        )


class UnknownVersion(UsageError):
    """The engine has no such release for this machine."""

    def __init__(self, engine: str, version: str, distribution: str, nearest: Sequence[str], note: str = "") -> None:
        offer = f"nearest: {', '.join(f'{engine}@{v}' for v in nearest)}" if nearest else "no release could be listed"
        super().__init__(f"{engine} {version}: the package `{distribution}` has no such release{note}", offer)


class UnknownFlag(UsageError):
    """A word after ``--`` that the engine does not know, found before it was started."""

    def __init__(self, engine: str, argument: str, reason: str, suggestion: str | None = None) -> None:
        hint = f"did you mean `{suggestion}`?" if suggestion else f"words after `--` go to {engine} as they are"
        super().__init__(f"{engine}: `{argument}`: {reason}", hint)


class WontLoadHere(EngdiffError):
    """A release that is known not to load on this machine; refused before the download."""

    exit_code = EXIT_UNFIT

    def __init__(self, engine: str, version: str, because: str, evidence: str, instead: str) -> None:
        super().__init__(f"{engine} {version} is not started here: {because} ({evidence})", instead)


class EnvironmentFailed(EngdiffError):
    """An engine's environment could not be made."""

    exit_code = EXIT_ENGINE_FAILED


class NoNetwork(EnvironmentFailed):
    """The package index cannot be reached."""

    def __init__(self, what: str, detail: str) -> None:
        super().__init__(
            f"{what}: the package index cannot be reached: {detail}",
            "check the network and proxy settings; environments made before still work (`engdiff env list`)",
        )


class DiskFull(EngdiffError):
    """Not enough room for an environment or a document."""

    exit_code = EXIT_UNFIT

    def __init__(self, folder: Path, needed_bytes: int, free_bytes: int) -> None:
        from engdiff.units import format_bytes

        super().__init__(
            f"{folder}: {format_bytes(free_bytes)} free, about {format_bytes(needed_bytes)} needed",
            "make room: `engdiff env list` shows sizes, `engdiff env prune` removes what was not used lately",
        )


class EngineFailed(EngdiffError):
    """The engine died or never became ready. Its last words are in ``last_words``."""

    exit_code = EXIT_ENGINE_FAILED

    def __init__(
        self, message: str, *, cause: str | None, advice: str, last_words: Sequence[str], log: Path | None
    ) -> None:
        super().__init__(message, advice)
        self.cause = cause
        self.last_words = tuple(last_words)
        self.log = log


class MachineUnfit(EngdiffError):
    """This machine cannot do what was asked."""

    exit_code = EXIT_UNFIT


class Interrupted(EngdiffError):
    """Ctrl-C, after everything was stopped and tidied."""

    exit_code = EXIT_INTERRUPTED
