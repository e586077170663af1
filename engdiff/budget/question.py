"""What is asked: a model, devices, an engine's release and settings, each said by the user or guessed and named."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pydantic import JsonValue

from engdiff.engines.contract import Engine
from engdiff.engines.sizing import Parallel, Sizing
from engdiff.geometry import Geometry
from engdiff.knowledge.gpus import Gpu
from engdiff.schema.budget import Guess


@dataclass(frozen=True)
class Question:
    """Everything that a budget follows from."""

    engine: Engine
    version: str
    model: str
    geometry: Geometry
    gpu: Gpu
    device_bytes: int
    parallel: Parallel
    settings: Mapping[str, JsonValue]
    """Final values by canonical key, of those that the accounting reads."""

    stated: Mapping[str, JsonValue]
    """Those that the user wrote."""

    guesses: tuple[Guess, ...]

    @property
    def sizing(self) -> Sizing:
        """The engine's memory rule: a question is asked only of an engine that has one."""
        assert self.engine.sizing is not None
        return self.engine.sizing

    def having(self, settings: Mapping[str, JsonValue]) -> Question:
        """The same with other settings."""
        stated = {**self.stated, **settings}
        return replace(self, stated=stated, settings=self.sizing.settled(self.version, stated, self.settings))


@dataclass(frozen=True)
class Axis:
    """One setting and the values that it takes in turn."""

    key: str
    values: Sequence[JsonValue]
