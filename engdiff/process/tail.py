"""The last lines of a log, as a person would have seen them."""

from __future__ import annotations

import re
from pathlib import Path

_BLOCK = 64 * 1024  # bytes
_MOST = 16 * 1024 * 1024  # bytes looked at, at most: a progress bar can be one line of megabytes
_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")


def last_lines(path: Path, count: int) -> tuple[str, ...]:
    """Read the last ``count`` lines that are not blank, oldest first; none when there is no such file.

    Reads from the end only. Undecodable bytes are replaced, colours removed, and of a progress bar its last state is
    kept. Raises OSError when the file is there and cannot be read.
    """
    try:
        lines = _lines_from_end(path, count)
    except FileNotFoundError:
        return ()
    return tuple(lines[-count:]) if count > 0 else ()


def plain(line: str) -> str:
    """One line without terminal escapes, as it stands after its last carriage return."""
    text = _ESCAPE.sub("", line).rstrip()
    return text.rpartition("\r")[2].rstrip()


def _lines_from_end(path: Path, count: int) -> list[str]:
    with path.open("rb") as log:
        end = log.seek(0, 2)
        size = _BLOCK
        while True:
            start = max(0, end - size)
            log.seek(start)
            data = log.read(end - start)
            _, newline, rest = data.partition(b"\n")
            whole = data if start == 0 or not newline else rest
            lines = [text for raw in whole.split(b"\n") if (text := plain(raw.decode("utf-8", "replace")))]
            if start == 0 or (newline and len(lines) >= count) or size >= _MOST:
                return lines
            size *= 4
