"""Python reprs, as engines print their configuration, read into JSON trees; nothing is evaluated.

One pass from left to right in which every character is looked at a bounded number of times, whatever the text is.
What is there is kept; what breaks off is not kept as if it were whole, and is named.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from enum import Enum
from typing import Literal

from pydantic import JsonValue

DEEPEST = 60
"""How many containers may stand in one another; the text of what is deeper is kept as a string."""

LONGEST_TEXT = 200
"""Of a text that is kept because it cannot be read; a string that the engine printed is never shortened."""

MOST_NOTES = 20
MOST_NAMES = 5
MOST_DIGITS = 300
"""A number with more digits stays a string: reading it takes more than linear time, and JSON has no such number."""


@dataclass(frozen=True)
class Parsed:
    """What a repr says: top-level names to values, and in words what is missing. ``complete``: nothing is."""

    tree: dict[str, JsonValue]
    complete: bool
    missing: tuple[str, ...]


def parse(text: str, *, cut: bool = False) -> Parsed:
    """The repr at the beginning of a text: ``{...``, ``Name(...``, or ``a=1, b=2`` (also with spaces for commas).

    Where its last bracket closes, the rest of the text is ignored. Text that ends inside a bracket is known to be cut;
    ``a=1, b=2`` has none, and only the caller can know (``cut``): then ``b`` is not kept, it may go on.
    """
    reader = _Reader(text, cut=cut)
    return reader.result(reader.top())


def parse_fragment(text: str) -> Parsed:
    """The middle of a repr whose beginning is missing, from the first ``, name=`` on.

    Names before a bracket that was opened before the text began belong to a value whose name is missing: they are
    left out, and named.
    """
    reader = _Reader(text, cut=True, inside=True)
    reader.note("the beginning is missing")
    return reader.result(reader.sequence() if reader.resume() else {})


class _Gap(Enum):
    NOTHING = 0


_NOTHING: Literal[_Gap.NOTHING] = _Gap.NOTHING
_Read = JsonValue | Literal[_Gap.NOTHING]
"""A value, or nothing where none is whole."""

_ELLIPSIS = "..."
_OPENING, _CLOSING = "([{", ")]}"
_CLOSED_BY = dict(zip(_OPENING, _CLOSING, strict=True))

# Quantifiers are possessive: none of these patterns may go back, or reading would not be linear.
_EQUALS = r"[^\W\d]\w*+[ \t]*+=(?!=)"
_COLON = r"""(?:'[^'\\\n,]*+'|"[^"\\\n,]*+")\s*+:"""
_NAME = re.compile(_EQUALS)
_QUOTED_NAME = re.compile(_COLON)
_RESUME = re.compile(rf"(?:,\s*+|(?<=\s))(?={_EQUALS}|{_COLON})")
_CALL = re.compile(r"([^\W\d][\w.]*+)\(")
_SPACE = re.compile(r"\s*+")
_BETWEEN = re.compile(r"[\s,]*+")
_TAIL = re.compile(r"\s*+\Z")
_CLOSERS = re.compile(r"[)\]}]++")
_GOES_ON = re.compile(rf"\s*+,|\s++(?={_EQUALS})")
_BOUNDARY = re.compile(rf"\s*+(?:[,)\]}}]|\Z)|\s++{_EQUALS}")
_TOP_BOUNDARY = re.compile(r"[\s,)\]}]|\Z")
_NOTHING_SAID = re.compile(rf"\s*+(?=[,)\]}}])|\s++(?={_EQUALS})")

_RUN = re.compile(r"[^,\s()\[\]{}]++")
_KEY_RUN = re.compile(r"(?:[^,\s()\[\]{}:]++|:(?!\s))++")
_WORD_GAP = re.compile(rf"[ \t]++(?=[^\s,)\]}}])(?!{_EQUALS})")

_QUOTE = re.compile(r"[bB]?+['\"]")
_LITERAL = re.compile(r"""[bB]?+(?:'[^'\\]*+(?:\\.[^'\\]*+)*+'|"[^"\\]*+(?:\\.[^"\\]*+)*+")""", re.DOTALL)
_NEXT_PART = re.compile(r"[ \t]*+\n\s*+(?=[bB]?+['\"])")
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-7]{1,3}|.)", re.DOTALL)
_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "\n": ""}
_ESCAPES |= {char: char for char in "\\'\"/"}
_SURROGATE = re.compile("[\ud800-\udfff]")

_BRACKETS = re.compile(r"(?<!\w)['\"]|[()\[\]{}]")
_ANGLES = re.compile(r"(?<!\w)['\"]|->|[<>]")
_ANGLE = re.compile(r"<[^\W\d]")
_CLASS = re.compile(r"<class '([^']*)'>")
_MEMBER = re.compile(r"<[\w.]*\.(?:([\w|]+): |([A-Z][A-Z0-9_]*)>\Z)")
_ADDRESS = re.compile(r"(?: object)? at 0x[0-9A-Fa-f]*+[.…]*+")

_WORDS: dict[str, JsonValue] = {"True": True, "true": True, "False": False, "false": False, "None": None, "null": None}
_INTEGER = re.compile(r"[+-]?(?:0|[1-9]\d*+(?:_\d++)*+)", re.ASCII)
_FLOAT = re.compile(r"[+-]?(?:(?:\d++\.\d*+|\.\d++)(?:[eE][+-]?\d++)?+|\d++[eE][+-]\d++)", re.ASCII)
"""An exponent without a sign needs a point: no repr prints ``12e4``, a commit may begin like that."""

_LISTS = {"set", "frozenset", "deque", "array", "list", "tuple", "Size", "dict_keys", "dict_values"}
_DICTS = {"OrderedDict", "defaultdict", "Counter", "mappingproxy", "dict", "dict_items"}
_PATHS = {"PosixPath", "WindowsPath", "PurePosixPath", "PureWindowsPath", "Path"}
_SCALARS = {"SecretStr", "SecretBytes", "Decimal", "UUID", "bytearray", "str_", "bool_"}
_SCALARS |= {f"{kind}{bits}" for kind in ("int", "uint", "float") for bits in (8, 16, 32, 64)}
_TRANSPARENT = _LISTS | _DICTS | _PATHS | _SCALARS
"""Classes that only wrap a value: it is their last positional argument."""


class _Reader:
    """Where reading stands. ``cut``: the end is known to be missing; ``inside``: the beginning is."""

    def __init__(self, text: str, *, cut: bool, inside: bool = False) -> None:
        self._text, self._cut, self._inside = text, cut, inside
        self._at = 0
        self._depth = 0
        self._path: list[str | int] = []
        self._last = ""
        self._over = False
        self._stray = False
        self._left_out: list[str] = []
        self._notes: list[str] = []
        self._more_notes = 0

    def result(self, tree: dict[str, JsonValue]) -> Parsed:
        """What was read, with everything that is to be said about it."""
        notes = list(self._notes)
        if self._left_out:
            notes.append(f"left out, as parts of a value whose beginning is missing: {_listed(self._left_out)}")
        if self._more_notes:
            notes.append(f"and {self._more_notes} more such places")
        return Parsed(tree, not notes, tuple(notes))

    def note(self, words: str) -> None:
        """Say that something is missing."""
        if len(self._notes) < MOST_NOTES or self._over:
            self._notes.append(words)
        else:
            self._more_notes += 1

    def top(self) -> dict[str, JsonValue]:
        """The whole of a text that begins where its repr does."""
        self._skip_space()
        if _NAME.match(self._text, self._at) or _QUOTED_NAME.match(self._text, self._at):
            return self.sequence()
        found = self._value()
        if isinstance(found, dict):
            return found
        if not self._notes:
            self.note("no names with values are in this text")
        return {}

    def sequence(self) -> dict[str, JsonValue]:
        """``a=1, b=2`` without a bracket around it, or whose opening bracket is missing."""
        tree: dict[str, JsonValue] = {}
        while not self._over:
            comma = "," in self._skip(_BETWEEN)
            if self._ended():
                if self._cut or comma:
                    self._breaks_off()
                break
            if self._text[self._at] in _CLOSING:
                if not (self._inside and self._leaves(tree)):
                    break
            elif (name := self._name(quoted=True)) is not None:
                self._field(tree, name)
                if self._stray:
                    self._leave_out(tree, name)
            elif not self._goes_on_after(comma):
                break
        return tree

    def resume(self) -> bool:
        """Skip to the next name; false when there is none."""
        found = _RESUME.search(self._text, self._at)
        self._at = found.end() if found else len(self._text)
        return found is not None

    def _goes_on_after(self, comma: bool) -> bool:
        """What follows is no name: text behind the repr, or, after a comma, something that cannot be read."""
        if self._inside:
            return self.resume()
        if comma:
            self._stop()
        return False

    def _leaves(self, tree: dict[str, JsonValue]) -> bool:
        """Past brackets that were opened before the text began; whether the repr goes on behind them."""
        closers = self._skip(_CLOSERS)
        goes_on = _GOES_ON.match(self._text, self._at) is not None
        # One bracket at the very end closes the configuration itself: what was read are its names.
        if goes_on or len(closers) > 1:
            self._leave_out(tree)
        return goes_on

    def _leave_out(self, tree: dict[str, JsonValue], *names: str) -> None:
        self._left_out += [*tree, *names]
        self._stray = False
        tree.clear()

    # Where reading stands

    def _skip(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self._text, self._at)
        assert found is not None, "only patterns that match here, be it nothing"
        self._at = found.end()
        return found[0]

    def _skip_space(self) -> None:
        self._skip(_SPACE)

    def _ended(self) -> bool:
        return self._at >= len(self._text)

    def _breaks_off(self) -> Literal[_Gap.NOTHING]:
        self._end("breaks off")
        return _NOTHING

    def _stop(self) -> None:
        self._end("cannot be read on")

    def _end(self, how: str) -> None:
        if self._over:
            return
        self._over = True
        if where := self._where():
            self.note(f"{how} in `{where}`")
        else:
            self.note(f"{how} after `{_shortened(self._last)}`" if self._last else f"{how} at the beginning")

    def _where(self) -> str:
        """The path to what is being read; a place in a list only where something stands in it."""
        path = list(self._path)
        while path and isinstance(path[-1], int):
            path.pop()
        parts = [f"[{part}]" if isinstance(part, int) else f".{part}" for part in path]
        return _shortened("".join(parts).removeprefix("."))

    def _place(self) -> str:
        return f"`{where}`" if (where := self._where()) else "a value without a name"

    # Names and what they hold

    def _name(self, *, quoted: bool = False) -> str | None:
        found = _NAME.match(self._text, self._at)
        if found:
            self._at = found.end()
            return found[0][:-1].rstrip(" \t")
        found = _QUOTED_NAME.match(self._text, self._at) if quoted else None
        if found is None:
            return None
        self._at = found.end()
        return found[0][:-1].rstrip()[1:-1]

    def _field(self, fields: dict[str, JsonValue], name: str) -> None:
        self._path.append(name)
        if said := _NOTHING_SAID.match(self._text, self._at):
            self._at = said.end()
            found: _Read = ""
        else:
            found = self._delimited(self._value())
        self._path.pop()
        if found is _NOTHING:
            fields.pop(name, None)
        else:
            fields[name] = found
        if not self._path:
            self._last = name

    def _element(self, elements: list[JsonValue]) -> None:
        self._path.append(len(elements))
        found = self._delimited(self._value())
        self._path.pop()
        if found is not _NOTHING:
            elements.append(found)

    def _delimited(self, found: _Read) -> _Read:
        """What was read, if a value may end here; one that ends in the middle of something was misread."""
        boundary = _BOUNDARY if self._depth else _TOP_BOUNDARY
        if self._over or found is _NOTHING or boundary.match(self._text, self._at):
            return found
        self._stop()
        return found if isinstance(found, dict | list) else _NOTHING

    def _value(self, *, key: bool = False) -> _Read:
        self._skip_space()
        if self._ended():
            return self._breaks_off()
        if self._text[self._at] in _OPENING:
            return self._container("")
        if _QUOTE.match(self._text, self._at):
            return self._string()
        if _ANGLE.match(self._text, self._at):
            return self._angle()
        if call := _CALL.match(self._text, self._at):
            self._at = call.end() - 1
            return self._container(call[1])
        return self._word(key)

    # Containers

    def _container(self, name: str) -> _Read:
        """From its opening bracket on."""
        opening, start = self._text[self._at], self._at
        if self._depth >= DEEPEST:
            if not self._skip_enclosed(_BRACKETS, _OPENING):
                return self._breaks_off()
            self.note(f"{self._place()} is nested more than {DEEPEST} deep: only its text is kept")
            return _shortened(self._text[start : self._at])
        self._at += 1
        self._depth += 1
        found = self._braces() if opening == "{" else self._members(opening, name)
        self._depth -= 1
        return found

    def _more(self, close: str) -> bool:
        """Whether another member begins here; otherwise the container is closed, or reading is over."""
        if self._over:
            return False
        self._skip(_BETWEEN)
        if self._ended():
            self._breaks_off()
            return False
        if self._text[self._at] == close:
            self._at += 1
            return False
        if self._text[self._at] in _CLOSING:
            self._stop()
        return not self._over

    def _members(self, opening: str, name: str) -> _Read:
        """Of a list, a tuple, a parenthesis, or what a class is made of."""
        elements: list[JsonValue] = []
        fields: dict[str, JsonValue] = {}
        after = self._at
        while self._more(_CLOSED_BY[opening]):
            field = self._name() if opening == "(" else None
            if field is not None:
                self._field(fields, field)
            elif opening == "(" and self._text.startswith("**", self._at):
                self._spread(fields)
            else:
                self._element(elements)
            after = self._at
        if self._over and not elements and not fields:
            return _NOTHING
        if name:
            return _constructed(name, elements, fields, whole=not self._over)
        if fields:
            return _with_positional(elements, fields)
        alone = opening == "(" and len(elements) == 1 and not self._over and "," not in self._text[after : self._at]
        return elements[0] if alone else elements

    def _spread(self, fields: dict[str, JsonValue]) -> None:
        """``Namespace(**{'a-b': 1})``: names that are no identifiers."""
        self._at += 2
        found = self._delimited(self._value())
        if isinstance(found, dict):
            fields.update(found)

    def _braces(self) -> _Read:
        """A dict or a set; one member that broke off does not tell which."""
        fields: dict[str, JsonValue] = {}
        elements: list[JsonValue] = []
        while self._more("}"):
            start = self._at
            key = self._value(key=True)
            if self._over or key is _NOTHING:
                break
            name = key if isinstance(key, str) else _shortened(self._text[start : self._at])
            self._skip_space()
            if self._ended():
                self._breaks_off()
            elif self._text[self._at] == ":" and not elements:
                self._at += 1
                self._field(fields, name)
            elif not fields:
                elements += [found for found in [self._delimited(key)] if found is not _NOTHING]
            elif key != _ELLIPSIS:
                self._stop()
        if self._over and not fields and not elements:
            return _NOTHING
        return elements or fields

    # Scalars

    def _string(self) -> _Read:
        parts: list[str] = []
        while True:
            literal = _LITERAL.match(self._text, self._at)
            if literal is None:
                self._at = len(self._text)
                return self._breaks_off()
            self._at = literal.end()
            parts.append(_unquoted(literal[0]))
            # pprint writes a long string as several, one a line.
            more = _NEXT_PART.match(self._text, self._at) if self._depth else None
            if more is None:
                return "".join(parts)
            self._at = more.end()

    def _angle(self) -> _Read:
        start = self._at
        if not self._skip_enclosed(_ANGLES, "<"):
            return self._breaks_off()
        return _described(self._text[start : self._at])

    def _word(self, key: bool) -> _Read:
        """Anything without quotes, up to what ends a value; spaces and brackets may be part of it."""
        start = self._at
        run = _KEY_RUN if key else _RUN
        while True:
            if found := run.match(self._text, self._at):
                self._at = found.end()
            if not self._ended() and self._text[self._at] in _OPENING:
                if not self._skip_enclosed(_BRACKETS, _OPENING):
                    return self._breaks_off()
            elif gap := _WORD_GAP.match(self._text, self._at):
                self._at = gap.end()
            else:
                break
        word = self._text[start : self._at].rstrip()
        if (self._cut or self._depth) and _TAIL.match(self._text, self._at):
            return self._breaks_off()
        if word == _ELLIPSIS:
            self.note(f"{self._place()} was shortened where it was printed")
        # A quote without its other half: the text began inside a string, and so did what was read up to here.
        if self._inside and not self._depth and (word.count("'") % 2 or word.count('"') % 2):
            self._stray = True
            return _NOTHING
        return _scalar(word)

    def _skip_enclosed(self, tokens: re.Pattern[str], opening: str) -> bool:
        """Past the bracket here and what it encloses, strings included; false: it has no end."""
        level, at = 0, self._at
        while token := tokens.search(self._text, at):
            at = token.end()
            if token[0] in "'\"":
                literal = _LITERAL.match(self._text, token.start())
                if literal is None:
                    break
                at = literal.end()
            elif token[0] in opening:
                level += 1
            elif token[0] != "->":
                level -= 1
                if not level:
                    self._at = at
                    return True
        self._at = len(self._text)
        return False


def _constructed(name: str, elements: list[JsonValue], fields: dict[str, JsonValue], *, whole: bool) -> _Read:
    """``Name(...)`` without its name; what a class only wraps, without the class."""
    base = name.rpartition(".")[2]
    if base not in _TRANSPARENT or (fields and not elements):
        return _with_positional(elements, fields)
    if not elements:
        return [] if base in _LISTS else {}
    wrapped = elements[-1]
    if not whole and not isinstance(wrapped, dict | list):
        return _NOTHING
    return _from_pairs(wrapped) if base in _DICTS and isinstance(wrapped, list) else wrapped


def _with_positional(elements: list[JsonValue], fields: dict[str, JsonValue]) -> dict[str, JsonValue]:
    return {"args": elements, **fields} if elements else fields


def _from_pairs(pairs: list[JsonValue]) -> dict[str, JsonValue]:
    """A dict written as pairs; half a pair, where the text broke off, is none."""
    whole = (pair for pair in pairs if isinstance(pair, list) and len(pair) == 2)
    return {key if isinstance(key, str) else repr(key): value for key, value in whole}


def _described(text: str) -> str:
    """``<...>``: an enum's member and a class by name, an object without its address."""
    if found := _CLASS.fullmatch(text):
        return found[1]
    if found := _MEMBER.match(text):
        return found[1] or found[2]
    return _shortened(_ADDRESS.sub("", text))


def _scalar(word: str) -> JsonValue:
    """A word as what it stands for; infinities and what is no number stay words, for JSON has none."""
    if word in _WORDS:
        return _WORDS[word]
    if len(word) > MOST_DIGITS:
        return word
    if _INTEGER.fullmatch(word):
        return int(word)
    if _FLOAT.fullmatch(word) and math.isfinite(number := float(word)):
        return number
    return word


def _unquoted(literal: str) -> str:
    body = literal[literal[0] in "bB" :][1:-1]
    if "\\" in body:
        body = _ESCAPE.sub(_unescaped, body)
        if _SURROGATE.search(body):
            # JSON writes what is beyond 16 bits as a pair; one alone can be written nowhere.
            body = body.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return body


def _unescaped(escape: re.Match[str]) -> str:
    code = escape[1]
    if code in _ESCAPES:
        return _ESCAPES[code]
    if code[0] in "01234567":
        return chr(int(code, 8))
    if len(code) == 1 or (number := int(code[1:], 16)) > 0x10FFFF:
        return escape[0]
    return chr(number)


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}…"


def _listed(names: list[str]) -> str:
    shown = ", ".join(f"`{_shortened(name)}`" for name in names[:MOST_NAMES])
    return shown if len(names) <= MOST_NAMES else f"{shown} and {len(names) - MOST_NAMES} more"
