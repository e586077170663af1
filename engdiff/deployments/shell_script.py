"""The simple commands of a shell script, in order. What decides or repeats is named as unknown, never followed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from engdiff.deployments.shell_lexer import REDIRECTIONS, Literal, Operator, Token, Word, lex
from engdiff.deployments.shell_scope import Scope, expand, expand_text

_CLOSERS = {
    "if": "fi",
    "for": "done",
    "while": "done",
    "until": "done",
    "select": "done",
    "case": "esac",
    "{": "}",
    "[[": "]]",
}
_KIND = {"if": "an `if`", "case": "a `case`", "{": "a group", "(": "a subshell", "[[": "a test", "f": "a function"}
_CONTINUES = ("then", "do", "else", "elif", "!", "if", "while", "until", "{", "time")
"""Words after which a command begins."""

_TESTS = ("[", "[[", "test", "command", "which", "grep", "type")
_ASSIGNMENT = re.compile(r"(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?P<plus>\+?)=")
_ASSIGNED_INSIDE = re.compile(
    r"(?:\b(?:for|read|export|select)\s+|(?<![\w-]))([A-Za-z_][A-Za-z0-9_]*)(?=\+?=|\s+in\b|\s*$)"
)
_DECLARES = ("export", "declare", "readonly", "typeset", "local")


@dataclass(frozen=True)
class Simple:
    """One simple command: its words, the variables it is given, and what of it is not known.

    ``words`` is empty for a part of a script that was not followed; ``unknown`` then says which.
    """

    words: tuple[str, ...]
    variables: dict[str, str]
    unknown: tuple[str, ...] = ()
    unknown_variables: dict[str, str] = field(default_factory=dict)


def simple_commands(script: str, scope: Scope) -> Iterator[Simple]:
    """The script's simple commands. Raises :class:`~engdiff.deployments.shell_lexer.ShellUnreadable`."""
    return _Script(lex(script), scope).run()


class _Script:
    def __init__(self, tokens: list[Token], scope: Scope) -> None:
        self.tokens = tokens
        self.scope = scope
        self.at = 0
        self.conditional = False
        self.was_test = False

    def run(self) -> Iterator[Simple]:
        """Every command up to one that replaces or ends the shell."""
        while self.at < len(self.tokens):
            token = self.tokens[self.at]
            if isinstance(token, Operator) and token.text != "(" and not token.text.startswith(REDIRECTIONS):
                self._separator(token.text)
                self.at += 1
            elif isinstance(token, Word) and token.bare in ("!", "time"):
                self.at += 1
            elif kind := self._compound(token):
                yield from self._skip(kind)
            else:
                simple = self._simple()
                if simple is not None:
                    yield simple
                    if simple.words[0] in ("exec", "exit") and not self.conditional:
                        return

    def _separator(self, operator: str) -> None:
        """A command after ``||``, or after ``&&`` that follows a test, runs only perhaps."""
        if operator == "||" or (operator == "&&" and self.was_test):
            self.conditional = True
        elif operator != "&&":
            self.conditional = False
        self.was_test = False

    # --- what is not followed --------------------------------------------------------------------------------------

    def _compound(self, token: Token) -> str:
        """Which kind of compound command begins here; empty for none."""
        if isinstance(token, Operator):
            return "(" if token.text == "(" else ""
        if token.bare in _CLOSERS:
            return token.bare
        following = self.tokens[self.at + 1 : self.at + 2]
        return "f" if token.bare == "function" or following == [Operator("(")] else ""

    def _skip(self, kind: str) -> Iterator[Simple]:
        start = self.at
        self.at = self._end(kind)
        inside = self.tokens[start : self.at]
        if kind == "[[":
            self.was_test = True
            return
        source = " ".join(t.source if isinstance(t, Word) else t.text.replace("\n", ";") for t in inside)
        what = _KIND.get(kind, f"a `{kind}` loop")
        for name in _ASSIGNED_INSIDE.findall(source):
            self.scope.forget(name, f"set in {what}")
        if kind != "f":
            yield Simple((), {}, (f"{what} is not followed: `{source}`",))

    def _end(self, kind: str) -> int:
        """Where the compound command ends: with the script, if it is never closed."""
        if kind == "f":
            return self._end_of_function()
        closers = [")" if kind == "(" else _CLOSERS[kind]]
        begins = kind in _CONTINUES or kind == "("
        for at in range(self.at + 1, len(self.tokens)):
            token = self.tokens[at]
            text = token.text if isinstance(token, Operator) else token.bare
            closes = isinstance(token, Operator) or begins or closers[-1] == "]]"
            if text == closers[-1] and closes:
                closers.pop()
                if not closers:
                    return at + 1
            elif closers[-1] in ("esac", "]]") and text in ("(", ")"):
                pass
            elif isinstance(token, Operator) and text == "(":
                closers.append(")")
            elif isinstance(token, Word) and begins and text in _CLOSERS:
                closers.append(_CLOSERS[text])
            begins = isinstance(token, Operator) or text in _CONTINUES
        return len(self.tokens)

    def _end_of_function(self) -> int:
        """``name() { …; }`` or ``function name { …; }``."""
        for at in range(self.at + 1, len(self.tokens)):
            token = self.tokens[at]
            if isinstance(token, Word) and token.bare in _CLOSERS:
                self.at = at
                return self._end(token.bare)
        return len(self.tokens)

    # --- simple commands -------------------------------------------------------------------------------------------

    def _simple(self) -> Simple | None:
        """The command at this place; ``None`` where it only sets the shell's own variables."""
        words, reasons = self._collect()
        count = 0
        while count < len(words) and _assignment(words[count]):
            count += 1
        own, own_unknown = self._own_assignments(words[:count], to_shell=count == len(words))
        expanded = expand(words[count:], self.scope)
        if not expanded.words or expanded.words == ["exec"]:
            return None
        head = expanded.words[0]
        self.was_test = head in _TESTS
        if head in _DECLARES:
            self._declare(words[count + 1 :], exports=head in ("export", "declare", "typeset"))
            return None
        if head == "unset":
            for name in expanded.words[1:]:
                self._maybe_forget(name)
            return None
        if head in ("set", "shift", "eval", "read", "source", "."):
            self._changes(head, expanded.words)
        known = {n: v for n, v in self.scope.values.items() if n in self.scope.exported}
        hidden = {n: w for n, w in self.scope.unknown.items() if n in self.scope.exported}
        return Simple(
            tuple(expanded.words),
            {**{n: v for n, v in known.items() if n not in own_unknown}, **own},
            (*reasons, *expanded.unknown),
            {**{n: w for n, w in hidden.items() if n not in own}, **own_unknown},
        )

    def _collect(self) -> tuple[list[Word], list[str]]:
        """Words up to the next separator, without redirections."""
        words: list[Word] = []
        reasons: list[str] = []
        while self.at < len(self.tokens):
            token = self.tokens[self.at]
            if isinstance(token, Word):
                words.append(token)
            elif token.text.startswith(REDIRECTIONS):
                if token.text in ("<<", "<<-"):
                    reasons.append("its input is a here-document, which is not read")
                self.at += isinstance(self._peek(), Word)
            else:
                break
            self.at += 1
        if not words and self.at < len(self.tokens) and self.tokens[self.at] == Operator("("):
            self.at += 1  # a bracket after a redirection alone: never the same place twice
        return words, reasons

    def _peek(self) -> Token | None:
        return self.tokens[self.at + 1] if self.at + 1 < len(self.tokens) else None

    def _own_assignments(self, words: Sequence[Word], *, to_shell: bool) -> tuple[dict[str, str], dict[str, str]]:
        """``A=1 command``: for that command only; ``A=1`` alone: for the shell."""
        known: dict[str, str] = {}
        unknown: dict[str, str] = {}
        for word in words:
            name, value, reasons = self._assigned(word)
            if to_shell:
                self._set(name, value, reasons)
            elif reasons:
                unknown[name] = "; ".join(reasons)
            else:
                known[name] = value
        return known, unknown

    def _assigned(self, word: Word) -> tuple[str, str, list[str]]:
        match = _assignment(word)
        assert match is not None
        first = word.parts[0]
        assert isinstance(first, Literal)
        rest = (Literal(first.text[match.end() :], first.quoted), *word.parts[1:])
        value, reasons = expand_text(rest, self.scope)
        name = match["name"]
        if match["plus"] and name in self.scope.unknown:
            reasons.append(self.scope.unknown[name])
        before = self.scope.values.get(name, "") if match["plus"] else ""
        return name, before + value, reasons

    def _set(self, name: str, value: str, reasons: Sequence[str]) -> None:
        if self.conditional:
            self.scope.forget(name, "set only under a condition")
        elif reasons:
            self.scope.forget(name, f"set to what is not known: {reasons[0]}")
        else:
            self.scope.set(name, value)

    def _declare(self, words: Sequence[Word], *, exports: bool) -> None:
        for word in words:
            if _assignment(word):
                name, value, reasons = self._assigned(word)
                self._set(name, value, reasons)
            else:
                name = word.bare
            if exports and name and not name.startswith("-"):
                self.scope.exported.add(name)

    def _maybe_forget(self, name: str) -> None:
        if self.conditional:
            self.scope.forget(name, "removed only under a condition")
        else:
            self.scope.values.pop(name, None)
            self.scope.unknown.pop(name, None)

    def _changes(self, head: str, words: Sequence[str]) -> None:
        """Builtins that change variables in ways that are not followed."""
        if head == "shift" or (head == "set" and len(words) > 1 and words[1][:1] not in ("-", "+")) or "--" in words:
            self.scope.positional = None
        if head == "read":
            for name in words[1:]:
                if not name.startswith("-"):
                    self.scope.forget(name, "read from input")
        if head in ("source", ".", "eval"):
            self.scope.elsewhere = (*self.scope.elsewhere, f"`{head}`")


def _assignment(word: Word) -> re.Match[str] | None:
    first = word.parts[0] if word.parts else None
    return _ASSIGNMENT.match(first.text) if isinstance(first, Literal) and not first.quoted else None
