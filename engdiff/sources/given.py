"""What is given as a file or on standard input: a capture or a log; told apart by its first bytes."""

from __future__ import annotations

import re
import sys
from io import BufferedReader
from pathlib import Path

from engdiff import errors
from engdiff.references import FileReference, StdinReference
from engdiff.schema.capture import Capture
from engdiff.schema.files import load_capture, parse
from engdiff.sources.log import LogWishes, read_log

PEEKED_BYTES = 4096
_OBJECT = re.compile(rb'\s*\{\s*(?:"(?P<key>[^"]*)"|\}|$)')
_KEYS_OF_LOGS = {b"log", b"msg", b"message", b"level", b"time", b"ts", b"timestamp", b"severity", b"stream"}


def read(reference: FileReference | StdinReference, wishes: LogWishes | None = None) -> Capture:
    """The capture in a file or on standard input; of a log, what it states."""
    log_wishes = wishes or LogWishes()
    if isinstance(reference, StdinReference):
        stdin = sys.stdin.buffer
        assert isinstance(stdin, BufferedReader), "a terminal, a pipe or a file is buffered"
        if _is_document(stdin.peek(PEEKED_BYTES)):
            return parse(_stdin_text(), "standard input", Capture)
        return read_log((None,), log_wishes)
    path = reference.path
    if path.suffix == ".json" or _is_document(_first_bytes(path)):
        return load_capture(path)
    return read_log((path,), log_wishes)


def _stdin_text() -> str:
    try:
        return sys.stdin.buffer.read().decode("utf-8")
    except UnicodeDecodeError:
        raise errors.DocumentNotJson("standard input", 1, 1) from None


def _first_bytes(path: Path) -> bytes:
    try:
        with path.open("rb") as stream:
            return stream.read(PEEKED_BYTES)
    except FileNotFoundError:
        raise errors.DocumentMissing(path) from None
    except OSError as error:
        raise errors.DocumentUnreadable(path, error.strerror or str(error)) from None


def _is_document(first: bytes) -> bool:
    """Whether it begins as JSON does; a container's log, one JSON object in each line, begins with other keys."""
    begin = _OBJECT.match(first)
    return begin is not None and begin["key"] not in _KEYS_OF_LOGS
