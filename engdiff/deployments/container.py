"""One container as a deployment file describes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Container:
    """What the file says. Nothing is redacted here.

    ``entrypoint`` is ``None`` where the file leaves the image's own. ``unknown_variables`` are those that the
    container will have and whose value is not in the file, each with the reason; a name with a space in it
    (``env_file .env``) stands for a whole set of variables. ``where`` is ``services.vllm`` or
    ``Deployment/llm: containers[0]``; ``notes`` are what a person should know about how it was read.
    """

    name: str
    image: str
    entrypoint: tuple[str, ...] | None
    arguments: tuple[str, ...]
    variables: Mapping[str, str]
    unknown_variables: Mapping[str, str]
    where: str
    path: Path
    line: int = 1
    notes: tuple[str, ...] = ()

    @property
    def owner(self) -> str:
        """The name of what it belongs to: that of the Deployment, or of the service."""
        return self.where.partition(":")[0].replace("services.", "services/", 1).partition("/")[2]
