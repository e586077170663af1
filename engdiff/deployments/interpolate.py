"""``${NAME}`` in docker compose files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OPERATOR = re.compile(r":?[-?+]")
MAX_NESTING = 20


@dataclass
class Interpolation:
    """Fills texts from ``environment``. ``missing`` collects what stays as it is written, each with the reason."""

    environment: Mapping[str, str]
    missing: dict[str, str] = field(default_factory=dict)

    def fill(self, text: str) -> str:
        """The text with values in place of names."""
        return self._fill(text, 0)

    def _fill(self, text: str, nesting: int) -> str:
        out: list[str] = []
        at = 0
        while (dollar := text.find("$", at)) >= 0:
            out.append(text[at:dollar])
            filled, at = self._one(text, dollar, nesting)
            out.append(filled)
        out.append(text[at:])
        return "".join(out)

    def _one(self, text: str, at: int, nesting: int) -> tuple[str, int]:
        """What stands for the expression at a dollar, and where the text goes on."""
        if text.startswith("$$", at):
            return "$", at + 2
        braced = text.startswith("${", at)
        name = _NAME.match(text, at + 2 if braced else at + 1)
        if not braced:
            return self._plain(name[0], text[at : name.end()]) if name else "$", name.end() if name else at + 1
        end = _closing(text, at + 2)
        if end is None or name is None or nesting > MAX_NESTING:
            self.missing[text[at : at + 40]] = "not an expression of docker compose"
            return "$", at + 1
        source = text[at : end + 1]
        return self._braced(name[0], text[name.end() : end], source, nesting), end + 1

    def _plain(self, name: str, source: str) -> str:
        if name in self.environment:
            return self.environment[name]
        self.missing[source] = f"{name} is not set in this shell, and a .env file is not read"
        return source

    def _braced(self, name: str, rest: str, source: str, nesting: int) -> str:
        if not rest:
            return self._plain(name, source)
        operator = _OPERATOR.match(rest)
        if operator is None:
            self.missing[source] = "not an expression of docker compose"
            return source
        value = self.environment.get(name)
        is_set = value is not None and (bool(value) or not operator[0].startswith(":"))
        other = rest[operator.end() :]
        if operator[0].endswith("+"):
            return self._fill(other, nesting + 1) if is_set else ""
        if is_set:
            return value or ""
        if operator[0].endswith("-"):
            return self._fill(other, nesting + 1)
        self.missing[source] = f"{name} must be set in this shell"
        return source


def _closing(text: str, at: int) -> int | None:
    """Where the brace that was opened before ``at`` is closed."""
    depth = 1
    for match in re.compile(r"\$\$|\$\{|\}").finditer(text, at):
        if match[0] == "${":
            depth += 1
        elif match[0] == "}":
            depth -= 1
            if depth == 0:
                return match.start()
    return None
