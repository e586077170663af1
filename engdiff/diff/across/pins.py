"""What to type on the new engine to get what the old one had, where a value means the same on both."""

from __future__ import annotations

from dataclasses import dataclass

from engdiff.diff.across.capacity import SIZES, Cache
from engdiff.diff.across.party import Party
from engdiff.diff.effect import OFF
from engdiff.diff.findings import DiedServing, Found, NeitherStarts, PoolDiffers, StartRefused, StartsAlone
from engdiff.diff.pinning import pin_of
from engdiff.engines.contract import Pin as EnginePin
from engdiff.engines.contract import PinStyle
from engdiff.schema.capture import Capture
from engdiff.schema.diff import Pin
from engdiff.schema.values import Known, Unknown, number

TOKENS = "kv.configured_tokens"
"""The size of a KV cache in tokens, for an engine that takes it so."""

STARTS = (StartRefused, DiedServing, NeitherStarts, StartsAlone)


@dataclass(frozen=True)
class Carrier:
    """Carries values of the old engine over to the new one."""

    old: Party
    new: Party
    style: PinStyle

    def pin(self, found: Found) -> Pin:
        """The pin, or why there is none."""
        if isinstance(found, STARTS):
            failure = self.new.capture.failure
            return Pin(text=None, because=failure.advice if failure else "it starts")
        if isinstance(found, PoolDiffers):
            return self._pool()
        if found.inert:
            return Pin(text=None, because="it has no effect here")
        if found.meanings and not found.meanings.comparable:
            reason = self.new.sense(found.key).no_pin
            return Pin(text=None, because="the two mean different things" + (f": {reason}" if reason else ""))
        return self._setting(found.key)

    def _setting(self, key: str) -> Pin:
        value = self.old.shared(key)
        if isinstance(value, Unknown):
            return Pin(text=None, because=value.because)
        if value.value in OFF and not isinstance(value.value, bool):
            return Pin(text=None, because=f"it is unset on {self.old.title}")
        own = self.new.own(key, value.value)
        if own is None:
            return Pin(text=None, because=f"engdiff knows no word of {self.new.title} for {value.value}")
        made = self._ask(key, self._with(key, Known(value=own, basis=value.basis, evidence=value.evidence)))
        return pin_of(made) if made else Pin(text=None, because=self._no_pin(key))

    def _with(self, key: str, value: Known) -> Capture:
        """The old capture with the value in the new engine's words."""
        capture = self.old.capture
        setting = capture.settings[key].model_copy(update={"resolved": value, "effective": value})
        return capture.model_copy(update={"settings": {**capture.settings, key: setting}})

    def _ask(self, key: str, old: Capture) -> EnginePin | None:
        return self.new.engine.pin(key, old, self.new.capture, self.style)

    def _no_pin(self, key: str) -> str:
        names, reason = self.new.names.get(key), self.new.sense(key).no_pin
        if reason and not (names and names.flag):
            return reason
        if self.style == "env" and names and names.flag:
            return f"only a flag sets it on {self.new.title}: {names.flag}"
        if names and names.flag:
            return f"{names.flag} sets it on {self.new.title}; engdiff does not know how this value is written there"
        if names and names.native:
            return f"{self.new.title} takes it as {names.native} in its configuration, not as a flag"
        return f"nothing sets it on {self.new.title}"

    def _pool(self) -> Pin:
        """The KV cache's size asked for outright; only said where nobody had: the memory may not be there."""
        made = self._size()
        if made is None:
            return Pin(text=None, because=f"{self.new.title} takes no such size, as far as engdiff knows")
        if any(self.old.wrote(key) for key in SIZES):
            return made
        return Pin(text=None, because=f"{made.text} asks for the same size, where the memory for it is there")

    def _size(self) -> Pin | None:
        made = self._ask("kv.pool_bytes", _with_one_pool(self.old))
        if made is not None:
            return pin_of(made)
        names, tokens = self.new.names.get(TOKENS), number(Cache(self.old).tokens)
        if names and names.flag and tokens is not None:
            return Pin(text=f"{names.flag} {tokens:.0f}", style="flags")
        return None


def _with_one_pool(party: Party) -> Capture:
    """The capture with all its KV cache in one pool, whose tokens are known where a token is a token."""
    cache, rank = Cache(party), party.rank
    if rank is None or not cache.pools:
        return party.capture
    pool = cache.pools[0].model_copy(update={"bytes": cache.bytes, "tokens": cache.tokens})
    instance = party.capture.instances[0]
    ranks = (rank.model_copy(update={"pools": (pool,)}), *instance.ranks[1:])
    instances = (instance.model_copy(update={"ranks": ranks}), *party.capture.instances[1:])
    return party.capture.model_copy(update={"instances": instances})
