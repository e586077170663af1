"""How text of a deployment file is quoted in a message: one line, no secret, no control character, not endless."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from engdiff.redact import REDACTED, redact_text, redact_words

LIMIT = 160


def told(text: str) -> str:
    """The text, fit for a message."""
    return _clipped(redact_text(text))


def told_words(words: Sequence[str]) -> str:
    """A command line, fit for a message."""
    redacted = (_quoted(word) for word in redact_words(words[:LIMIT]))
    return _clipped(" ".join(redacted))


def _quoted(word: str) -> str:
    return word if REDACTED in word else shlex.quote(word)


def _clipped(text: str) -> str:
    line = "".join(c if c.isprintable() else " " for c in text[: 8 * LIMIT])
    line = " ".join(line.split())
    return line if len(line) <= LIMIT else f"{line[:LIMIT]}…"
