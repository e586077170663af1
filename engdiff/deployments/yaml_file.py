"""A YAML file as text, lists and mappings, however hostile the file is: every fault is one clear error.

Scalars stay the text they were written as (``0.90``, ``012``, ``yes``): a command line is made of text, and a
number that was read and written again would be another word.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import yaml

from engdiff.deployments.told import told
from engdiff.errors import DeploymentIsTemplate, DeploymentUnreadable

MAX_BYTES = 5_000_000
MAX_NODES = 100_000
"""With every alias written out; the largest real deployments have a few thousand."""

MAX_DEPTH = 100

_TAG = "tag:yaml.org,2002:"
_HELM = re.compile(
    r"\{\{-?\s*(?:\.(?:Values|Release|Chart|Capabilities|Files|Template)\b"
    r"|(?:include|toYaml|template|define|if|range|with|end|else|tpl|printf|required)\b|/\*)"
)
_FIX_IT = "correct the file there; `kubectl apply --dry-run=client -f FILE` or `docker compose config` checks it too"


class Block(dict[str, "Value"]):
    """A mapping that remembers on which line each of its keys stands."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: dict[str, int] = {}


Value: TypeAlias = "str | list[Value] | Block | None"


@dataclass(frozen=True)
class _Shape:
    """How much a node holds once its aliases are written out."""

    nodes: int
    depth: int


@dataclass
class _Refused(Exception):
    """What this reader does not take, at a line."""

    problem: str
    line: int
    advice: str = field(default=_FIX_IT)


def load(path: Path) -> tuple[Block, ...]:
    """Every document of the file that is not empty. Raises :class:`~engdiff.errors.DeploymentUnreadable`."""
    text = _text(path)
    try:
        documents = tuple(_documents(text))
    except _Refused as refused:
        raise _error(path, text, refused) from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise _error(path, text, _Refused(_problem(error), mark.line + 1 if mark else 1)) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise _error(path, text, _Refused("a character that YAML does not allow", line)) from None
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError):
        raise _error(path, text, _Refused("not YAML", 1)) from None
    if helm := _helm_line(text):
        raise DeploymentIsTemplate(path, helm)
    if not documents:
        raise DeploymentUnreadable(path, "the file is empty", "give a docker compose or Kubernetes file")
    return documents


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise DeploymentUnreadable(path, "no such file", "check the path") from None
    except (OSError, ValueError) as error:
        why = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise DeploymentUnreadable(
            path, f"cannot be read: {why}", "check the file's permissions and that it is a file"
        ) from None
    if len(data) > MAX_BYTES:
        raise DeploymentUnreadable(
            path,
            f"larger than {MAX_BYTES // 1_000_000} MB",
            "give the file of the one deployment, without the others",
        )
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DeploymentUnreadable(path, "not UTF-8", "save the file as UTF-8", line) from None


def _error(path: Path, text: str, refused: _Refused) -> DeploymentUnreadable:
    """The error, which for text with ``{{`` at fault is that a template was not rendered."""
    lines = text.splitlines()[max(0, refused.line - 2) : refused.line]
    if any("{{" in line and not line.lstrip().startswith("#") for line in lines):
        return DeploymentIsTemplate(path, refused.line)
    if line := _helm_line(text):
        return DeploymentIsTemplate(path, line)
    return DeploymentUnreadable(path, told(refused.problem), refused.advice, refused.line)


def _helm_line(text: str) -> int | None:
    """The first line, comments aside, that only Helm understands."""
    if "{{" not in text:
        return None
    lines = enumerate(text.splitlines(), 1)
    return next((n for n, line in lines if not line.lstrip().startswith("#") and _HELM.search(line)), None)


def _problem(error: yaml.MarkedYAMLError) -> str:
    problem = error.problem or error.context or "not YAML"
    return f"{problem}: YAML is indented with spaces, never with tabs" if r"'\t'" in problem else problem


# --- the nodes, measured while they are made -----------------------------------------------------------------------


class _Composer(yaml.SafeLoader):
    """Makes nodes and nothing else; refuses a document as soon as it grows too large or too deep."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.shapes: dict[int, _Shape] = {}
        self.depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """See PyYAML. An alias gives the node that was made before, or one that is still being made."""
        line = self.peek_event().start_mark.line + 1  # type: ignore[no-untyped-call]
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise _Refused(f"nested deeper than {MAX_DEPTH} levels", line)
        is_alias = self.check_event(yaml.AliasEvent)
        node = super().compose_node(parent, index)
        self.depth -= 1
        if node is None:
            return None
        if is_alias and id(node) not in self.shapes:
            raise _Refused("an alias that contains itself", line)
        if not is_alias:
            self.shapes[id(node)] = self._shape(node)
        shape = self.shapes[id(node)]
        if shape.nodes > MAX_NODES or len(self.shapes) > MAX_NODES:
            raise _Refused(f"more than {MAX_NODES} values, aliases written out", line, "give a smaller file")
        if self.depth + shape.depth > MAX_DEPTH:
            raise _Refused(f"nested deeper than {MAX_DEPTH} levels, aliases written out", line)
        return node

    def _shape(self, node: yaml.Node) -> _Shape:
        inner = [self.shapes[id(child)] for child in _children(node)]
        return _Shape(1 + sum(s.nodes for s in inner), 1 + max((s.depth for s in inner), default=0))


def _children(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return [part for pair in node.value for part in pair]
    return list(node.value) if isinstance(node, yaml.SequenceNode) else []


# --- from nodes to values ------------------------------------------------------------------------------------------


def _documents(text: str) -> Iterator[Block]:
    composer = _Composer(text)
    try:
        while composer.check_node():
            node = composer.get_node()
            value = _value(node) if node else None
            if node is None or value is None:
                continue
            if not isinstance(value, Block):
                kind = "a list" if isinstance(value, list) else "plain text"
                raise _Refused(f"{kind}, where a deployment is a mapping of keys", _line(node))
            yield value
    finally:
        composer.dispose()


def _value(node: yaml.Node) -> Value:
    tag = str(node.tag)
    if tag.startswith(f"{_TAG}python/"):
        raise _Refused(f"the tag `{tag.removeprefix(_TAG)}` makes Python objects", _line(node), "remove the tag")
    if tag == "!reset":  # docker compose: as if the key were not there
        return None
    if isinstance(node, yaml.MappingNode):
        return _block(node)
    if isinstance(node, yaml.SequenceNode):
        return [_value(child) for child in node.value]
    return None if tag == f"{_TAG}null" else _scalar(node)


def _scalar(node: yaml.Node) -> str:
    text = str(node.value)
    if "\0" in text:
        raise _Refused("a NUL character, which no command and no variable can hold", _line(node))
    return text.encode("utf-8", "replace").decode("utf-8")


def _block(node: yaml.MappingNode) -> Block:
    block, merged = Block(), Block()
    for key, value in node.value:
        if key.tag == f"{_TAG}merge":
            _merge(value, merged)
            continue
        if not isinstance(key, yaml.ScalarNode):
            raise _Refused("a key that is itself a list or a mapping", _line(key), "quote text that starts with { or [")
        name = _scalar(key)
        if name in block:
            first = block.lines[name]
            raise _Refused(f"key `{told(name)}` again; it is on line {first} already", _line(key), "keep one of them")
        block[name] = _value(value)
        block.lines[name] = _line(key)
    for name, inherited in merged.items():
        if name not in block:
            block[name] = inherited
            block.lines[name] = merged.lines[name]
    return block


def _merge(node: yaml.Node, merged: Block) -> None:
    """Keys of ``<<``: of several mappings the first that has a key gives its value."""
    value = _value(node)
    for source in value if isinstance(value, list) else [value]:
        if not isinstance(source, Block):
            raise _Refused("`<<` merges mappings only", _line(node))
        for name, inherited in source.items():
            if name not in merged:
                merged[name] = inherited
                merged.lines[name] = source.lines[name]


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1
