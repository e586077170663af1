"""Whether an engine's source defines an attribute, by AST: nothing of the engine is imported.

A class has what its body names, what its methods assign to their first argument, and what its bases have; bases are
followed through imports as far as the engine's own files go. A module has what it binds at its top level.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Protocol

ANYWHERE = "*"
"""In the place of a class: the file gives the attribute to an object from outside, or keeps its name as a text."""

DEEPEST = 12
"""Bases and re-exports that are followed; engines have at most six."""


class Sources(Protocol):
    """Source files of one release."""

    def text(self, path: str) -> str | None:
        """The source of one file; None where the release has no such file."""


class Texts:
    """Source files in memory."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self._files = files

    def text(self, path: str) -> str | None:
        return self._files.get(path)


def missing(sources: Sources, path: str, owner: str, name: str) -> str | None:
    """Why ``path`` does not define it, in words; None when it does. ``owner``: a class, "" for the module, ANYWHERE."""
    tree = _tree(sources, path)
    if tree is None:
        return f"there is no {path}"
    if owner == ANYWHERE:
        return None if any(_gives(node, name) for node in ast.walk(tree)) else f"{path} does not name {name}"
    if not owner:
        return None if name in bound(tree.body) else f"{name} is not defined in {path}"
    found = _class(sources, path, owner, DEEPEST)
    if found is None:
        return f"there is no class {owner} in {path}"
    if any(name in members(cls) for cls in _line(sources, *found, DEEPEST)):
        return None
    return f"{owner}.{name} is not defined in {path}"


def _gives(node: ast.AST, name: str) -> bool:
    """Whether a piece of code assigns an attribute of this name, or holds the name as a text."""
    match node:
        case ast.Attribute(attr=attr, ctx=ast.Store()):
            return attr == name
        case ast.Constant(value=value):
            return bool(value == name)
    return False


def _tree(sources: Sources, path: str) -> ast.Module | None:
    text = sources.text(path)
    return None if text is None else _parsed(text)


@cache
def _parsed(text: str) -> ast.Module:
    return ast.parse(text)


def bound(body: list[ast.stmt]) -> set[str]:
    """Names that statements bind, without going into functions and classes."""
    names: set[str] = set()
    for statement in _flat(body):
        match statement:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
            case ast.Assign(targets=targets):
                names.update(n for target in targets for n in _stored(target))
            case ast.AnnAssign(target=target) | ast.AugAssign(target=target):
                names.update(_stored(target))
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                names.update(alias.asname or alias.name for alias in aliases)
    return names


def _flat(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements of a body and of its conditions and attempts, in order."""
    for statement in body:
        yield statement
        match statement:
            case ast.If() | ast.For() | ast.While():
                yield from _flat([*statement.body, *statement.orelse])
            case ast.Try():
                handled = [s for handler in statement.handlers for s in handler.body]
                yield from _flat([*statement.body, *handled, *statement.orelse, *statement.finalbody])
            case ast.With():
                yield from _flat(statement.body)


def _stored(target: ast.expr) -> Iterator[str]:
    for node in ast.walk(target):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def members(cls: ast.ClassDef) -> set[str]:
    """What a class's own body gives it and its objects."""
    names = bound(cls.body)
    for function in (s for s in _flat(cls.body) if isinstance(s, ast.FunctionDef | ast.AsyncFunctionDef)):
        first = next((a.arg for a in (*function.args.posonlyargs, *function.args.args)), None)
        names.update(
            node.attr
            for node in ast.walk(function)
            if isinstance(node, ast.Attribute)
            and isinstance(node.ctx, ast.Store)
            and isinstance(node.value, ast.Name)
            and node.value.id == first
        )
    return names


def _line(sources: Sources, path: str, cls: ast.ClassDef, left: int) -> Iterator[ast.ClassDef]:
    """The class and its bases, as far as the engine's own files go."""
    yield cls
    for base in cls.bases if left else ():
        found = _named(sources, path, base.value if isinstance(base, ast.Subscript) else base, left - 1)
        if found:
            yield from _line(sources, *found, left - 1)


def _named(sources: Sources, path: str, name: ast.expr, left: int) -> tuple[str, ast.ClassDef] | None:
    """The class that an expression in a file names: a name, or a name in a module."""
    if isinstance(name, ast.Name):
        return _class(sources, path, name.id, left)
    if isinstance(name, ast.Attribute) and isinstance(name.value, ast.Name):
        module = _imported(sources, path, name.value.id)
        place = module and _file(sources, ".".join(module))
        return _class(sources, place, name.attr, left) if place else None
    return None


def _class(sources: Sources, path: str, name: str, left: int) -> tuple[str, ast.ClassDef] | None:
    """The class of this name, where it is written: in the file, or where the file has it from."""
    tree = _tree(sources, path)
    if tree is None or not left:
        return None
    for statement in _flat(tree.body):
        if isinstance(statement, ast.ClassDef) and statement.name == name:
            return path, statement
    origin = _imported(sources, path, name)
    place = origin and _file(sources, origin[0])
    return _class(sources, place, origin[1], left - 1) if origin and place else None


def _imported(sources: Sources, path: str, name: str) -> tuple[str, str] | None:
    """Module and name that a file imports as ``name``."""
    tree = _tree(sources, path)
    for statement in _flat(tree.body) if tree else ():
        if isinstance(statement, ast.ImportFrom):
            for alias in statement.names:
                if (alias.asname or alias.name) == name:
                    return _module(path, statement), alias.name
    return None


def _module(path: str, statement: ast.ImportFrom) -> str:
    """The module of a ``from`` import, with its leading dots resolved."""
    if not statement.level:
        return statement.module or ""
    package = path.split("/")[: -statement.level]
    return ".".join([*package, *filter(None, [statement.module])])


def _file(sources: Sources, module: str) -> str | None:
    """The file of a module, if it is one of the engine's."""
    base = module.replace(".", "/")
    return next((p for p in (f"{base}.py", f"{base}/__init__.py") if sources.text(p) is not None), None)
