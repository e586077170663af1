"""What a probe reads of an engine, by AST: the attributes of every object that its table knows.

The table says what each variable of the probe stands for. An attribute of anything that it does not know, and that is
not of Python's own, is a complaint: nothing is read unseen.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator

from tests.engines.probe_table import Table

LANGUAGE = {"__class__", "__init__", "__name__", "__qualname__", "__module__", "__dict__", "__wrapped__", "__setattr__"}
"""Attributes that Python itself gives."""

OURS = "_engdiff"

NOTHING = ""
"""No object of the engine: a text, a number, something of the standard library or of torch."""

Held = str | None
"""The object of the engine that an expression stands for; NOTHING; None: the table does not say."""


def reads(source: str, table: Table) -> tuple[set[tuple[str, str]], list[str]]:
    """Object and attribute of everything that is read, and what the table leaves open."""
    reader = _Reader(ast.parse(source), table)
    return reader.found, reader.complaints


class _Reader(ast.NodeVisitor):
    def __init__(self, tree: ast.Module, table: Table) -> None:
        self.table = table
        self.found: set[tuple[str, str]] = set()
        self.complaints: list[str] = []
        self._functions: list[str] = []
        self._loops: list[dict[str, list[str]]] = [{}]
        self._known: dict[str, str] = dict.fromkeys(vars(builtins), NOTHING)
        for statement in tree.body:
            self._define(statement)
        self.visit(tree)

    # --- what names stand for ---------------------------------------------------------------------------------

    def _define(self, statement: ast.stmt) -> None:
        """Names of the probe's own module; a constant of words must be said to be read, or not."""
        match statement:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                self._known[name] = NOTHING
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                self._constant(name, value)
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                self._constant(name, value)
            case ast.If():
                for inner in (*statement.body, *statement.orelse):
                    self._define(inner)

    def _constant(self, name: str, value: ast.expr) -> None:
        self._known[name] = NOTHING
        if not isinstance(value, ast.Tuple | ast.Dict | ast.List):
            return
        if name not in self.table.tables:
            self.complaints.append(f"line {value.lineno}: [tables] does not say what {name} is read of")
            return
        for path in _words(value) if self.table.tables[name] else ():
            self._follow(self.table.tables[name], path, value.lineno)

    def _follow(self, at: Held, path: str, line: int) -> None:
        for name in path.split("."):
            self._read(at, name, line)
            at = self._given(at, name)

    def _variable(self, name: str) -> Held:
        for function in reversed(self._functions):
            if (key := f"{function}:{name}") in self.table.variables:
                return self.table.variables[key]
            if key in self.table.ignored:
                return NOTHING
        if name in self.table.variables:
            return self.table.variables[name]
        return NOTHING if name in self.table.ignored else self._known.get(name)

    def _given(self, held: Held, name: str) -> Held:
        """What an attribute of an object stands for."""
        return held if not held else self.table.gives.get(f"{held}.{name}")

    def _held(self, node: ast.expr) -> Held:
        match node:
            case ast.Name(id=name):
                return self._variable(name)
            case ast.Constant() | ast.JoinedStr() | ast.Dict() | ast.List() | ast.Tuple() | ast.Compare():
                return NOTHING
            case ast.Attribute(value=value, attr=name):
                return NOTHING if name in LANGUAGE else self._given(self._held(value), name)
            case ast.Subscript(
                value=ast.Call(func=ast.Name(id="vars"), args=[of]), slice=ast.Constant(value=str(name))
            ):
                return self._given(self._held(of), name)
            case ast.Subscript(value=value, slice=where):
                return self._module(where) if ast.unparse(value) == "sys.modules" else self._held(value)
            case ast.Call():
                return self._called(node)
        return None

    def _called(self, node: ast.Call) -> Held:
        match node:
            case ast.Call(func=ast.Name(id="getattr"), args=[of, ast.Constant(value=str(name)), *_]):
                return self._given(self._held(of), name)
            case ast.Call(func=ast.Name(id="__import__"), args=[module, *_]):
                return self._module(module)
            case ast.Call(func=ast.Name(id=name)):
                return NOTHING if name in vars(builtins) and name != "getattr" else self._variable(name) or None
            case ast.Call(func=ast.Attribute() as method):
                return self._module(node.args[0]) if ast.unparse(method) == "sys.modules.get" else self._held(method)
        return None

    def _module(self, name: ast.expr) -> Held:
        """A module of the engine is an object of its own; any other is nothing."""
        if not isinstance(name, ast.Constant):
            return self._held(name)
        return str(name.value) if str(name.value).split(".")[0] == self.table.package else NOTHING

    # --- what is read -----------------------------------------------------------------------------------------

    def _read(self, held: Held, name: str, line: int) -> None:
        if held == NOTHING or name in LANGUAGE or name.startswith(OURS):
            return
        if held is None:
            self.complaints.append(f"line {line}: .{name} of something that the table does not know")
        else:
            self.found.add((held, name))

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._functions.append(node.name)
        self._loops.append(dict(_loops(node)))
        for part in (*node.args.defaults, *filter(None, node.args.kw_defaults), *node.body):
            self.visit(part)
        self._functions.pop()
        self._loops.pop()

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value:
            self.visit(node.value)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        for statement in node.body:
            self.visit(statement)

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            bound = alias.asname or alias.name.split(".")[0]
            self._known[bound] = alias.name if alias.name.split(".")[0] == self.table.package else NOTHING

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        module = node.module or ""
        ours = module.split(".")[0] == self.table.package
        for alias in node.names:
            if ours:
                self._read(module, alias.name, node.lineno)
            self._known[alias.asname or alias.name] = (
                self.table.gives.get(f"{module}.{alias.name}", NOTHING) if ours else NOTHING
            )

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if isinstance(node.ctx, ast.Load):
            self._read(self._held(node.value), node.attr, node.lineno)
        self.visit(node.value)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        match node:
            case ast.Subscript(
                value=ast.Call(func=ast.Name(id="vars"), args=[of]), slice=ast.Constant(value=str(name))
            ):
                self._read(self._held(of), name, node.lineno)
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        match node:
            case ast.Compare(
                left=ast.Constant(value=str(name)), comparators=[ast.Call(func=ast.Name(id="vars"), args=[of])]
            ):
                self._read(self._held(of), name, node.lineno)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        match node:
            case ast.Call(func=ast.Name(id="getattr" | "hasattr"), args=[of, ast.Constant(value=str(name)), *_]):
                self._read(self._held(of), name, node.lineno)
            case ast.Call(func=ast.Name(id="getattr" | "hasattr"), args=[of, name_node, *_]):
                self._by_name(self._held(of), ast.unparse(name_node), node)
            case ast.Call(func=ast.Name(id=reader), args=[of, *paths]) if reader in self.table.readers:
                for path in paths:
                    if isinstance(path, ast.Constant):
                        self._follow(self._held(of), str(path.value), node.lineno)
        self.generic_visit(node)

    def _by_name(self, held: Held, variable: str, node: ast.Call) -> None:
        """A name that is not written out: from a tuple of a loop, a table of this object, or the object's own list."""
        names = self._loops[-1].get(variable, [])
        for name in names:
            self._read(held, name, node.lineno)
        known = names or held in self.table.tables.values() or held in self.table.whole
        if held != NOTHING and not known:
            self.complaints.append(f"line {node.lineno}: {ast.unparse(node)} reads a name that no table holds")


def _loops(function: ast.FunctionDef) -> Iterator[tuple[str, list[str]]]:
    """Variables of a function's loops over texts that stand beside them."""
    for node in ast.walk(function):
        match node:
            case (
                ast.For(target=ast.Name(id=name), iter=ast.Tuple() as words)
                | ast.comprehension(target=ast.Name(id=name), iter=ast.Tuple() as words)
            ):
                yield name, list(_words(words))


def _words(value: ast.expr) -> Iterator[str]:
    """Texts of a constant; of a mapping only its values."""
    match value:
        case ast.Constant(value=str(text)):
            yield text
        case ast.Dict(values=values) | ast.Tuple(elts=values) | ast.List(elts=values):
            for inner in values:
                yield from _words(inner)
