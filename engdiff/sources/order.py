"""What to launch, in full: made by :mod:`engdiff.sources.acquire`, carried out by :mod:`engdiff.sources.launch`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from engdiff.engines.contract import Build, Engine, Image
from engdiff.environments.container import Tool
from engdiff.environments.recipe import Environment
from engdiff.errors import EngineFailed
from engdiff.machine import Machine
from engdiff.schema.capture import Capture

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Container:
    """The image that the engine runs in, by the name that ``tool`` gets, with its id (``sha256:…``) where it is known.

    ``python_path`` is what the image itself sets as PYTHONPATH.
    """

    tool: Tool
    image: Image
    reference: str
    identity: str = ""
    python_path: str = ""


@dataclass(frozen=True)
class Order:
    """``model`` is what the engine gets, ``model_given`` what the user wrote; ``variables`` its whole environment.

    In a container these are the variables that may reach the engine. ``explicit`` are those that the user set for
    the engine alone. ``image``: what the deployment names that was copied, or what the engine runs in.
    """

    engine: Engine
    environment: Environment
    build: Build
    model: str
    model_given: str
    arguments: tuple[str, ...]
    variables: Mapping[str, str]
    machine: Machine
    start_limit_seconds: float | None = None
    keep_log: Path | None = None
    image: str | None = None
    explicit: Mapping[str, str] = field(default_factory=dict)
    container: Container | None = None

    @property
    def version(self) -> str:
        """From the package's metadata, never from a banner."""
        return self.environment.version

    @property
    def uses_gpu(self) -> bool:
        """Whether this build computes on a GPU."""
        return self.build.device == "cuda"

    @property
    def called(self) -> str:
        """``vLLM 0.32.0``; with the image instead where only the engine itself can tell its version."""
        if self.container and self.container.image.interpreter is None:
            return f"{self.engine.title} in {self.container.reference}"
        return f"{self.engine.title} {self.version}"


@dataclass(frozen=True)
class Outcome:
    """What a launch gave: a capture, whole or partial, and the error that ended it, if any."""

    capture: Capture
    error: EngineFailed | None
