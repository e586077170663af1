"""Secrets never reach a file or a screen: redacted by name, by flag, and inside URLs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from pydantic import JsonValue

REDACTED = "[redacted]"

_KEYS = r"api[_-]?keys?|(?:secret|access|private)[_-]?key|secret|password|passwd|passphrase"
_SECRET_NAME = re.compile(rf"(?:^|[_\-.])(?:{_KEYS}|token|credentials?|authorization)$|^hft$", re.IGNORECASE)
_HARMLESS_NAME = re.compile(
    r"(?:^|[_\-.])(?:(?:bos|eos|eot|eom|pad|unk|cls|sep|mask|image|video|audio|stop|start|end|per|special|next)[_-]token|"
    r"(?:allow|cors)[_-]credentials)$",
    re.IGNORECASE,
)
"""A tokenizer's words, what is counted by the token, and switches."""
_URL_PASSWORD = re.compile(r"(?P<scheme>\b[a-zA-Z][a-zA-Z0-9+.\-]*://)[^/\s?#'\"<>]+@")
_VALUE = r"(?P<value>\[[^\]]*\]|'[^']*'|\"[^\"]*\"|[^\s,;)\]}]+)"
_TOKENS = r"(?:hf|hub|huggingface|access|auth|session|github)[_-]?token"
_ASSIGNED = re.compile(
    rf"(?P<name>\b(?:[\w\-]*[_\-])?(?:{_KEYS}|{_TOKENS})\b['\"]?\s*[=:]\s*)(?!Bearer\b){_VALUE}", re.IGNORECASE
)
_FLAG = re.compile(rf"(?P<name>(?<!\S)--?(?:[\w\-]*-)?(?:{_KEYS}|{_TOKENS})\s+)(?!--){_VALUE}", re.IGNORECASE)
_QUERY = re.compile(r"(?P<name>[?&](?:token|sig|signature)=)[^\s&'\"<>]+", re.IGNORECASE)
_BEARER = re.compile(r"(?P<name>\bBearer\s+|\bAuthorization['\"]?\s*[=:]\s*['\"]?Basic\s+)[\w\-.~+/]+=*", re.IGNORECASE)
_KNOWN_SHAPES = re.compile(
    r"\b(?:hf_[A-Za-z0-9]{16,}|sk-[A-Za-z0-9_\-]{16,}|gh[pousr]_[A-Za-z0-9]{20,}|AKIA[A-Z0-9]{16})\b"
)
_EMPTY = {"None", "''", '""', "[]", "null", "False"}


def is_secret_name(name: str) -> bool:
    """Whether a variable, flag or key of this name holds a secret."""
    bare = name.strip("-")
    return bool(_SECRET_NAME.search(bare)) and not _HARMLESS_NAME.search(bare)


def redact_text(text: str) -> str:
    """The text without passwords in URLs, assigned keys, bearer tokens and tokens of well-known shape."""
    text = _URL_PASSWORD.sub(rf"\g<scheme>{REDACTED}@", text)
    text = _ASSIGNED.sub(lambda m: m[0] if m["value"] in _EMPTY else m["name"] + REDACTED, text)
    text = _FLAG.sub(lambda m: m[0] if m["value"] in _EMPTY else m["name"] + REDACTED, text)
    for pattern in (_BEARER, _QUERY):
        text = pattern.sub(rf"\g<name>{REDACTED}", text)
    return _KNOWN_SHAPES.sub(REDACTED, text)


def redact_words(words: Sequence[str]) -> tuple[str, ...]:
    """A command line without the values of secret flags, written as two words or with ``=``."""
    out: list[str] = []
    hide_next = False
    for word in words:
        name, equals, _ = word.partition("=")
        if hide_next and not word.startswith("--" if out[-1] != REDACTED else "-"):
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
    """Whether a value under a secret's name says anything; a flag's description under it is a tree of its own."""
    if isinstance(value, str):
        return value not in ("", "None")
    return (isinstance(value, list) and bool(value)) or (isinstance(value, int | float) and not isinstance(value, bool))
