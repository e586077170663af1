"""llama-server's flags and variables, translated to fields of xllamacpp's ``CommonParams`` and back.

The table is ``knowledge/flags.toml``; the first lines of that file say what each key means. Nothing here
starts an engine. A flag whose value is a file's text (``--chat-template-file``) is read while translating.
"""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from engdiff.knowledge.versions import at_version, holds

JsonValue: TypeAlias = "dict[str, JsonValue] | list[JsonValue] | str | int | float | bool | None"
Kind = Literal[
    "switch", "bool", "onoff", "int", "float", "reciprocal", "str", "enum", "enums",
    "list", "joined", "numbers", "file", "map", "lora",
]  # fmt: skip

TRUE_WORDS: Final = ("on", "enabled", "true", "1")
FALSE_WORDS: Final = ("off", "disabled", "false", "0")
SAMPLING_MARKS: Final = "sampling.user_sampling_config"
WITHOUT_WORD: Final = ("switch", "bool")
TUPLES: Final = ("names", "negative", "prefix", "refuse")
INTEGER: Final = re.compile(r"\s*[+-]?\d+")
INT32: Final = (-(2**31), 2**31 - 1)


class FlagError(ValueError):
    """A word that cannot be translated: ``argument`` as the user wrote it, ``reason``, and the closest known flag."""

    def __init__(self, argument: str, reason: str, suggestion: str | None = None) -> None:
        super().__init__(f"{argument}: {reason}" + (f" (did you mean {suggestion}?)" if suggestion else ""))
        self.argument = argument
        self.reason = reason
        self.suggestion = suggestion


@dataclass(frozen=True)
class Also:
    """Another field that a flag sets: to ``value`` (``None``: to the flag's own), only ``when`` that is the flag's."""

    path: str
    key: str | None = None
    value: JsonValue = None
    when: JsonValue = None
    since: str | None = None
    until: str | None = None

    def applies(self, value: JsonValue, version: str) -> bool:
        """Whether it is set too, for this value of the flag at this version."""
        return (self.when is None or self.when == value) and holds(version, self.since, self.until)


@dataclass(frozen=True)
class Flag:
    """One flag of llama-server over a range of versions; ``at`` narrows it to what one version has."""

    names: tuple[str, ...]
    type: Kind
    negative: tuple[str, ...] = ()
    env: Any = None
    field: Any = None
    values: Mapping[str, JsonValue] | None = None
    also: tuple[Also, ...] = ()
    at_least: Mapping[str, int] | None = None
    on: JsonValue = True
    inverted: bool = False
    key: str | None = None
    omit: str | None = None
    minimum: float | None = None
    maximum: float | None = None
    floor: float | None = None
    refuse: tuple[int, ...] = ()
    unsigned: bool = False
    whole: bool = True
    factor: int = 1
    length: int | None = None
    most: int | None = None
    fill: float = 0
    broadcast: bool = False
    separator: str = ","
    prefix: tuple[str, ...] = ()
    append: bool = False
    scaled: bool = False
    directory: bool = False
    mark: int | None = None
    inverse: bool = True
    unsupported: str | None = None
    renamed: Mapping[str, Mapping[str, str]] | None = None
    since: str | None = None
    until: str | None = None

    def at(self, version: str) -> Flag | None:
        """This flag as ``version`` has it: one field, one variable, its spellings; ``None`` if it has none."""
        if not holds(version, self.since, self.until):
            return None
        names = self._spellings(self.names, version)
        if not names:
            return None
        return replace(
            self,
            names=names,
            negative=self._spellings(self.negative, version),
            env=at_version(self.env, version, "name"),
            field=at_version(self.field, version, "path"),
            also=tuple(a for a in self.also if holds(version, a.since, a.until)),
        )

    def _spellings(self, spelled: tuple[str, ...], version: str) -> tuple[str, ...]:
        ranges = {name: (own.get("since"), own.get("until")) for name, own in (self.renamed or {}).items()}
        return tuple(n for n in spelled if holds(version, *ranges.get(n, (None, None))))

    @property
    def takes_word(self) -> bool:
        """Whether a value follows the flag. Unsupported ones never get as far as reading one."""
        return self.type not in WITHOUT_WORD


@dataclass(frozen=True)
class Translation:
    """Dotted ``CommonParams`` paths with their values (enum members by name), and the word that set each."""

    fields: dict[str, JsonValue]
    origins: dict[str, str]


# ---- the table


@cache
def _table(name: str) -> dict[str, Any]:
    resource = files("engdiff.engines.llamacpp") / "knowledge" / name
    return tomllib.loads(resource.read_text(encoding="utf-8"))


@cache
def load_flags() -> tuple[Flag, ...]:
    """All flags of all versions, in the order of the file."""
    return tuple(_flag(row) for row in _table("flags.toml")["flag"])


def _flag(row: Mapping[str, Any]) -> Flag:
    """A row of the table as a flag: TOML arrays become tuples."""
    fixed: dict[str, Any] = {k: tuple(v) if k in TUPLES else v for k, v in row.items()}
    fixed["also"] = tuple(Also(**a) for a in row.get("also", ()))
    fixed.setdefault("type", "str")
    return Flag(**fixed)


@cache
def _at(version: str) -> tuple[Flag, ...]:
    """The flags that one version has."""
    return tuple(narrowed for flag in load_flags() if (narrowed := flag.at(version)))


@cache
def _by_word(version: str) -> dict[str, tuple[Flag, bool]]:
    """Each spelling of one version to its flag, and whether it is the positive one."""
    words = {name: (flag, True) for flag in _at(version) for name in flag.names}
    return words | {name: (flag, False) for flag in _at(version) for name in flag.negative}


def server_defaults(version: str) -> dict[str, JsonValue]:
    """Fields where llama-server starts from another value than ``CommonParams`` does, at one version."""
    rows = _table("server_defaults.toml")["default"]
    return {row["field"]: row["value"] for row in rows if holds(version, row.get("since"), row.get("until"))}


# ---- words to fields


def translate(args: Sequence[str], environ: Mapping[str, str], version: str) -> Translation:
    """What llama-server of this version would set for these words and variables; words override variables.

    Raises :class:`FlagError` for the first word or variable that it cannot carry out.
    """
    work = _Work(version)
    for flag in _at(version):
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
        return _choice(flag, positive=False), no
    if flag.env not in environ:
        return None
    text = environ[flag.env]
    _supported(flag, flag.env)
    if flag.type == "switch":
        return (flag.on, flag.env) if text in TRUE_WORDS else None
    return _parse(flag, text, flag.env), flag.env


def _from_words(args: Sequence[str], version: str) -> Iterator[tuple[Flag, JsonValue, str]]:
    """Each flag on the command line with its value and spelling, in order."""
    words = iter(args)
    for spelled in words:
        flag, positive = _find(spelled, version)
        _supported(flag, spelled)
        if not flag.takes_word:
            yield flag, flag.on if flag.type == "switch" else _choice(flag, positive=positive), spelled
            continue
        text = next(words, None)
        if text is None:
            raise FlagError(spelled, "a value must follow it")
        yield flag, _parse(flag, text, spelled), spelled


def _find(spelled: str, version: str) -> tuple[Flag, bool]:
    """The flag of one word, read as llama-server reads it: in a long flag ``_`` is ``-``."""
    word = spelled.replace("_", "-") if spelled.startswith("--") else spelled
    known = _by_word(version)
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


def _choice(flag: Flag, *, positive: bool) -> JsonValue:
    """What a flag with two spellings sets for yes and for no."""
    if flag.values is not None:
        return flag.values["yes" if positive else "no"]
    return positive is not flag.inverted


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


# ---- one value


def _parse(flag: Flag, text: str, spelled: str) -> JsonValue:
    """The value of one word. Raises :class:`FlagError`."""
    try:
        return _PARSERS[flag.type](flag, text)
    except OSError as error:
        raise FlagError(spelled, f"{text} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise FlagError(spelled, str(error)) from None


def _truth(flag: Flag, text: str) -> JsonValue:
    if text in TRUE_WORDS + FALSE_WORDS:
        return _choice(flag, positive=text in TRUE_WORDS)
    raise ValueError(f"`{text}` is neither of {', '.join(TRUE_WORDS)} nor of {', '.join(FALSE_WORDS)}")


def _integer(flag: Flag, text: str) -> JsonValue:
    if flag.values and text in flag.values:
        return flag.values[text]
    if not INTEGER.fullmatch(text):
        also = f", nor one of {', '.join(flag.values)}" if flag.values else ""
        raise ValueError(f"`{text}` is not an integer{also}")
    value = int(text)
    low, high = (-1, 2**32 - 1) if flag.unsigned else INT32
    if not low <= value <= high:
        raise ValueError(f"{value} is out of range ({low} to {high})")
    _bounded(flag, value)
    return value % 2**32 if flag.unsigned else value * flag.factor


def _bounded(flag: Flag, value: float) -> None:
    if flag.minimum is not None and value < flag.minimum:
        raise ValueError(f"{value:g} is below {flag.minimum:g}, the least that is taken here")
    if flag.maximum is not None and value > flag.maximum:
        raise ValueError(f"{value:g} is above {flag.maximum:g}, the most that is taken")
    if value in flag.refuse:
        raise ValueError(f"{value:g} is not taken")


def _real(flag: Flag, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise ValueError(f"`{text}` is not a number") from None
    if not math.isfinite(value):
        raise ValueError(f"`{text}` is not a finite number")
    _bounded(flag, value)
    return value if flag.floor is None else max(flag.floor, value)


def _reciprocal(flag: Flag, text: str) -> JsonValue:
    value = _real(flag, text)
    if not value or not math.isfinite(1 / value):
        raise ValueError(f"{text} has no reciprocal")
    return 1 / value


def _text(flag: Flag, text: str) -> JsonValue:
    return f"{text.rstrip('/')}/" if flag.directory and text else text


def _member(flag: Flag, text: str) -> JsonValue:
    words = flag.values or {}
    if text not in words:
        raise ValueError(f"`{text}` is not one of {', '.join(word or '(empty)' for word in words)}")
    return words[text]


def _members(flag: Flag, text: str) -> JsonValue:
    return [*flag.prefix, *(_member(flag, word) for word in text.split(flag.separator))]


def _split(flag: Flag, text: str) -> JsonValue:
    if not flag.separator:
        return [text]
    found: list[JsonValue] = [word for part in text.split(flag.separator) if (word := part.strip())]
    if not found:
        raise ValueError("at least one value is needed")
    return found


def _numbers(flag: Flag, text: str) -> JsonValue:
    given = [_real(flag, word) for word in re.split(r"[,/]+", text)]
    if flag.whole and any(value != int(value) for value in given):
        raise ValueError(f"`{text}` holds a number that is not whole")
    if flag.most is not None and len(given) > flag.most:
        raise ValueError(f"{len(given)} numbers are more than the {flag.most} that are taken")
    rest = given[0] if flag.broadcast and len(given) == 1 else flag.fill
    padded = given + [rest] * ((flag.length or 0) - len(given))
    return [int(value) * flag.factor for value in padded] if flag.whole else [float(value) for value in padded]


def _file_text(_flag: Flag, text: str) -> JsonValue:
    return Path(text).read_text(encoding="utf-8")


def _file_lines(_flag: Flag, text: str) -> JsonValue:
    lines = Path(text).read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def _mapping(_flag: Flag, text: str) -> JsonValue:
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error}") from None
    if not isinstance(data, dict):
        raise ValueError("a JSON object is needed")  # noqa: TRY004 - what the user wrote is wrong, not a type of ours
    return {key: json.dumps(value) for key, value in data.items()}


def _adapters(flag: Flag, text: str) -> JsonValue:
    """Adapters as ``{path, scale}``; with a scale where the flag takes one (``path:scale``)."""
    return [_adapter(part, scaled=flag.scaled) for part in text.split(flag.separator)]


def _adapter(part: str, *, scaled: bool) -> dict[str, JsonValue]:
    path, _, scale = part.rpartition(":") if scaled else (part, "", "1")
    if not path:
        raise ValueError(f"`{part}` is not PATH:SCALE" if scaled else "a path is needed")
    try:
        return {"path": path, "scale": float(scale)}
    except ValueError:
        raise ValueError(f"`{scale}` is not a number") from None


_PARSERS: Final[Mapping[str, Callable[[Flag, str], JsonValue]]] = {
    "bool": _truth,
    "onoff": _truth,
    "int": _integer,
    "float": _real,
    "reciprocal": _reciprocal,
    "str": _text,
    "joined": _text,
    "enum": _member,
    "enums": _members,
    "list": _split,
    "numbers": _numbers,
    "file": lambda flag, text: _file_lines(flag, text) if flag.append else _file_text(flag, text),
    "map": _mapping,
    "lora": _adapters,
}


# ---- fields to words


def flag_for(field: str, version: str) -> Flag | None:
    """The flag of this version that sets a field, narrowed to the version; ``None`` if there is none."""
    wanted = (f for f in _at(version) if f.field == field and f.inverse and f.key is None and f.unsupported is None)
    return next(wanted, None)


def render(flag: Flag, value: JsonValue) -> list[str]:
    """Command-line words that make llama-server set the field to ``value``; none if no word can."""
    if flag.type == "switch":
        return [flag.names[0]] if value == flag.on else []
    if flag.type == "bool":
        return _bool_words(flag, value)
    text = _render_text(flag, value)
    return [] if text is None else [flag.names[0], text]


def render_env(flag: Flag, value: JsonValue) -> tuple[str, str] | None:
    """The variable and its text that make llama-server set the field to ``value``; ``None`` if none can."""
    if not isinstance(flag.env, str):
        return None
    if flag.type == "switch":
        return (flag.env, "1") if value == flag.on else None
    text = _render_text(flag, value)
    return None if text is None else (flag.env, text)


def _bool_words(flag: Flag, value: JsonValue) -> list[str]:
    """The long spelling for yes or no; none if the flag has no such spelling."""
    for positive, spelled in ((True, flag.names), (False, flag.negative)):
        if spelled and _same(_choice(flag, positive=positive), value):
            return [next((n for n in spelled if n.startswith("--")), spelled[0])]
    return []


def _same(one: JsonValue, other: JsonValue) -> bool:
    """Equal, and of one type: ``1`` is not ``True``."""
    return one == other and type(one) is type(other)


def _render_text(flag: Flag, value: JsonValue) -> str | None:
    """The word that is read back as ``value``: tried, so that what cannot be written is never offered."""
    try:
        text = _RENDERERS.get(flag.type, _plain)(flag, value)
        return text if text is not None and _PARSERS[flag.type](flag, text) == value else None
    except (TypeError, ValueError, OSError, IndexError):
        return None


def _plain(flag: Flag, value: JsonValue) -> str | None:
    word = _word(flag, value)
    if word is not None:
        return word
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return None
    return str(value // flag.factor if isinstance(value, int) else value)


def _word(flag: Flag, value: JsonValue) -> str | None:
    """The first word of the flag's list that stands for ``value``."""
    return next((word for word, means in (flag.values or {}).items() if _same(means, value)), None)


def _on_off(flag: Flag, value: JsonValue) -> str | None:
    """``on`` or ``off``, whichever sets the field to ``value``."""
    words = ((True, TRUE_WORDS[0]), (False, FALSE_WORDS[0]))
    return next((word for yes, word in words if _same(_choice(flag, positive=yes), value)), None)


def _unreciprocal(_flag: Flag, value: JsonValue) -> str | None:
    return repr(1 / value) if isinstance(value, (int, float)) and not isinstance(value, bool) and value else None


def _join(flag: Flag, value: JsonValue) -> str | None:
    if not isinstance(value, list):
        return None
    if flag.type == "enums":
        return flag.separator.join(str(_word(flag, v)) for v in value[len(flag.prefix) :])
    return (flag.separator or "\0").join(str(v) for v in value)


def _join_numbers(flag: Flag, value: JsonValue) -> str | None:
    if not isinstance(value, list):
        return None
    numbers = [v for v in value if isinstance(v, (int, float))]
    if flag.broadcast and len(set(numbers)) == 1:
        numbers = numbers[:1]
    while len(numbers) > 1 and flag.length and numbers[-1] == flag.fill * flag.factor:
        numbers.pop()
    return ",".join(str(v // flag.factor if flag.whole else float(v)) for v in numbers)


def _join_map(_flag: Flag, value: JsonValue) -> str | None:
    return json.dumps({k: json.loads(str(v)) for k, v in value.items()}) if isinstance(value, dict) else None


def _join_adapters(flag: Flag, value: JsonValue) -> str | None:
    if not isinstance(value, list):
        return None
    parts = [f"{a['path']}:{a['scale']}" if flag.scaled else str(a["path"]) for a in value if isinstance(a, dict)]
    return flag.separator.join(parts)


_RENDERERS: Final[Mapping[str, Callable[[Flag, JsonValue], str | None]]] = {
    "bool": _on_off,
    "onoff": _on_off,
    "enum": _word,
    "enums": _join,
    "list": _join,
    "numbers": _join_numbers,
    "reciprocal": _unreciprocal,
    "file": lambda _flag, _value: None,
    "map": _join_map,
    "lora": _join_adapters,
}
