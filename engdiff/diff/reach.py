"""How far engdiff's knowledge reaches: what lies beyond it is compared by values alone, and that is said."""

from __future__ import annotations

from collections.abc import Iterator

from engdiff.engines.contract import Engine
from engdiff.knowledge.versions import is_version, older
from engdiff.schema.capture import Capture
from engdiff.schema.diff import NotCompared
from engdiff.schema.values import plain


def beyond_knowledge(old: Capture, new: Capture, engine: Engine) -> Iterator[NotCompared]:
    """A side that is newer, or older, than every release whose changes were read."""
    read = engine.knowledge.changes_read
    found = [version for side in (old, new) if is_version(version := str(plain(side.identity.version)))]
    if read is None:
        return
    for version in dict.fromkeys(found):
        if older(read[1], version):
            yield _silent(engine, version, f"ends with {read[1]}", "came later")
        elif older(version, read[0]):
            yield _silent(engine, version, f"begins with {read[0]}", "came before")


def _silent(engine: Engine, version: str, reach: str, when: str) -> NotCompared:
    return NotCompared(
        what=f"known changes of {version}",
        because=f"what engdiff knows of {engine.title} {reach}; what {when} is compared by its values alone, "
        "without reasons, and behaviour that no value shows is not told",
    )
