"""What to launch, in full: made by :mod:`engdiff.sources.acquire`, carried out by :mod:`engdiff.sources.launch`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from engdiff.engines.contract import Engine
from engdiff.environments.recipe import Environment
from engdiff.errors import EngineFailed
from engdiff.machine import Machine
from engdiff.schema.capture import Capture

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Order:
    """``model`` is what the engine gets, ``model_given`` what the user wrote; ``variables`` its whole environment."""

    engine: Engine
    environment: Environment
    because: str
    model: str
    model_given: str
    arguments: tuple[str, ...]
    variables: Mapping[str, str]
    machine: Machine
    start_limit_seconds: float | None = None
    keep_log: Path | None = None
    image: str | None = None

    @property
    def version(self) -> str:
        """From the package's metadata, never from a banner."""
        return self.environment.version

    @property
    def uses_gpu(self) -> bool:
        """Whether this build computes on a GPU."""
        return self.environment.distribution not in self.engine.cpu_distributions

    @property
    def called(self) -> str:
        """``vLLM 0.32.0``."""
        return f"{self.engine.title} {self.version}"


@dataclass(frozen=True)
class Outcome:
    """What a launch gave: a capture, whole or partial, and the error that ended it, if any."""

    capture: Capture
    error: EngineFailed | None
