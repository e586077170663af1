"""Two references become two captures; what is launched on the way takes its command from the other by default."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from engdiff.errors import UsageError
from engdiff.references import EngineReference, StdinReference, parse
from engdiff.schema.capture import Capture
from engdiff.sources.acquire import Wishes, acquire, read
from engdiff.sources.order import Progress


@dataclass(frozen=True)
class Wanted:
    """Two references as written, and what launches need."""

    old: str
    new: str
    model: str | None = None
    arguments: tuple[str, ...] | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    python: Path | None = None
    build: str | None = None
    start_limit_seconds: float | None = None


@dataclass(frozen=True)
class Pair:
    """Two captures and how the user called them."""

    old: Capture
    new: Capture
    old_label: str
    new_label: str
    old_launched: bool


def acquire_pair(wanted: Wanted, progress: Progress) -> Pair:
    """Read what is a file first, so that a bad one is told before anything is launched; then launch, old before new."""
    references = [parse(wanted.old), parse(wanted.new)]
    if all(isinstance(r, StdinReference) for r in references):
        raise UsageError("`-` can be given once: there is one standard input", "write one of the two to a file")
    launched = [isinstance(r, EngineReference) for r in references]
    if wanted.arguments and not any(launched):
        raise UsageError("words after -- go to an engine, and nothing is launched here", "leave them out")
    if wanted.python and sum(launched) != 1:
        raise UsageError("--python names the interpreter of one engine", "give one capture file and one engine")
    captures: list[Capture | None] = [None if isinstance(r, EngineReference) else read(r) for r in references]
    like = next((c for c in captures if c is not None), None)
    wishes = Wishes(
        model=wanted.model,
        arguments=wanted.arguments or (),
        variables=wanted.variables,
        python=wanted.python,
        build=wanted.build,
        start_limit_seconds=wanted.start_limit_seconds,
        like=like,
    )
    for index, reference in enumerate(references):
        if captures[index] is None:
            outcome = acquire(reference, wishes, progress)
            if outcome.error:
                progress(f"warning: {outcome.error.message}")
            captures[index] = outcome.capture
    old, new = captures
    assert old is not None, "every reference was read or launched"
    assert new is not None, "every reference was read or launched"
    return Pair(old, new, wanted.old, wanted.new, old_launched=launched[0])
