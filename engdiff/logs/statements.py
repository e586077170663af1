"""What a log says: physical lines, what their prefix tells, and what a pattern read from a message."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Line:
    """One physical line without wrappers, colours and control characters; the engine's own prefix is still there.

    ``number`` counts from 1 in ``file`` (``None``: the only one); ``source`` is what a wrapper calls the stream
    that it comes from (a compose service, a pod), empty when there is no wrapper.
    """

    number: int
    text: str
    source: str = ""
    file: str | None = None


@dataclass(frozen=True)
class Said:
    """A line as its engine wrote it: who speaks, how loud, and the message.

    ``process`` is as printed, without its process id (``Worker_TP0``, ``EngineCore_DP1``); ``ranks`` maps ``tp``,
    ``pp``, ``dp``, ``ep`` to what the prefix states. ``prefixed`` is whether the line has a prefix of its own: one
    without may continue the line before it.
    """

    text: str
    process: str = ""
    pid: int | None = None
    ranks: Mapping[str, int] = field(default_factory=dict)
    level: str | None = None
    prefixed: bool = False


@dataclass(frozen=True)
class Statement:
    """What one pattern read: ``name`` as in the engine's ``log.toml``, its groups, who said it, and where.

    ``pieces`` are the physical lines of the message with the offset at which each begins in ``match.string``.
    """

    name: str
    match: re.Match[str]
    said: Said
    pieces: tuple[tuple[int, Line], ...]
    text: str

    def __getitem__(self, group: str) -> str:
        """A group that took part in the match."""
        text = self.match[group]
        assert isinstance(text, str), f"group {group} of {self.name} took no part"
        return text

    def get(self, group: str) -> str | None:
        """A group, or ``None`` when it took no part or the pattern has none of this name."""
        return self.match.groupdict().get(group)

    @property
    def line(self) -> Line:
        """Where the message begins."""
        return self.pieces[0][1]

    def cited(self, group: str) -> tuple[str, Line]:
        """The text and the line to cite for a group: its own physical line, or the joined text when it spans two."""
        start, end = self.match.span(group)
        at = max(index for index, (offset, _) in enumerate(self.pieces) if offset <= max(start, 0))
        whole = at + 1 >= len(self.pieces) or end <= self.pieces[at + 1][0]
        line = self.pieces[at][1]
        return (line.text if whole else self.match.string), line

    @property
    def speaker(self) -> str:
        """Who said it, as one word; empty when the prefix does not say."""
        return self.said.process or " ".join(f"{name}{index}" for name, index in sorted(self.said.ranks.items()))
