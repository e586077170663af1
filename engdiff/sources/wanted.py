"""Where a capture is to come from, as the user said it: an engine to launch, logs, a server, a probe, a deployment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from engdiff.errors import UsageError
from engdiff.references import EngineReference, parse
from engdiff.schema.capture import Capture
from engdiff.schema.files import load_capture
from engdiff.sources.acquire import Wishes, acquire
from engdiff.sources.attach import attach
from engdiff.sources.complete import complete
from engdiff.sources.deployment import YAML_ENDINGS, served
from engdiff.sources.log import LogWishes, read_log
from engdiff.sources.order import Outcome, Progress
from engdiff.sources.probe import read_probe
from engdiff.sources.rehearse import rehearse

STDIN = Path("-")


@dataclass(frozen=True)
class Wanted:
    """The words of one ``capture``."""

    engine: str | None = None
    gpu: str | None = None
    logs: tuple[Path, ...] = ()
    log_wishes: LogWishes = field(default_factory=LogWishes)
    url: str | None = None
    probe: Path | None = None
    like: Path | None = None
    service: str | None = None
    wishes: Wishes = field(default_factory=Wishes)


def acquire_wanted(wanted: Wanted, progress: Progress) -> Outcome:
    """The capture. Raises :class:`~engdiff.errors.UsageError` for words that do not go together."""
    if _is_read(wanted):
        return Outcome(_read(wanted, progress), None)
    return acquire(*_launched(wanted, progress), progress)


def rehearse_wanted(wanted: Wanted, progress: Progress) -> str:
    """The command that would be run; see :func:`~engdiff.sources.rehearse.rehearse`. Raises UsageError as above."""
    reference, wishes = (None, wanted.wishes) if _is_read(wanted) else _launched(wanted, progress)
    if reference is None or reference.gpu:
        raise UsageError("--dry-run shows how an engine would be started, and nothing is launched here", "leave it out")
    return rehearse(reference, wishes, progress)


def _is_read(wanted: Wanted) -> bool:
    return bool(wanted.logs or wanted.url or wanted.probe)


def _launched(wanted: Wanted, progress: Progress) -> tuple[EngineReference, Wishes]:
    """What to launch, with the words of what is copied."""
    reference = _engine(wanted.engine)
    wishes = wanted.wishes
    if wanted.like and wanted.like.suffix in YAML_ENDINGS:
        reference, wishes = served(wanted.like, wanted.service, reference, wishes, progress)
    elif wanted.like:
        wishes = replace(wishes, like=load_capture(wanted.like))
        reference = reference or _engine_of(wishes.like)
    if reference is None:
        raise UsageError(
            "nothing to capture was named",
            "name an engine (engdiff capture vllm@0.32.0 --model tiny), a log (--log FILE), a server (--attach URL) "
            "or a deployment (--like deployment.yaml)",
        )
    return _on(reference, wanted.gpu), wishes


def _on(reference: EngineReference, gpu: str | None) -> EngineReference:
    """The engine on the GPU of ``--simulate``."""
    if gpu and reference.gpu and gpu != reference.gpu:
        raise UsageError(f"two GPUs: `/{reference.gpu}` and `--simulate {gpu}`", "leave one out")
    return replace(reference, gpu=gpu or reference.gpu)


def _engine_of(capture: Capture | None) -> EngineReference | None:
    return EngineReference(capture.identity.engine, None) if capture else None


def _engine(text: str | None) -> EngineReference | None:
    if text is None:
        return None
    reference = parse(text)
    if not isinstance(reference, EngineReference):
        raise UsageError(
            f"`{text}` is not an engine",
            f"to read a log: engdiff capture --log {text}; to read a capture: engdiff show {text}",
        )
    return reference


def _read(wanted: Wanted, progress: Progress) -> Capture:
    """What is read instead of launched; the truer source first, completed by the others."""
    named = _engine(wanted.engine)
    if wanted.gpu:
        raise UsageError("--simulate asks an engine's code, and something is read here", "leave one of the two out")
    if wanted.wishes.arguments:
        raise UsageError("words after -- go to an engine, and nothing is launched here", "leave them out")
    if wanted.wishes.container:
        raise UsageError("--container starts an engine, and nothing is launched here", "leave it out")
    if named and named.version:
        raise UsageError(
            f"`{wanted.engine}`: the version is what engdiff reads", f"say {named.engine}, or nothing at all"
        )
    engine = named.engine if named else None
    found: list[Capture] = []
    if wanted.probe:
        found.append(read_probe(wanted.probe, engine))
    if wanted.url:
        found.append(attach(wanted.url, replace(wanted.wishes.attach, engine=engine), progress))
    if wanted.logs:
        paths = _paths(wanted.logs)
        found.append(read_log(paths, replace(wanted.log_wishes, engine=engine)))
    return _joined(found)


def _paths(logs: Sequence[Path]) -> tuple[Path | None, ...]:
    if sum(log == STDIN for log in logs) > 1:
        raise UsageError("`--log -` can be given once: there is one standard input", "write one of them to a file")
    return tuple(None if log == STDIN else log for log in logs)


def _joined(found: Sequence[Capture]) -> Capture:
    first, *others = found
    for other in others:
        if other.identity.engine != first.identity.engine:
            raise UsageError(
                f"these are two engines: {first.identity.engine} and {other.identity.engine}",
                "give what belongs to one server",
            )
        first = complete(first, other)
    return first
