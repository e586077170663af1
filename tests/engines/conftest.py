"""Reads a text as a log of whichever engine wrote it, with the whole machinery."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from engdiff.schema.capture import Capture
from engdiff.sources.log import LogWishes, read_log

Read = Callable[..., Capture]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """From a text to its capture."""

    def of(text: str, start: int | None = None) -> Capture:
        path = tmp_path / "server.log"
        path.write_text(text)
        return read_log([path], LogWishes(start=start))

    return of
