"""The memory of one rank of each engine, line by line in shared words. Lines are put side by side, never subtracted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from engdiff.diff.across.party import Party
from engdiff.knowledge.meanings import TERMS
from engdiff.schema.capture import Term
from engdiff.schema.diff import Beside
from engdiff.schema.values import Known, Unknown, Value, number

MEANING = {
    "device memory": "what the ledger starts from",
    "limit": "what the KV cache is taken out of; each engine counts other things in it",
}
OTHER = "other"
GRAPHS = "graphs"


def ledger(old: Party, new: Party) -> Iterator[Beside]:
    """A line for every shared word that either side has something for."""
    left, right = _lines(old), _lines(new)
    for name in TERMS:
        if name in left or name in right:
            before, after = _side(name, left, old), _side(name, right, new)
            yield Beside(
                name=name,
                old=before[0],
                new=after[0],
                unit="bytes",
                old_as=before[1],
                new_as=after[1],
                meaning=MEANING.get(name, ""),
            )


def ledger_of(old: Party, new: Party) -> str:
    """Which rank of how many: ``SGLang: first of 2 ranks; vLLM: one rank``."""
    return "; ".join(f"{party.title}: {_ranks(party)}" for party in (old, new))


def _ranks(party: Party) -> str:
    count = sum(len(instance.ranks) for instance in party.capture.instances[:1])
    if party.rank is None:
        return "none stated"
    return f"{party.rank.device}" if count == 1 else f"{party.rank.device}, the first of {count} that it states"


Line = tuple[Value, str | None]


def _lines(party: Party) -> dict[str, Line]:
    """Shared word to bytes, and what the engine calls it where it calls it otherwise."""
    terms = party.rank.ledger if party.rank else ()
    by_word: dict[str, list[Term]] = {}
    for term in terms:
        shared = party.engine.knowledge.tongue.term(term.name)
        if not shared and term.kind == "use":
            shared = (OTHER,)
        for word in shared[:1]:
            by_word.setdefault(word, []).append(term)
    lines = {word: (_sum(found), _called(word, found, party)) for word, found in by_word.items()}
    for word, inside in _inside(by_word, party).items():
        lines.setdefault(word, (Unknown(because=f"counted with {inside}"), None))
    if GRAPHS not in lines and party.rank and isinstance(party.rank.graphs.bytes, Known):
        lines[GRAPHS] = party.rank.graphs.bytes, "as captured, outside its ledger"
    return lines


def _inside(by_word: Mapping[str, Sequence[Term]], party: Party) -> dict[str, str]:
    """Words that another line holds as well."""
    found: dict[str, str] = {}
    for word, terms in by_word.items():
        for term in terms:
            for other in party.engine.knowledge.tongue.term(term.name)[1:]:
                found.setdefault(other, word)
    return found


def _sum(terms: Sequence[Term]) -> Value:
    if len(terms) == 1:
        return terms[0].bytes
    unknown = next((term.bytes for term in terms if isinstance(term.bytes, Unknown)), None)
    return unknown or Known(value=round(sum(number(term.bytes) or 0 for term in terms)), basis="engine rule")


def _called(word: str, terms: Sequence[Term], party: Party) -> str | None:
    """The engine's own names, and what else is in them."""
    names = ", ".join(dict.fromkeys(term.name for term in terms))
    more = [other for term in terms for other in party.engine.knowledge.tongue.term(term.name)[1:]]
    if more:
        return f"{names}, with {' and '.join(dict.fromkeys(more))}"
    return names if names != word else None


def _side(name: str, lines: Mapping[str, Line], party: Party) -> Line:
    """What the side has for it; nothing is known of a line that it does not state."""
    if name in lines:
        return lines[name]
    return Unknown(because=f"{party.title} does not state it"), None
