"""What one engine has and the other has not: what the user relied on first, then what only holds by default."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from engdiff.diff.across.capacity import SIZES
from engdiff.diff.across.party import Party
from engdiff.diff.across.settings import TOLD_ELSEWHERE
from engdiff.diff.effect import OFF
from engdiff.knowledge.settings import registry
from engdiff.schema.diff import OneSided
from engdiff.schema.values import Known, plain

_FLAG = re.compile(r"--?[A-Za-z][\w.-]*")


def one_sided(old: Party, new: Party) -> tuple[OneSided, ...]:
    """Of both sides, the old one first; what the user wrote goes before the rest."""
    found = [*_settings("old", old, new), *_typed("old", old, new)]
    found += [*_settings("new", new, old), *_typed("new", new, old)]
    return tuple(sorted(found, key=lambda one: (not one.by_user, one.side == "new")))


def _settings(side: Literal["old", "new"], mine: Party, other: Party) -> Iterator[OneSided]:
    """Canonical settings that the other engine does not have in its version."""
    for key, info in registry().items():
        setting = mine.capture.settings.get(key)
        if setting is None or key in TOLD_ELSEWHERE or key in other.names or key in other.capture.settings:
            continue
        by_user = setting.configured is not None
        if isinstance(setting.final, Known) and (by_user or plain(setting.final) not in OFF):
            yield OneSided(
                what=key,
                side=side,
                value=setting.final,
                unit=info.unit,
                by_user=by_user,
                why=info.why,
                counterpart=_size_for(other) if by_user and key in SIZES else None,
            )


@dataclass(frozen=True)
class Typed:
    """A flag or a variable as the user wrote it, and its name alone."""

    name: str
    text: str


def _typed(side: Literal["old", "new"], mine: Party, other: Party) -> Iterator[OneSided]:
    """Flags and variables that have no canonical key: by their other name, or as they were typed."""
    canonical = _canonical(mine)
    for typed in (*_flags(mine.capture.launch.arguments), *_variables(mine.capture.launch.variables)):
        if typed.name in canonical:
            continue
        meant = mine.engine.knowledge.tongue.flags.get(typed.name)
        counterpart = _flag_for(meant, other) if meant else None
        why = f"{other.title} has no flag for the {meant}" if meant and not counterpart else ""
        yield OneSided(what=typed.text, side=side, by_user=True, why=why, counterpart=counterpart)


def _canonical(party: Party) -> set[str]:
    """Words that the stated canonical settings are written as."""
    stated = (party.names[key] for key in party.capture.settings if key in party.names)
    names = {word for n in stated for word in (n.flag, n.variable) if word}
    written = (setting.configured for setting in party.capture.settings.values())
    return names | {one.evidence.where for one in written if one and one.evidence}


def _size_for(party: Party) -> str | None:
    """What gives the other engine's KV cache its size outright, in whatever unit."""
    names = (party.names.get(key) for key in SIZES)
    return next((n.flag or n.native for n in names if n and (n.flag or n.native)), None)


def _flag_for(meant: str, party: Party) -> str | None:
    return next((flag for flag, means in party.engine.knowledge.tongue.flags.items() if means == meant), None)


def _flags(arguments: tuple[str, ...]) -> Iterator[Typed]:
    """Each flag with the words that follow it up to the next."""
    taken: list[str] = []
    for word in (*arguments, "--end"):
        if _FLAG.match(word) and taken:
            yield Typed(taken[0].partition("=")[0], " ".join(taken))
        if _FLAG.match(word):
            taken = [word]
        elif taken:
            taken.append(word)


def _variables(variables: Mapping[str, str]) -> Iterator[Typed]:
    yield from (Typed(name, f"{name}={value}") for name, value in sorted(variables.items()))
