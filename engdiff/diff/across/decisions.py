"""Rules and parts of the two engines in words, side by side: none of them moved."""

from __future__ import annotations

from collections.abc import Iterator

from engdiff.diff.across.party import Party
from engdiff.diff.parts import process_map
from engdiff.diff.sides import whole
from engdiff.knowledge.meanings import SPOKEN
from engdiff.schema.capture import Capture
from engdiff.schema.diff import Beside, Meanings, OtherMeaning
from engdiff.schema.values import Known, Unknown, Value


def decisions(old: Party, new: Party) -> Iterator[Beside]:
    """How requests get in and are thrown out, what executes, and as which processes."""
    for name, left, right in (
        ("admission", old.capture.admission.rule, new.capture.admission.rule),
        ("preemption", old.capture.admission.preemption, new.capture.admission.preemption),
        ("model runner", old.capture.runner.name, new.capture.runner.name),
        ("attention", old.capture.runner.attention_backend, new.capture.runner.attention_backend),
        ("processes", _processes(old.capture), _processes(new.capture)),
    ):
        if isinstance(left, Known) or isinstance(right, Known):
            yield Beside(name=name, old=left, new=right)


def _processes(capture: Capture) -> Value:
    """As one text: ``engine core (schedule), front end (http, tokenise)``."""
    found = process_map(capture)
    if found:
        return Known(value=", ".join(found), basis="measured")
    return Unknown(because="it was not seen" if whole(capture) else "its source does not show them")


def spoken(old: Party, new: Party) -> Iterator[OtherMeaning]:
    """Words that no setting has and by which the two engines mean different things."""
    for key, name in SPOKEN.items():
        if not (old.explains(key) and new.explains(key)):
            continue
        left, right = old.sense(key), new.sense(key)
        if left.sense is None or left.sense != right.sense:
            yield OtherMeaning(name=name, meanings=Meanings(old=left.says, new=right.says, comparable=False))
