"""What is known of one setting or decision: its meaning, its spellings and facts by engine, and one capture's value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from packaging.version import Version

from engdiff.diff.values_at import value_at
from engdiff.engines.contract import Engine
from engdiff.knowledge.decisions import decisions
from engdiff.knowledge.settings import SettingInfo, registry
from engdiff.knowledge.tables import Fact
from engdiff.schema.capture import Capture
from engdiff.schema.explanation import Explanation, InCapture, OfEngine, Spelling, Told
from engdiff.schema.history import History
from engdiff.schema.values import Known, Unknown, plain


def explanation(
    key: str, engines: Sequence[Engine], histories: Mapping[str, History], capture: Capture | None
) -> Explanation:
    """All of it. ``histories``: by engine, where profiles are shipped; with a capture, of its engine and version."""
    info, decision = registry().get(key), decisions().get(key)
    said = decision or info
    told = [_of_engine(key, engine, histories.get(engine.name), capture) for engine in engines]
    return Explanation(
        key=key,
        area=said.area if said else "cosmetic",
        unit=info.unit if info else "",
        meaning=said.meaning if said else "A part of the engine's own configuration, which engdiff has no words for.",
        why=said.why if said else "",
        effects=_effects(info) if info else {},
        depends_on=info.depends_on if info else (),
        here=_in_capture(key, capture) if capture else None,
        engines=tuple(one for one in told if one.spellings or one.facts or one.defaults),
    )


def _effects(info: SettingInfo) -> dict[str, str]:
    return {str(name): sentence for name, sentence in info.effects.items()}


def _of_engine(key: str, engine: Engine, history: History | None, capture: Capture | None) -> OfEngine:
    version = _version(capture, engine)
    meaning = engine.knowledge.tongue.meanings.get(key, ())
    return OfEngine(
        engine=engine.name,
        title=engine.title,
        spellings=tuple(_spellings(key, engine, version)),
        means=meaning[-1].says if meaning else None,
        facts=tuple(Told(says=fact.says, source=fact.source) for fact in _facts(key, engine, version)),
        device=history.device if history else None,
        model=history.model if history else None,
        defaults=history.spans if history else (),
    )


def _version(capture: Capture | None, engine: Engine) -> str:
    """The release of which facts are told: that of the capture, else the newest."""
    said = plain(capture.identity.version) if capture else None
    return said if isinstance(said, str) else engine.known_versions(engine.distributions[0])[0]


def _facts(key: str, engine: Engine, version: str) -> Iterator[Fact]:
    keys = decisions()[key].facts if key in decisions() else (key,)
    return (fact for fact in engine.knowledge.facts if fact.key in keys and fact.holds_at(version))


def _spellings(key: str, engine: Engine, version: str) -> Iterator[Spelling]:
    """Releases that spell it alike, newest first; from the oldest known to the newest."""
    known = engine.known_versions(engine.distributions[0]) or (version,)
    ordered = sorted({*known, version}, key=Version, reverse=True)
    spelt = ((one, engine.knowledge.names(one).get(key)) for one in ordered)
    for names, several in groupby(spelt, key=lambda pair: pair[1] and (pair[1].flag, pair[1].variable, pair[1].native)):
        releases = [one for one, _ in several]
        if names and any(names):
            flag, variable, native = names
            yield Spelling(first=releases[-1], last=releases[0], flag=flag, variable=variable, native=native)


def _in_capture(key: str, capture: Capture) -> InCapture:
    value = value_at(capture, key)
    setting = capture.settings.get(key)
    version = plain(capture.identity.version)
    return InCapture(
        engine=capture.identity.engine,
        version=version if isinstance(version, str) else None,
        value=value,
        origin=setting.origin if setting else None,
        configured=setting.configured if setting else None,
        because=tuple(_reasons(key, capture)),
        unknown_because=_silence(key, value, capture),
    )


def _silence(key: str, value: Known | Unknown, capture: Capture) -> str | None:
    """Why there is no value; of the runner also why there is no reason."""
    if isinstance(value, Unknown):
        return value.because
    said = capture.runner.because
    return said.because if key == "runner.name" and isinstance(said, Unknown) else None


def _reasons(key: str, capture: Capture) -> Iterator[str]:
    """Why, in the engine's own words and its own order."""
    if key == "runner.name":
        said = capture.runner.because
        yield from str(said.value).split(", ") if isinstance(said, Known) else ()
    elif key == "kernels.attention_backend" and isinstance(capture.runner.candidates, Known):
        yield f"considered, in this order: {capture.runner.candidates.value}"
    if (setting := capture.settings.get(key)) and setting.because:
        yield setting.because
