"""Words of a command line and variables, as fields of xllamacpp's ``CommonParams``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from engdiff.engines.llamacpp.flags.table import (
    SAMPLING_MARKS,
    TRUE_WORDS,
    Flag,
    FlagError,
    JsonValue,
    by_word,
    flags_at,
    load_flags,
    server_defaults,
)
from engdiff.engines.llamacpp.flags.values import choice, parse_value


@dataclass(frozen=True)
class Translation:
    """Dotted ``CommonParams`` paths with their values (enum members by name), and the word that set each."""

    fields: dict[str, JsonValue]
    origins: dict[str, str]


def translate(args: Sequence[str], environ: Mapping[str, str], version: str) -> Translation:
    """What llama-server of this version would set for these words and variables; words override variables.

    Raises :class:`FlagError` for the first word or variable that it cannot carry out.
    """
    work = _Work(version)
    for flag in flags_at(version):
        if (read := _from_variable(flag, environ)) is not None:
            work.apply(flag, *read)
    for flag, value, spelled in _from_words(args, version):
        work.apply(flag, value, spelled)
    return Translation(work.fields, work.origins)


def _from_variable(flag: Flag, environ: Mapping[str, str]) -> tuple[JsonValue, str] | None:
    """The value that the flag's variable gives, and the variable; ``None`` if it is not set, or says nothing."""
    if flag.env is None:
        return None
    no = flag.env.replace("LLAMA_ARG_", "LLAMA_ARG_NO_")
    if flag.negative and no != flag.env and no in environ:
        _supported(flag, no)
        return choice(flag, positive=False), no
    if flag.env not in environ:
        return None
    text = environ[flag.env]
    _supported(flag, flag.env)
    if flag.type == "switch":
        return (flag.on, flag.env) if text in TRUE_WORDS else None
    return parse_value(flag, text, flag.env), flag.env


def _from_words(args: Sequence[str], version: str) -> Iterator[tuple[Flag, JsonValue, str]]:
    """Each flag on the command line with its value and spelling, in order."""
    words = iter(args)
    for spelled in words:
        flag, positive = _find(spelled, version)
        _supported(flag, spelled)
        if not flag.takes_word:
            yield flag, flag.on if flag.type == "switch" else choice(flag, positive=positive), spelled
            continue
        text = next(words, None)
        if text is None:
            raise FlagError(spelled, "a value must follow it")
        yield flag, parse_value(flag, text, spelled), spelled


def _find(spelled: str, version: str) -> tuple[Flag, bool]:
    """The flag of one word, read as llama-server reads it: in a long flag ``_`` is ``-``."""
    word = spelled.replace("_", "-") if spelled.startswith("--") else spelled
    known = by_word(version)
    if word in known:
        return known[word]
    name, equals, _ = word.partition("=")
    if equals and name in known:
        raise FlagError(spelled, "llama-server takes the value as a word of its own, not after `=`", name)
    raise FlagError(spelled, _why_unknown(word, version), _closest(word, known))


def _why_unknown(word: str, version: str) -> str:
    """The reason for a word that this version does not have: with its range if another has it."""
    spans = [span for flag in load_flags() if (span := _span(flag, word))]
    if not spans:
        return "not a flag of llama-server" if word.startswith("-") else "a word that no flag takes"
    return f"llama-server has it {', and '.join(spans)}; this is {version}"


def _span(flag: Flag, word: str) -> str | None:
    """The versions in which a flag has this spelling, in words."""
    if word not in flag.names + flag.negative:
        return None
    own = (flag.renamed or {}).get(word, {})
    since, until = own.get("since", flag.since), own.get("until", flag.until)
    if since and until:
        return f"from xllamacpp {since} to {until}"
    return f"from xllamacpp {since} on" if since else f"up to xllamacpp {until}"


def _closest(word: str, known: Mapping[str, object]) -> str | None:
    return next(iter(get_close_matches(word, known, n=1, cutoff=0.6)), None)


def _supported(flag: Flag, spelled: str) -> None:
    """Raises :class:`FlagError` for a flag that cannot be carried out here."""
    if flag.unsupported is not None:
        raise FlagError(spelled, flag.unsupported)


class _Work:
    """Fields and origins while words are applied in order."""

    def __init__(self, version: str) -> None:
        self.version = version
        self.fields: dict[str, JsonValue] = {}
        self.origins: dict[str, str] = {}

    def apply(self, flag: Flag, value: JsonValue, spelled: str) -> None:
        """Set what the flag sets."""
        if flag.omit is not None and value == flag.omit:
            self._map(flag.field).pop(str(flag.key), None)
            return
        self._set(flag.field, flag.key, self._joined(flag, value), spelled)
        for also in flag.also:
            if also.applies(value, self.version):
                self._set(also.path, also.key, value if also.value is None else also.value, spelled)
        for path, least in (flag.at_least or {}).items():
            self._set(path, None, max(_number(self.fields.get(path, least)), _number(value)), spelled)
        if flag.mark is not None:
            self._set(SAMPLING_MARKS, None, _number(self.fields.get(SAMPLING_MARKS, 0)) | (1 << flag.mark), spelled)

    def _set(self, path: str, key: str | None, value: JsonValue, spelled: str) -> None:
        if key is not None:
            self._map(path)[key] = json.dumps(value)
        else:
            self.fields[path] = value
        self.origins[path] = spelled

    def _joined(self, flag: Flag, value: JsonValue) -> JsonValue:
        """``value`` after what earlier words gave, for a flag that collects."""
        before = self.fields.get(flag.field)
        if flag.type == "map" and isinstance(value, dict):
            return self._map(flag.field) | value
        if not flag.append or before is None:
            return value
        if isinstance(before, list) and isinstance(value, list):
            return [*before, *value[len(flag.prefix) :]]
        return f"{before}{flag.separator}{value}"

    def _map(self, path: str) -> dict[str, JsonValue]:
        """The mapping in a field, which starts from the server's own default."""
        held = self.fields.get(path)
        if not isinstance(held, dict):
            held = _as_map(server_defaults(self.version).get(path))
            self.fields[path] = held
        return held


def _as_map(value: JsonValue) -> dict[str, JsonValue]:
    return dict(value) if isinstance(value, dict) else {}


def _number(value: JsonValue) -> int:
    return value if isinstance(value, int) else 0
