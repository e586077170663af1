"""Two or more references become captures; what is launched on the way takes its command from another by default."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from engdiff.errors import UsageError
from engdiff.references import EngineReference, FileReference, Reference, StdinReference, parse
from engdiff.schema.capture import Capture
from engdiff.sources.acquire import Wishes, acquire
from engdiff.sources.container import OWN
from engdiff.sources.given import read
from engdiff.sources.order import Progress


@dataclass(frozen=True)
class SideCapture:
    """A capture, how the user called it, and whether it was launched for this."""

    capture: Capture
    label: str
    launched: bool


def acquire_sides(texts: Sequence[str], wishes: Wishes, progress: Progress) -> tuple[SideCapture, ...]:
    """Read what is given first, so that a bad one is told before anything is launched; then launch, in order."""
    references = [parse(text) for text in texts]
    _check(references, wishes)
    given = {i: read(r) for i, r in enumerate(references) if isinstance(r, FileReference | StdinReference)}
    wishes = replace(wishes, like=next(filter(_has_command, given.values()), None))
    found = []
    for index, (text, reference) in enumerate(zip(texts, references, strict=True)):
        if index in given:
            capture = given[index]
        else:
            outcome = acquire(reference, wishes, progress)
            if outcome.error:
                progress(f"warning: {outcome.error.message}")
            capture = outcome.capture
        found.append(SideCapture(capture, text, isinstance(reference, EngineReference)))
    return tuple(found)


def _check(references: Sequence[Reference], wishes: Wishes) -> None:
    launched = sum(isinstance(r, EngineReference) for r in references)
    if sum(isinstance(r, StdinReference) for r in references) > 1:
        raise UsageError("`-` can be given once: there is one standard input", "write one of the two to a file")
    if wishes.arguments and not launched:
        raise UsageError("words after -- go to an engine, and nothing is launched here", "leave them out")
    if wishes.container and (not launched or (launched > 1 and wishes.container != OWN)):
        raise UsageError(
            "--container IMAGE is the image of one engine",
            f"give one capture file and one engine, or --container {OWN}: each engine's own image",
        )
    if wishes.python and launched != 1:
        raise UsageError("--python names the interpreter of one engine", "give one capture file and one engine")


def _has_command(capture: Capture) -> bool:
    """Whether its command is known, so that another engine can be started with it."""
    return capture.launch.unknown_because is None
