"""What can be found: one small class per kind, each with its sentence. Comparing is in the modules beside this one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from engdiff.knowledge.settings import Area
from engdiff.schema.capture import Origin
from engdiff.schema.diff import Meanings
from engdiff.schema.values import Known, Unknown, plain
from engdiff.schema.wording import ratio, show


@dataclass(frozen=True)
class Found:
    """One thing that moved, before it gets its pin. ``name`` is how a sentence calls it."""

    key: str
    name: str
    old: Known | Unknown
    new: Known | Unknown
    area: Area
    why: str
    unit: str = ""
    old_origin: Origin | None = None
    new_origin: Origin | None = None
    evidence: tuple[str, ...] = ()
    asked: bool = False
    follows_from: tuple[str, ...] = ()
    since: str | None = None
    inert: bool = False
    """Whether it is known to have no effect here."""

    titles: tuple[str, str] = ("", "")
    """The two engines, where they are different ones."""

    meanings: Meanings | None = None
    """What the two engines mean by it, where they are different ones."""

    units: tuple[str, str] | None = None
    """Units of the two values, where the engines count in different ones."""

    rank: ClassVar[int] = 1
    """Among findings of one area: 0 comes first."""

    @property
    def explained(self) -> bool:
        """Whether engdiff has an account of what it costs."""
        return True

    @property
    def kind(self) -> str:
        """The name of the class."""
        return type(self).__name__

    def values(self) -> str:
        """``4 MiB → 16 MiB (×4)``."""
        change = ratio(self.old, self.new)
        return f"{show(self.old, self.unit)} → {show(self.new, self.unit)}" + (f" ({change})" if change else "")

    def headline(self) -> str:
        """One sentence."""
        return f"{self.name}: {self.values()}"


class StartRefused(Found):
    """The old side started and the new one does not."""

    rank = 0

    def headline(self) -> str:
        """Says why, as far as that is known."""
        return f"{self.name} does not start: {plain(self.new)}"


class DiedServing(Found):
    """The new side came up, and died while it served."""

    rank = 0

    def headline(self) -> str:
        """Says why, as far as that is known."""
        return f"{self.name} died while it served: {plain(self.new)}"


class FailureChanged(Found):
    """Neither side starts, each for a reason of its own."""

    rank = 0

    def headline(self) -> str:
        """The two reasons, the new one first."""
        return f"{self.name} does not start either, for another reason: {plain(self.new)}; before: {plain(self.old)}"


class FailureMoved(Found):
    """Neither side starts, for one reason with other numbers."""

    rank = 0


class StartMended(Found):
    """The old side did not start and the new one does."""

    rank = 0

    def headline(self) -> str:
        """Says what was wrong."""
        return f"{self.name} starts again; before: {plain(self.old)}"


class PoolShrank(Found):
    """A cache pool has fewer bytes."""

    rank = 0

    def headline(self) -> str:
        """The pool and its two sizes."""
        return f"{self.name} shrank: {self.values()}"


class PoolGrew(Found):
    """A cache pool has more bytes: taken from what else needs memory."""

    rank = 0

    def headline(self) -> str:
        """The pool and its two sizes."""
        return f"{self.name} grew: {self.values()}"


class ConcurrencyMoved(Found):
    """As many bytes, but another number of requests fits."""


class MemoryMoved(Found):
    """One line of the memory ledger moved."""

    rank = 2


class DefaultMoved(Found):
    """Nobody set it on either side, and its declared default changed."""

    def headline(self) -> str:
        """Says that it is a default."""
        return f"the default of {self.name} moved: {self.values()}"


class DerivedMoved(Found):
    """Nobody set it, and the engine makes something else of it."""

    def headline(self) -> str:
        """Says that the engine decided."""
        return f"{self.name} is decided differently: {self.values()}"


class SettingMoved(Found):
    """It moved, and who wrote or decided it is not known on one side."""

    def headline(self) -> str:
        """Says no more than that."""
        return f"{self.name} moved: {self.values()}"


class PolicyForced(Found):
    """The user set it, and the new side does something else."""

    rank = 0

    def headline(self) -> str:
        """Says that the user's word does not hold."""
        return f"{self.name} is overruled: {self.values()}"


class SettingChanged(Found):
    """The two command lines differ in it."""

    def headline(self) -> str:
        """Says who changed it."""
        return f"{self.name} was set differently: {self.values()}"


class SettingGone(Found):
    """The user set it, and the new version has no such setting."""

    rank = 0

    def headline(self) -> str:
        """Says that it has no effect any more."""
        return f"{self.name} is gone: it was {show(self.old, self.unit)}, and this version has no such setting"


class RunnerChanged(Found):
    """Another model runner executes."""

    rank = 0

    def headline(self) -> str:
        """The two runners."""
        return f"another model runner: {self.values()}"


class BackendChanged(Found):
    """Another attention back end executes."""

    rank = 0

    def headline(self) -> str:
        """The two back ends."""
        return f"another attention back end: {self.values()}"


class AdmissionChanged(Found):
    """Requests are let in or thrown out by another rule."""

    def headline(self) -> str:
        """The new rule, whole: the difference may be in its last words."""
        return f"{self.name} changed: now {plain(self.new)}"


class ProcessesChanged(Found):
    """The engine runs as other processes."""

    def headline(self) -> str:
        """The two lists."""
        return f"the engine runs as other processes: {self.values()}"


class NativeMoved(Found):
    """A leaf of the engine's own configuration that has no canonical name moved."""

    @property
    def explained(self) -> bool:
        """Only where the engine's knowledge has this very change, or knows that it does nothing here."""
        return self.since is not None or self.inert


# --- between different engines ------------------------------------------------------------------------------------


class Apart(Found):
    """A finding between different engines: neither value is before the other."""

    def both(self) -> str:
        """``SGLang 3,072 requests; vLLM 128 requests``: neither is before the other."""
        was, now = self.each()
        return f"{self.titles[0]} {was}; {self.titles[1]} {now}"

    def each(self) -> tuple[str, str]:
        """The two values, each with its unit."""
        units = self.units or (self.unit, self.unit)
        return show(self.old, units[0]), show(self.new, units[1])


class StartsAlone(Apart):
    """The new engine starts and the other one did not."""

    rank = 0

    def headline(self) -> str:
        """Says what was wrong with the other."""
        return f"{self.titles[1]} starts; {self.titles[0]} does not: {plain(self.old)}"


class NeitherStarts(Apart):
    """Neither engine starts."""

    rank = 0

    def headline(self) -> str:
        """The two reasons."""
        return f"neither starts; {self.titles[0]}: {plain(self.old)}; {self.titles[1]}: {plain(self.new)}"


class SettingNotCarried(Apart):
    """The user set it on the old engine, and on the new one nobody did."""

    rank = 0

    def headline(self) -> str:
        """What was set, and what holds now."""
        was, now = self.each()
        text = f"{self.name} is not carried over: set to {was} on {self.titles[0]}, {self.titles[1]} has {now}"
        unlike = self.meanings is not None and not self.meanings.comparable
        return text + (", which means another thing" if unlike else "")


class MeaningDiffers(Apart):
    """Both engines have it and mean different things by it, so that its values say nothing of each other."""

    def headline(self) -> str:
        """The two values, without how they relate."""
        return f"{self.name} means another thing on each: {self.both()}"


class SettingDiffers(Apart):
    """Both engines have it and mean the same by it, and the values differ."""

    def headline(self) -> str:
        """The two values."""
        return f"{self.name}: {self.both()}"


class PoolDiffers(Apart):
    """The KV caches of the two engines have different sizes."""

    rank = 0

    def headline(self) -> str:
        """The two sizes and how they relate."""
        change = ratio(self.old, self.new)
        return f"{self.name}: {self.both()}" + (f" ({change})" if change else "")
