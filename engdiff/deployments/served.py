"""What an engine says of a command: that it is its server, with which model, words and version."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Served:
    """A server's command as an engine understands it.

    ``model`` is ``None`` where the command names none (or names it in a place that is not known);
    ``arguments`` are the words for the server, without the model. ``version`` is a release of the engine as
    in ``engine@version``, or ``None``; ``version_because`` says where it is from, or why there is none.
    """

    model: str | None
    arguments: tuple[str, ...]
    version: str | None
    version_because: str


class Recognise(Protocol):
    """``engdiff/engines/<engine>/deployment.py: recognise``."""

    def __call__(
        self, image: str, words: Sequence[str], variables: Mapping[str, str] = ..., *, appended: bool = ...
    ) -> Served | None:
        """The server that these words start; ``None`` when they start something else.

        With ``appended`` the words come after the image's own entrypoint; without, they are the whole command.
        """
        ...
