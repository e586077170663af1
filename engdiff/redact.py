"""Secrets never reach a file or a screen: redacted by name, by flag, and inside URLs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from pydantic import JsonValue

REDACTED = "[redacted]"

_SECRET_NAME = re.compile(
    r"(?:^|[_\-.])(?:api[_-]?keys?|token|secret|password|passwd|passphrase|credentials?|authorization|private[_-]?key)$|"
    r"^(?:hf_token|hugging_face_hub_token|huggingface_token|aws_secret_access_key|aws_session_token)$",
    re.IGNORECASE,
)
_URL_PASSWORD = re.compile(r"(?P<scheme>\b[a-zA-Z][a-zA-Z0-9+.\-]*://)[^/\s:@]+(?::[^/\s@]*)?@")
_ASSIGNED = re.compile(
    r"(?P<name>\b(?:[\w\-]*[_\-])?(?:api[_-]?keys?|hf[_-]?token|access[_-]?token|auth[_-]?token|secret|password)\b['\"]?\s*[=:]\s*)"
    r"(?P<value>\[[^\]]*\]|'[^']*'|\"[^\"]*\"|[^\s,;)\]}]+)",
    re.IGNORECASE,
)
_BEARER = re.compile(r"(?P<name>\bBearer\s+)[\w\-.~+/]+=*")
_KNOWN_SHAPES = re.compile(
    r"\b(?:hf_[A-Za-z0-9]{16,}|sk-[A-Za-z0-9_\-]{16,}|gh[pousr]_[A-Za-z0-9]{20,}|AKIA[A-Z0-9]{16})\b"
)
_EMPTY = {"None", "''", '""', "[]", "null", "False"}


def is_secret_name(name: str) -> bool:
    """Whether a variable, flag or key of this name holds a secret."""
    return bool(_SECRET_NAME.search(name.strip("-")))


def redact_text(text: str) -> str:
    """The text without passwords in URLs, assigned keys, bearer tokens and tokens of well-known shape."""
    text = _URL_PASSWORD.sub(rf"\g<scheme>{REDACTED}@", text)
    text = _ASSIGNED.sub(lambda m: m[0] if m["value"] in _EMPTY else m["name"] + REDACTED, text)
    text = _BEARER.sub(rf"\g<name>{REDACTED}", text)
    return _KNOWN_SHAPES.sub(REDACTED, text)


def redact_words(words: Sequence[str]) -> tuple[str, ...]:
    """A command line without the values of secret flags, written as two words or with ``=``."""
    out: list[str] = []
    hide_next = False
    for word in words:
        name, equals, _ = word.partition("=")
        if hide_next and not word.startswith("--"):
            out.append(REDACTED)
            continue
        hide_next = word.startswith("-") and not equals and is_secret_name(name)
        secret = word.startswith("-") and equals and is_secret_name(name)
        out.append(f"{name}={REDACTED}" if secret else redact_text(word))
    return tuple(out)


def redact_variables(variables: Mapping[str, str]) -> dict[str, str]:
    """Environment variables without secrets; names are kept, since that one was set matters."""
    return {k: REDACTED if is_secret_name(k) and v else redact_text(v) for k, v in variables.items()}


def redact_tree(value: JsonValue) -> JsonValue:
    """Any JSON value without secrets, by key and by content."""
    if isinstance(value, dict):
        return {k: REDACTED if is_secret_name(k) and _holds_text(v) else redact_tree(v) for k, v in value.items()}
    if isinstance(value, list):
        return [redact_tree(v) for v in value]
    return redact_text(value) if isinstance(value, str) else value


def _holds_text(value: JsonValue) -> bool:
    return (isinstance(value, str) and value not in ("", "None")) or (isinstance(value, list) and bool(value))
