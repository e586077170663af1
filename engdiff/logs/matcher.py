"""Which lines of a block are worth looking at: those that hold one of many literal texts.

RE2 where it is installed (its automaton reads hundreds of MB a second, whatever the texts are); otherwise one search
of the standard library for each text, about a tenth of that.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

Finder = Callable[[bytes, int], int]
"""From a block and an offset to the offset of the next text, -1 for none."""

AUTOMATON_BYTES = 1 << 26
"""The most that RE2 may use. Its own limit of 8 MiB is too little for 18,000 characters of texts: it then complains on
standard error and searches six times more slowly."""


def native(texts: Iterable[str]) -> Finder | None:
    """RE2's finder; ``None`` where RE2 is not installed."""
    try:
        import re2
    except ImportError:
        return None
    options = re2.Options()
    options.max_mem = AUTOMATON_BYTES
    options.log_errors = False
    pattern = re2.compile(b"|".join(re.escape(text.encode()) for text in texts), options)

    def find(block: bytes, start: int) -> int:
        match = pattern.search(block, start)
        return -1 if match is None else int(match.start())

    return find


def fallback(texts: Iterable[str]) -> Finder:
    """The standard library's: the nearest hit of each text is remembered until it is passed."""
    needles = [text.encode() for text in texts]
    block: bytes = b""
    nearest: dict[bytes, int] = {}

    def find(given: bytes, start: int) -> int:
        nonlocal block
        if given is not block:
            block = given
            nearest.clear()
            nearest.update((needle, given.find(needle)) for needle in needles)
            for needle in [n for n, at in nearest.items() if at < 0]:
                del nearest[needle]
        for needle in [n for n, at in nearest.items() if at < start]:
            again = given.find(needle, start)
            if again < 0:
                del nearest[needle]
            else:
                nearest[needle] = again
        return min(nearest.values(), default=-1)

    return find


def finder(texts: Iterable[str]) -> Finder:
    """The fastest there is."""
    wanted = sorted(set(texts))
    return native(wanted) or fallback(wanted)


def lines_with(block: bytes, find: Finder, begin: int = 0) -> Iterator[tuple[int, int]]:
    """Offsets of each line (without its newline) from ``begin`` on that holds one of the texts, in order."""
    at = find(block, begin)
    while at >= 0:
        start = block.rfind(b"\n", 0, at) + 1
        end = block.find(b"\n", at)
        if end < 0:
            yield start, len(block)
            return
        yield start, end
        at = find(block, end + 1)
