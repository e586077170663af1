"""``server_args=`` in a log: whole, cut at its end, or a piece whose beginning is lost."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

from pydantic import JsonValue

from engdiff.engines.layers import lookup
from engdiff.logs.reprs import parse, parse_fragment
from engdiff.logs.starts import Start
from engdiff.logs.statements import Line, Statement
from engdiff.schema.values import Evidence

FEWEST_FIELDS = 4
"""A piece with fewer names is a sentence that mentions an argument."""

LONGEST_EXCERPT = 400


@dataclass(frozen=True)
class Arguments:
    """What the log holds of ServerArgs. ``missing`` says in words what it does not."""

    tree: dict[str, JsonValue]
    text: str
    lines: tuple[Line, ...]
    missing: tuple[str, ...]

    @property
    def whole(self) -> dict[str, JsonValue]:
        """The fields without those that break off: half a list is no list."""
        tree = self.tree
        for words in self.missing:
            if found := _CUT_IN.search(words):
                tree = _without(tree, found[1].split("."))
        return tree

    def cite(self, path: str) -> Evidence:
        """The piece of the line that says it."""
        excerpt = self._excerpt(path.split("."))
        line = next((one for one in self.lines if excerpt in one.text), self.lines[0] if self.lines else None)
        if line is None:
            return Evidence(source="log", where=excerpt)
        return Evidence(source="log", where=excerpt, line=line.number, file=line.file)

    def _excerpt(self, names: Sequence[str]) -> str:
        """The text of a field; of several, where a cut left one empty, that which holds its value."""
        *outer, last = names
        at = 0
        for name in outer:
            found = _field(name).search(self.text, at)
            at = found.end() if found else at
        all_of_it = [self._until_next(found.start(), found.end()) for found in _field(last).finditer(self.text, at)]
        value = str(lookup(self.tree, ".".join(names)))
        return next((excerpt for excerpt in all_of_it if value in excerpt), [*all_of_it, self._until_next(0, at)][0])

    def _until_next(self, start: int, end: int) -> str:
        following = _NEXT.search(self.text, end)
        stop = following.start() if following else len(self.text)
        return self.text[start : min(stop, start + LONGEST_EXCERPT)].partition("\n")[0]


@cache
def _field(name: str) -> re.Pattern[str]:
    """Where a field of this name is written, as a keyword or as a key."""
    return re.compile(rf"(?<![\w'\"])['\"]?{re.escape(name)}['\"]?(?:=|: )")


_CUT_IN = re.compile(r"(?:breaks off|cannot be read on) in `(\w+(?:\.\w+)*)")


def _without(tree: dict[str, JsonValue], path: Sequence[str]) -> dict[str, JsonValue]:
    """A copy without what is at a path; without its first field where the path leads through something else."""
    name, *deeper = path
    inner = tree.get(name)
    if deeper and isinstance(inner, dict):
        return {**tree, name: _without(inner, deeper)}
    return {key: value for key, value in tree.items() if key != name}


_NEXT = re.compile(r"[)}]*, ['\"]?\w+['\"]?(?:=|: )|[)}]+\s*$")
"""Where the next field begins, or the whole ends."""


def read(start: Start) -> Arguments | None:
    """The arguments that a start states; ``None`` when it states none."""
    tree: dict[str, JsonValue] = {}
    texts: list[str] = []
    lines: list[Line] = []
    missing: list[str] = []
    for statements in _rows(start.all("server args", "server args fragment")):
        text = _joined(statements)
        whole = statements[0].name == "server args"
        parsed = parse(text) if whole else parse_fragment(text)
        if not whole and len(parsed.tree) < FEWEST_FIELDS:
            continue
        tree = {**parsed.tree, **tree}
        texts.append(text)
        lines += [line for s in statements for _, line in s.pieces]
        missing += parsed.missing
    return Arguments(tree, "\n".join(texts), tuple(lines), tuple(dict.fromkeys(missing))) if texts else None


def _rows(statements: Iterable[Statement]) -> list[list[Statement]]:
    """Statements on lines that follow one another: rows of one long line. Of several whole ones the last holds."""
    groups: list[list[Statement]] = []
    for statement in statements:
        if statement.name == "server args":
            groups = [[statement]]
        elif groups and _follows(groups[-1][-1], statement):
            groups[-1].append(statement)
        elif not groups or statement.line.number > groups[-1][-1].pieces[-1][1].number:
            groups.append([statement])
    return groups


def _follows(before: Statement, statement: Statement) -> bool:
    last = before.pieces[-1][1]
    return statement.line.number == last.number + 1 and (statement.line.source, statement.line.file) == (
        last.source,
        last.file,
    )


def _joined(statements: Sequence[Statement]) -> str:
    """The rows as one text: a terminal cuts inside words, and what was a space at the end of a row is gone."""
    text = _own_text(statements[0])
    for statement in statements[1:]:
        text += _gap(text) + _own_text(statement)
    return text


def _own_text(statement: Statement) -> str:
    """Of a message that continues on further rows, without the spaces that joining the rows put there."""
    start, end = statement.match.span("args")
    text = statement.match.string
    joints = [offset for offset, _ in statement.pieces[1:] if start < offset < end and text[offset - 1] == " "]
    parts: list[str] = []
    for offset in joints:
        parts.append(text[start : offset - 1])
        start = offset
    parts.append(text[start:end])
    whole = parts[0]
    for part in parts[1:]:
        whole += _gap(whole) + part
    return whole


def _gap(before: str) -> str:
    return " " if before.endswith((",", ":")) else ""
