"""What an engine's memory rule is asked, and what it answers: between ``budget`` and an engine's accounting.

Nothing here belongs to one engine. All sizes are bytes of one rank, all lengths tokens.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from pydantic import JsonValue

from engdiff.errors import UsageError
from engdiff.geometry import Geometry
from engdiff.knowledge.gpus import Gpu
from engdiff.schema.capture import Pool, Term
from engdiff.schema.values import Value

Settings = Mapping[str, JsonValue]
"""Final values by canonical key."""


@dataclass(frozen=True)
class Parallel:
    """How a model is spread: tensor, pipeline and expert parallelism."""

    tensor: int = 1
    pipeline: int = 1
    experts: bool = False
    """Whether ranks hold whole experts, each some of them."""


@dataclass(frozen=True)
class Deployment:
    """One engine, model and device, with the settings that its accounting reads."""

    version: str
    geometry: Geometry
    parallel: Parallel
    device_bytes: int
    """What the driver reports of one device, not its nominal size."""

    settings: Settings
    estimates: Mapping[str, Value]
    """What only a device can measure, by the name of its ledger line: measured elsewhere, or fitted."""

    def whole(self, key: str) -> int:
        """A setting that must be a whole number.

        Raises :class:`~engdiff.errors.UsageError` when it is not there.
        """
        value = self.settings.get(key)
        if not isinstance(value, int) or isinstance(value, bool):
            raise UsageError(f"the budget needs `{key}`, and it is {value!r}", "give it as a flag")
        return value

    def share(self, key: str) -> float:
        """A setting that must be a number."""
        value = self.settings.get(key)
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise UsageError(f"the budget needs `{key}`, and it is {value!r}", "give it as a flag")
        return float(value)


@dataclass(frozen=True)
class Check:
    """One of an engine's own checks at start, in its order.

    ``message``: what it would print when it refuses; ``margin_bytes``: what is left (negative: what is missing).
    """

    name: str
    margin_bytes: Value
    message: str

    source: str


@dataclass(frozen=True)
class Account:
    """An engine's accounting of one rank."""

    ledger: tuple[Term, ...]
    pool: Pool
    checks: tuple[Check, ...]
    longest: Value
    """The longest context in tokens with which it starts."""

    notes: tuple[str, ...] = ()


class Sizing(Protocol):
    """An engine's memory rule."""

    baseline: Mapping[str, str]
    """Of the shipped models, the one whose defaults stand for each kind of cache: ``full``, ``mla``, ``state``..."""

    reads: tuple[str, ...]
    """Canonical keys of the settings that it reads."""

    smallest_block: int
    """Tokens of a block before it is grown for a state."""

    def like(self, gpu: Gpu) -> tuple[str, str]:
        """Of the GPUs that profiles are shipped for, one for which this engine's defaults are the same, and why."""
        ...

    def settled(self, version: str, stated: Mapping[str, JsonValue], defaults: Mapping[str, JsonValue]) -> Settings:
        """Defaults with what the user stated, and what follows from that."""
        ...

    def estimates(
        self, version: str, geometry: Geometry, parallel: Parallel, settings: Settings
    ) -> Mapping[str, Value]:
        """What only a device can measure, by the name of the ledger line."""
        ...

    def kept_of_token(self, deployment: Deployment) -> Mapping[str, int]:
        """Bytes that one rank keeps of a token, by kind of layer."""
        ...

    def account(self, deployment: Deployment) -> Account:
        """The ledger, the pool and the checks.

        Raises :class:`~engdiff.errors.UsageError` for what the rule does not cover.
        """
        ...
