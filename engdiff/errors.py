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


class DeploymentError(EngdiffError):
    """No server's command can be taken from a docker compose or Kubernetes file."""


class DeploymentUnreadable(DeploymentError):
    """The file is not such a file, or not one that is read safely. ``line`` is where, if it is at one place."""

    def __init__(self, path: Path | str, problem: str, advice: str, line: int | None = None) -> None:
        place = f"{path}: line {line}" if line else f"{path}"
        super().__init__(f"{place}: {problem}", advice)


class DeploymentIsTemplate(DeploymentUnreadable):
    """A Helm chart's template, whose values are elsewhere."""

    def __init__(self, path: Path | str, line: int) -> None:
        super().__init__(
            path,
            "a template (`{{ … }}`) that is not rendered",
            "render it first: `helm template CHART -f values.yaml > rendered.yaml`, and give that file",
            line,
        )


class NoServerThere(DeploymentError):
    """No container of the file starts an engine that engdiff knows."""

    def __init__(self, path: Path | str, looked_at: Sequence[str]) -> None:
        super().__init__(
            f"{path}: no container starts a server that engdiff knows; looked at {'; '.join(looked_at) or 'none'}",
            "give the model and the words yourself: --model MODEL -- WORDS",
        )


class SeveralServers(DeploymentError):
    """More than one server could be meant."""

    def __init__(self, path: Path | str, names: Sequence[str]) -> None:
        super().__init__(
            f"{path}: {len(names)} servers: {', '.join(names)}", f"--service NAME picks one: --service {names[0]}"
        )


class NoSuchService(DeploymentError):
    """``--service`` names no container of the file."""

    def __init__(self, path: Path | str, name: str, there: Sequence[str]) -> None:
        super().__init__(f"{path}: no container is called `{name}`", f"there are: {', '.join(there)}")


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


class ImageFailed(EnvironmentFailed):
    """A container image cannot be had, or is not what it should be."""

    def __init__(self, image: str, problem: str, advice: str, output: Sequence[str] = ()) -> None:
        last = "".join(f"\n  {line}" for line in output)
        super().__init__(f"{image}: {problem}{':' if last else ''}{last}", advice)


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


class NoContainerTool(MachineUnfit):
    """Neither docker nor podman."""

    def __init__(self) -> None:
        super().__init__(
            "neither docker nor podman is on the PATH, and --container needs one of them",
            "install one, or leave --container out: engdiff then makes an environment of its own; "
            "with --dry-run the command is shown all the same",
        )


class Interrupted(EngdiffError):
    """Ctrl-C, after everything was stopped and tidied."""

    exit_code = EXIT_INTERRUPTED


class LogForeign(DocumentError):
    """A text in which no engine speaks."""

    def __init__(self, name: str, lines: int, known: Sequence[str]) -> None:
        super().__init__(
            f"{name}: none of its {lines:,} lines is one that {', '.join(known)} writes at start-up",
            "give the log from its beginning; of a fork, name the engine: engdiff capture ENGINE --log FILE",
        )


class ServerForeign(EngdiffError):
    """A server that answers, and not as an engine does."""

    def __init__(self, url: str, answered: Sequence[str], known: Sequence[str]) -> None:
        said = f"it answered {', '.join(answered)}" if answered else "none of the paths that tell was answered"
        super().__init__(
            f"{url}: this is none of {', '.join(known)}, as far as its answers tell ({said})",
            "name the engine if a proxy hides it: engdiff capture ENGINE --attach URL",
        )


class FetchFailed(EngdiffError):
    """A running server cannot be read."""


class FetchUrlInvalid(FetchFailed):
    """Not http or https, no host, or a port that is none."""

    def __init__(self, url: str) -> None:
        super().__init__(f"{url}: not a URL of a server", "write it like http://127.0.0.1:8000 or https://[::1]:8443")


class FetchTokenInvalid(FetchFailed):
    """A token with a space or a line end in it, which would not be sent as what it is."""

    def __init__(self, url: str) -> None:
        super().__init__(
            f"{url}: the token holds a space, a line end or a letter that is not ASCII; it was not sent",
            "look at the variable that --token-env names",
        )


class FetchCaFileUnusable(FetchFailed):
    """No certificates can be read from the file that should hold them."""

    def __init__(self, path: Path | None, why: str) -> None:
        super().__init__(f"--ca-file {path}: {why}", "give the file with the certificate to trust, in PEM form")


class FetchNoSuchHost(FetchFailed):
    """The name of the host is not found."""

    def __init__(self, url: str, why: str) -> None:
        super().__init__(f"{url}: no such host: {why}", "check the name, and where it is known: a cluster has its own")


class FetchUnreachable(FetchFailed):
    """No connection: refused, or no way there."""

    def __init__(self, url: str, why: str) -> None:
        super().__init__(f"{url}: {why}", "check host and port: is the server up? is its port open to this machine?")


class FetchUntrusted(FetchFailed):
    """The server's certificate is signed by nobody known, out of date, or of another host."""

    def __init__(self, url: str, why: str) -> None:
        super().__init__(
            f"{url}: its certificate is not trusted: {why}",
            "--ca-file FILE names the certificate to trust; the URL must have a name that is in it",
        )


class FetchNoTls(FetchFailed):
    """An https URL of something that does not speak TLS, or no version of it in common."""

    def __init__(self, url: str, why: str) -> None:
        super().__init__(f"{url}: no TLS there: {why}", "is it http:// instead?")


class FetchTooSlow(FetchFailed):
    """The time is over. ``phase`` is what the request was busy with."""

    def __init__(self, url: str, seconds: float, phase: str) -> None:
        super().__init__(
            f"{url}: no whole answer in {seconds:g} s, given up while {phase}", "give it longer: --time-limit SECONDS"
        )


class FetchTooBig(FetchFailed):
    """More than any engine answers."""

    def __init__(self, url: str, limit_bytes: int) -> None:
        from engdiff.units import format_bytes

        super().__init__(
            f"{url}: the answer is longer than {format_bytes(limit_bytes)}; no engine's is",
            "check that this is the server",
        )


class FetchNotHttp(FetchFailed):
    """Something answers, and not in HTTP/1."""

    def __init__(self, url: str, why: str) -> None:
        super().__init__(
            f"{url}: does not answer as an HTTP server does: {why}",
            "check the port; is it https:// or http:// instead?",
        )


class FetchBreaksOff(FetchFailed):
    """The connection ended before the answer did."""

    def __init__(self, url: str) -> None:
        super().__init__(f"{url}: the answer breaks off", "try again; look into the server's log if it happens again")


class FetchEncoded(FetchFailed):
    """A compressed answer, which may be of any size and was not asked for."""

    def __init__(self, url: str, coding: str) -> None:
        super().__init__(
            f"{url}: answers in {coding}, which was not asked for",
            "read the server directly: a proxy in between compresses",
        )


class FetchRedirected(FetchFailed):
    """It sends the reader elsewhere, which engdiff does not follow: a token would go there as well."""

    def __init__(self, url: str, target: str) -> None:
        super().__init__(
            f"{url}: redirects to {target}; engdiff follows no redirect, and has sent nothing there",
            "give the server's own address",
        )


class FetchForbidden(FetchFailed):
    """It wants a token, or another one."""

    def __init__(self, url: str, status: int) -> None:
        super().__init__(
            f"{url}: not allowed (status {status})", "name the variable that holds its key: --token-env VLLM_API_KEY"
        )
