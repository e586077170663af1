"""One of the two engines: its capture, its words, and its values in words that both share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from pydantic import JsonValue

from engdiff.diff.effect import OFF
from engdiff.engines.contract import Engine
from engdiff.knowledge.meanings import SPOKEN
from engdiff.knowledge.settings import registry
from engdiff.knowledge.tables import Names
from engdiff.schema.capture import Capture, Rank
from engdiff.schema.diff import Meanings
from engdiff.schema.values import Known, Unknown, plain

_CALLED = {"gpu": ("gpu", "cuda"), "cpu": ("cpu", "host")}
"""Words in the name of a rank's device that tell its kind."""


@dataclass(frozen=True)
class Sense:
    """What an engine means by a key. ``sense`` is ``None`` where what is known does not tell which of several."""

    sense: str | None
    says: str
    no_pin: str | None = None
    unit: str | None = None


@dataclass(frozen=True)
class Party:
    """One side of a comparison of different engines."""

    capture: Capture
    engine: Engine

    @property
    def title(self) -> str:
        """The engine as its users write it."""
        return self.engine.title

    @property
    def version(self) -> str:
        """Its version; a word that is no version where it is not known."""
        return str(plain(self.capture.identity.version))

    @cached_property
    def names(self) -> Mapping[str, Names]:
        """Canonical key to the engine's own names."""
        return self.engine.knowledge.names(self.version)

    @property
    def rank(self) -> Rank | None:
        """The first rank, which stands for the others: what is compared is what one rank holds."""
        instances = self.capture.instances
        return instances[0].ranks[0] if instances and instances[0].ranks else None

    @cached_property
    def _device(self) -> str | None:
        """The kind of device, by what is stated of devices or else by what the first rank is called."""
        kinds = {device.kind for device in self.capture.identity.devices}
        if kinds:
            return "gpu" if "gpu" in kinds else "cpu"
        called = self.rank.device.lower() if self.rank else ""
        return next((kind for kind, words in _CALLED.items() if any(w in called for w in words)), None)

    @cached_property
    def _values(self) -> Mapping[str, object]:
        finals = {key: setting.final for key, setting in self.capture.settings.items()}
        return {key: final.value for key, final in finals.items() if isinstance(final, Known)}

    def sense(self, key: str) -> Sense:
        """What the engine means by the key; without a row of its own, what the registry says."""
        rows = self.engine.knowledge.tongue.meaning(key, self.version, self._device, self._values)
        if not rows:
            info = registry().get(key)
            return Sense(sense="", says=_plain_words(info.meaning) if info else SPOKEN[key])
        senses = {row.sense for row in rows}
        return Sense(
            sense=rows[0].sense if len(senses) == 1 else None,
            says=", or ".join(dict.fromkeys(row.says for row in rows)),
            no_pin=next((row.no_pin for row in rows if row.no_pin), None),
            unit=rows[0].unit,
        )

    def explains(self, key: str) -> bool:
        """Whether the engine has a row of its own for the key."""
        return key in self.engine.knowledge.tongue.meanings

    def shared(self, key: str) -> Known | Unknown:
        """The value of a canonical setting in words that both engines share."""
        final = self.capture.settings[key].final
        if isinstance(final, Unknown) or not isinstance(final.value, str):
            return final
        word = self._word(key, final.value)
        if not word.startswith("="):
            return final.model_copy(update={"value": word})
        other, _, unless = word.removeprefix("=").partition(" unless ")
        meant = self.shared(other) if other in self.capture.settings else None
        decided = not unless or (unless in self._values and self._values[unless] in OFF)
        if decided and isinstance(meant, Known) and meant.value not in (None, final.value):
            return meant
        return Unknown(because=f"{self.title} says {final.value}, and what that comes to is not stated")

    def _word(self, key: str, value: str) -> str:
        table = self.engine.knowledge.tongue.words.get(key, {})
        return next((shared for own, shared in table.items() if own.lower() == value.lower()), value.lower())

    def wrote(self, key: str) -> bool:
        """Whether the user wrote this setting."""
        setting = self.capture.settings.get(key)
        return setting is not None and setting.configured is not None

    def refers(self, key: str, value: str) -> bool:
        """Whether the word takes the value of another setting."""
        return self._word(key, value).startswith("=")

    def own(self, key: str, shared: JsonValue) -> JsonValue:
        """A shared value in the engine's own words; ``None`` where it has none for it."""
        if not isinstance(shared, str):
            return shared
        table = self.engine.knowledge.tongue.words.get(key, {})
        return next((own for own, word in table.items() if word == shared), None)


def meanings(key: str, old: Party, new: Party) -> Meanings | None:
    """What the two mean by the key; ``None`` where neither has more to say than the registry."""
    if not old.explains(key) and not new.explains(key):
        return None
    left, right = old.sense(key), new.sense(key)
    return Meanings(old=left.says, new=right.says, comparable=left.sense is not None and left.sense == right.sense)


def _plain_words(meaning: str) -> str:
    return f"{meaning[:1].lower()}{meaning[1:]}".rstrip(".")
