"""A shell script as words and operators. What a word means is not decided here."""

from __future__ import annotations

import re
from dataclasses import dataclass

MAX_NESTING = 40

_OPERATOR = re.compile(r"&&|\|\||;;&?|;&|&>>|&>|<<<|<<-|<<|>>|>\||<>|[<>]&|\|&|[;&|()<>\n]")
_SPECIAL = "@*#?$!-"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[0-9]+|[@*#?$!\-]")
_DEFAULT = re.compile(r":?[-=?+]")
_PLAIN = re.compile(r"[^\\'\"$`\s;&|()<>}]+")
_PLAIN_QUOTED = re.compile(r"[^\\\"$`}]+")
_SPACE = re.compile(r"(?:[ \t\r]|\\\n)+")
_ARRAY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")

REDIRECTIONS = ("<", ">", "&>")
"""What operators that redirect begin with."""


class ShellUnreadable(Exception):
    """This is no script that a shell would take, or one beyond measure."""


@dataclass(frozen=True)
class Literal:
    """Text that stands for itself."""

    text: str
    quoted: bool


@dataclass(frozen=True)
class Parameter:
    """``$NAME`` or ``${NAME:-default}``; ``operator`` is empty without a default."""

    name: str
    operator: str
    default: tuple[Part, ...]
    quoted: bool
    source: str


@dataclass(frozen=True)
class Unknowable:
    """What only a running shell knows: ``$(nproc)``."""

    source: str
    why: str
    quoted: bool


Part = Literal | Parameter | Unknowable


@dataclass(frozen=True)
class Word:
    """One word before it is expanded."""

    parts: tuple[Part, ...]
    source: str

    @property
    def bare(self) -> str:
        """Its text, when nothing in it is quoted or expanded; empty otherwise."""
        texts = [part.text for part in self.parts if isinstance(part, Literal) and not part.quoted]
        return "".join(texts) if len(texts) == len(self.parts) else ""


@dataclass(frozen=True)
class Operator:
    """``;``, ``&&``, a line break, ``>``."""

    text: str


Token = Word | Operator


def lex(script: str) -> list[Token]:
    """The script's words and operators, without comments and bodies of here-documents."""
    return _Lexer(script).tokens()


class _Lexer:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.nesting = 0
        self.delimiters: list[str] = []

    def tokens(self) -> list[Token]:
        tokens: list[Token] = []
        while self.at < len(self.text):
            if space := _SPACE.match(self.text, self.at):
                self.at = space.end()
            elif self.text[self.at] == "#":
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
            elif operator := self._operator():
                self._add_operator(operator, tokens)
            else:
                self._add_word(tokens)
        return tokens

    def _operator(self) -> str:
        match = _OPERATOR.match(self.text, self.at)
        if match is None or self.text.startswith(("<(", ">("), self.at):
            return ""
        return match[0]

    def _add_operator(self, operator: str, tokens: list[Token]) -> None:
        self.at += len(operator)
        if operator == "\n":
            self._skip_documents()
        tokens.append(Operator(operator))

    def _add_word(self, tokens: list[Token]) -> None:
        start = self.at
        word = Word(tuple(self._parts(" \t\r\n;&|()<>", quoted=False)), self.text[start : self.at])
        if self.at == start:
            raise ShellUnreadable("a character out of place")
        is_number_of_file = word.bare.isdigit() and self.text[self.at : self.at + 1] in ("<", ">")
        if is_number_of_file:
            return
        if tokens and tokens[-1] in (Operator("<<"), Operator("<<-")):
            self.delimiters.append("".join(part.text for part in word.parts if isinstance(part, Literal)))
        tokens.append(word)

    def _skip_documents(self) -> None:
        """Go over the bodies of the here-documents that the line before announced."""
        for delimiter in self.delimiters:
            while self.at < len(self.text):
                end = self.text.find("\n", self.at)
                end = len(self.text) if end < 0 else end
                line = self.text[self.at : end]
                self.at = min(end + 1, len(self.text))
                if line.strip() == delimiter:
                    break
        self.delimiters = []

    # --- parts of a word -------------------------------------------------------------------------------------------

    def _parts(self, stop: str, *, quoted: bool) -> list[Part]:
        """Parts up to a character of ``stop``, or to the end."""
        self.nesting += 1
        if self.nesting > MAX_NESTING:
            raise ShellUnreadable("nested too deep")
        parts: list[Part] = []
        while self.at < len(self.text) and (self.text[self.at] not in stop or self._opens_process()):
            if self._is_array(parts, stop):
                break
            parts.extend(self._part(quoted=quoted))
        if self._is_array(parts, stop):
            parts.append(self._bracketed(0, "(", ")", "an array", quoted=False))
        self.nesting -= 1
        return parts

    def _opens_process(self) -> bool:
        return self.text.startswith(("<(", ">("), self.at)

    def _is_array(self, parts: list[Part], stop: str) -> bool:
        """Whether ``NAME=(`` has just been read."""
        last = parts[-1] if len(parts) == 1 else None
        opens = "(" in stop and self.text.startswith("(", self.at)
        return opens and isinstance(last, Literal) and not last.quoted and bool(_ARRAY.fullmatch(last.text))

    def _part(self, *, quoted: bool) -> list[Part]:
        char = self.text[self.at]
        if char == "\\":
            return self._escape(quoted=quoted)
        if char == "$":
            return [self._dollar(quoted=quoted)]
        if char == "`":
            return [self._closed(1, "`", "what a command prints", quoted=quoted)]
        if char == '"' and not quoted:
            return self._double()
        if char == "'" and not quoted:
            return [self._single()]
        if not quoted and self._opens_process():
            return [self._bracketed(1, "(", ")", "the output of a command as a file", quoted=False)]
        plain = (_PLAIN_QUOTED if quoted else _PLAIN).match(self.text, self.at)
        end = plain.end() if plain else self.at + 1
        text, self.at = self.text[self.at : end], end
        return [Literal(text, quoted)]

    def _escape(self, *, quoted: bool) -> list[Part]:
        following = self.text[self.at + 1 : self.at + 2]
        self.at += 2
        if following == "\n":
            return []
        if quoted and following not in '$`"\\':
            return [Literal(f"\\{following}", quoted)]
        return [Literal(following or "\\", quoted=True)]

    def _single(self) -> Literal:
        end = self.text.find("'", self.at + 1)
        if end < 0:
            raise ShellUnreadable("a quote (') is not closed")
        text, self.at = self.text[self.at + 1 : end], end + 1
        return Literal(text, quoted=True)

    def _double(self) -> list[Part]:
        self.at += 1
        parts = self._parts('"', quoted=True)
        if self.at >= len(self.text):
            raise ShellUnreadable('a quote (") is not closed')
        self.at += 1
        return [Literal("", quoted=True), *parts]

    def _dollar(self, *, quoted: bool) -> Part:
        if self.text.startswith("$((", self.at):
            return self._bracketed(1, "(", ")", "arithmetic", quoted=quoted)
        if self.text.startswith("$(", self.at):
            return self._bracketed(1, "(", ")", "what a command prints", quoted=quoted)
        if self.text.startswith("${", self.at):
            return self._braced(quoted=quoted)
        if self.text.startswith("$'", self.at) and not quoted:
            return self._closed(2, "'", "a quoted text with escapes", quoted=True)
        name = _NAME.match(self.text, self.at + 1)
        if name is None:
            self.at += 1
            return Literal("$", quoted=True)
        end = self.at + 2 if name[0].isdigit() else name.end()
        source, self.at = self.text[self.at : end], end
        return Parameter(source[1:], "", (), quoted, source)

    def _braced(self, *, quoted: bool) -> Part:
        start = self.at
        name = _NAME.match(self.text, start + 2)
        operator = _DEFAULT.match(self.text, name.end()) if name else None
        if name is None or (operator is None and not self.text.startswith("}", name.end())):
            return self._bracketed(1, "{", "}", "a transformed variable", quoted=quoted)
        self.at = operator.end() if operator else name.end()
        default = self._parts("}", quoted=quoted) if operator else []
        if self.at >= len(self.text):
            raise ShellUnreadable("${ is not closed")
        self.at += 1
        return Parameter(name[0], operator[0] if operator else "", tuple(default), quoted, self.text[start : self.at])

    def _closed(self, skip: int, end: str, why: str, *, quoted: bool) -> Unknowable:
        """Everything up to the next ``end`` that no backslash precedes."""
        match = re.compile(rf"(?:[^\\{end}]|\\.)*{end}", re.DOTALL).match(self.text, self.at + skip)
        if match is None:
            raise ShellUnreadable(f"{end} is not closed")
        source, self.at = self.text[self.at : match.end()], match.end()
        return Unknowable(source, why, quoted)

    def _bracketed(self, skip: int, opening: str, closing: str, why: str, *, quoted: bool) -> Unknowable:
        """Everything up to the bracket that closes the one ``skip`` characters on."""
        depth = 0
        pattern = re.compile(rf"\\.|'[^']*'|[{re.escape(opening + closing)}]", re.DOTALL)
        for match in pattern.finditer(self.text, self.at + skip):
            depth += (match[0] == opening) - (match[0] == closing)
            if depth == 0:
                source, self.at = self.text[self.at : match.end()], match.end()
                return Unknowable(source, why, quoted)
        raise ShellUnreadable(f"{opening} is not closed")
