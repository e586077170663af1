"""What a shell's variables are at one place of a script, and words expanded with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from engdiff.deployments.shell_lexer import Literal, Parameter, Part, ShellUnreadable, Unknowable, Word

MAX_LENGTH = 131_072
"""Linux takes no longer word in a command."""

MAX_TOTAL = 6_000_000
"""Characters that one script may expand to: more than Linux takes."""


@dataclass
class Scope:
    """Variables: ``values`` are known, ``unknown`` have a reason, ``exported`` are given to commands.

    ``elsewhere`` says where variables may come from that are not in the file (``env_file .env``); ``positional``
    are ``$0``, ``$1``, … or ``None`` where they are not known.
    """

    values: dict[str, str]
    unknown: dict[str, str]
    elsewhere: tuple[str, ...] = ()
    positional: tuple[str, ...] | None = None
    exported: set[str] = field(default_factory=set)
    room: int = MAX_TOTAL

    def set(self, name: str, value: str) -> None:
        """Give a variable a value."""
        self.values[name] = value
        self.unknown.pop(name, None)

    def forget(self, name: str, why: str) -> None:
        """From here on the variable's value is not known."""
        self.values.pop(name, None)
        self.unknown[name] = why


@dataclass
class Expanded:
    """Words, and reasons for what in them is not known and stays as it was written."""

    words: list[str]
    unknown: list[str]


def expand(words: Sequence[Word], scope: Scope) -> Expanded:
    """Words of a command."""
    out = Expanded([], [])
    for word in words:
        _Fields(scope, out).add(word.parts)
    return out


def expand_text(parts: Sequence[Part], scope: Scope) -> tuple[str, list[str]]:
    """The value of an assignment: never split into several words."""
    out = Expanded([], [])
    _Fields(scope, out, split=False).add(parts)
    return "".join(out.words), out.unknown


@dataclass
class _Fields:
    """Adds the words that one word becomes."""

    scope: Scope
    out: Expanded
    split: bool = True
    current: list[str] | None = None

    def add(self, parts: Sequence[Part]) -> None:
        for part in parts:
            self._part(part)
        self._finish()

    def _part(self, part: Part) -> None:
        if isinstance(part, Literal):
            self._append(part.text)
        elif isinstance(part, Unknowable):
            self.out.unknown.append(f"`{part.source}`: {part.why}")
            self._append(part.source)
        elif part.name in ("@", "*") and self.scope.positional is not None and not part.operator:
            self._arguments(part, self.scope.positional[1:])
        else:
            self._value(part)

    def _value(self, part: Parameter) -> None:
        value, reasons = resolve(part, self.scope)
        self.out.unknown.extend(reasons)
        if value is None:
            self._append(part.source)
        elif part.quoted or not self.split:
            self._append(value)
        else:
            self._fields(value)

    def _arguments(self, part: Parameter, arguments: Sequence[str]) -> None:
        if not self.split or (part.name == "*" and part.quoted):
            self._append(" ".join(arguments))
            return
        for n, argument in enumerate(arguments):
            if n:
                self._finish()
            if part.quoted:
                self._append(argument)
            else:
                self._fields(argument)
        if not arguments and self.current == [""]:
            self.current = None  # "$@" without arguments is no word, not an empty one

    def _fields(self, value: str) -> None:
        """An unquoted value: split at white space."""
        pieces = value.split()
        if value[:1].isspace():
            self._finish()
        for n, piece in enumerate(pieces):
            if n:
                self._finish()
            self._append(piece)
        if pieces and value[-1:].isspace():
            self._finish()

    def _append(self, text: str) -> None:
        self.current = self.current or []
        self.current.append(text)
        self.scope.room -= len(text) + 1
        if self.scope.room < 0:
            raise ShellUnreadable("it expands to more than Linux takes")

    def _finish(self) -> None:
        if self.current is None:
            return
        word = "".join(self.current)
        self.current = None
        if len(word) > MAX_LENGTH:
            raise ShellUnreadable("it expands to a word longer than Linux takes")
        self.out.words.append(word)


def resolve(part: Parameter, scope: Scope) -> tuple[str | None, list[str]]:
    """The value of ``$NAME`` or ``${NAME:-default}``; ``None`` where it is not known.

    The list says why it is not, or on what terms it is.
    """
    name = part.name
    if why := scope.unknown.get(name):
        return None, [f"`{part.source}`: {why}"]
    value = _positional(name, scope) if name.isdigit() else scope.values.get(name)
    if value is None and not (name[0].isalpha() or name[0] == "_"):
        return None, [f"`{part.source}`: known only to the running shell"]
    operator = part.operator
    is_set = value is not None and (bool(value) or not operator.startswith(":"))
    if operator.endswith("+"):
        return expand_text(part.default, scope) if is_set else ("", _terms(part, scope.elsewhere))
    if is_set:
        return value, []
    if operator.endswith(("-", "=")):
        text, reasons = expand_text(part.default, scope)
        if operator.endswith("=") and not reasons:
            scope.set(name, text)
        return text, [*reasons, *_terms(part, scope.elsewhere)]
    return None, [f"`{part.source}`: not set in this file"]


def _positional(name: str, scope: Scope) -> str | None:
    if scope.positional is None:
        return None
    at = int(name) if len(name) < 6 else len(scope.positional)
    return scope.positional[at] if at < len(scope.positional) else ""


def _terms(part: Parameter, elsewhere: Sequence[str]) -> list[str]:
    """That a default was used although the variable may be set in a place that was not read."""
    return [f"`{part.source}`: taken as not set, which {elsewhere[0]} may change"] if elsewhere else []


def scope_of(variables: Mapping[str, str], unknown: Mapping[str, str], positional: tuple[str, ...] | None) -> Scope:
    """The scope at the start of a container's script."""
    elsewhere = tuple(name for name in unknown if " " in name)
    named = {name: why for name, why in unknown.items() if " " not in name}
    return Scope(dict(variables), named, elsewhere, positional, set(variables) | set(named))
