"""How the two starts ended, where they are starts of different engines: nothing broke and nothing was mended."""

from __future__ import annotations

from collections.abc import Iterator

from engdiff.diff.across.party import Party
from engdiff.diff.findings import DiedServing, Found, NeitherStarts, StartRefused, StartsAlone
from engdiff.diff.sides import ending
from engdiff.diff.starts import start_finding
from engdiff.schema.diff import NotCompared

DOWN = ("failed", "died serving")


def start_found(old: Party, new: Party) -> Iterator[Found]:
    """One finding where a side does not serve."""
    before, after = ending(old.capture), ending(new.capture)
    if before in DOWN and after in DOWN:
        cls: type[Found] = NeitherStarts
    elif after in DOWN:
        cls = StartRefused if after == "failed" else DiedServing
    elif before in DOWN and after == "ready":
        cls = StartsAlone
    else:
        return
    yield start_finding(cls, old.capture, new.capture, titles=(old.title, new.title))


def start_not_compared(old: Party, new: Party) -> Iterator[NotCompared]:
    """A log that breaks off does not show how the start ended, and that is told."""
    for party in (old, new):
        if ending(party.capture) == "not shown":
            yield NotCompared(what="start-up", because=f"the log of {party.title} breaks off before its end")
