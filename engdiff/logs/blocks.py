"""A log as blocks of whole lines, whatever its size and encoding; memory stays flat."""

from __future__ import annotations

import codecs
import gzip
import zlib
from collections.abc import Callable, Iterator
from typing import IO, cast

BLOCK_BYTES = 1 << 22
PIECE_BYTES = 1 << 14
LONGEST_LINE_BYTES = 1 << 20
"""What a line has beyond this is not read; a resolved configuration is some ten thousand bytes long."""

_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))


def blocks(stream: IO[bytes], damaged: Callable[[str], None] = lambda _: None) -> Iterator[bytes]:
    """Blocks that end at the end of a line, but for the last one; UTF-16 (a Windows redirect) and gzip are undone.

    A compressed log that breaks off is read as far as it goes; ``damaged`` is told why.
    """
    head = stream.read(2)
    if head == b"\x1f\x8b":
        stream = cast("IO[bytes]", _Unzipped(cast("IO[bytes]", _Joined(head, stream)), damaged))
        head = b""
    yield from _whole_lines(_as_utf8(head, stream))


class _Unzipped:
    """What a gzip file holds, up to where it is damaged."""

    def __init__(self, stream: IO[bytes], damaged: Callable[[str], None]) -> None:
        self._file = gzip.GzipFile(fileobj=stream)
        self._damaged = damaged
        self._over = False

    def read(self, size: int) -> bytes:
        """As of a file; piece by piece, so that nothing before the damage is lost."""
        pieces: list[bytes] = []
        while not self._over and size > 0:
            try:
                piece = self._file.read1(min(size, PIECE_BYTES))
            except (EOFError, zlib.error, gzip.BadGzipFile) as error:
                self._damaged(f"the compressed log is damaged or breaks off: {error}")
                piece = b""
            self._over = not piece
            pieces.append(piece)
            size -= len(piece)
        return b"".join(pieces)


class _Joined:
    """A stream whose first bytes were read already."""

    def __init__(self, head: bytes, stream: IO[bytes]) -> None:
        self._head, self._stream = head, stream

    def read(self, size: int = -1) -> bytes:
        """As of a file."""
        if not self._head:
            return self._stream.read(size)
        head, self._head = self._head, b""
        if size < 0:
            return head + self._stream.read()
        return head[:size] if len(head) >= size else head + self._stream.read(size - len(head))


def _as_utf8(head: bytes, stream: IO[bytes]) -> Iterator[bytes]:
    first = head + stream.read(BLOCK_BYTES)
    mark, encoding = next(((m, e) for m, e in _MARKS if first.startswith(m)), (b"", _guessed(first)))
    first = first[len(mark) :]
    if encoding == "utf-8":
        while first:
            yield first
            first = stream.read(BLOCK_BYTES)
        return
    decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
    while first:
        yield decoder.decode(first).encode("utf-8", errors="replace")
        first = stream.read(BLOCK_BYTES)


def _guessed(first: bytes) -> str:
    """UTF-16 without a mark has a zero beside nearly every letter."""
    sample = first[:1024]
    if len(sample) >= 16 and sample[1::2].count(0) > len(sample) // 4:
        return "utf-16-le"
    if len(sample) >= 16 and sample[::2].count(0) > len(sample) // 4:
        return "utf-16-be"
    return "utf-8"


def _whole_lines(parts: Iterator[bytes]) -> Iterator[bytes]:
    whole = rest = b""
    skipping = False
    for part in parts:
        if skipping:
            end = part.find(b"\n")
            if end < 0:
                continue
            skipping = False
            rest, part = rest + b"\n", part[end + 1 :]
        cut = part.rfind(b"\n") + 1
        if cut:
            if whole:
                yield whole
            whole = b"".join((rest, memoryview(part)[:cut]))
            rest = part[cut:]
        else:
            rest += part
        if len(rest) > LONGEST_LINE_BYTES:
            rest, skipping = rest[:LONGEST_LINE_BYTES], True
    # A last line without an end may continue a message of the block before it.
    if whole or rest:
        yield whole + rest
