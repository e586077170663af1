"""Many documents that are nearly the same, as one tree: what all share once, and what each has of its own.

``merged(common, own)`` gives every document back exactly: what is common to all has its place in each of them.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Sequence
from functools import reduce
from typing import Any

from pydantic import JsonValue
from pydantic_core import from_json

Tree = dict[str, Any]


def shared(trees: Sequence[Tree]) -> Tree:
    """What all of them hold, in the same place."""
    return reduce(_common, trees) if trees else {}


def _common(one: Tree, other: Tree) -> Tree:
    found: Tree = {}
    for name in one.keys() & other.keys():
        a, b = one[name], other[name]
        if same(a, b):
            found[name] = a
        elif isinstance(a, dict) and isinstance(b, dict):
            found[name] = _common(a, b)
    return found


def own(tree: Tree, common: Tree) -> Tree:
    """What a tree holds beside what is common."""
    found: Tree = {}
    for name, value in tree.items():
        if name not in common:
            found[name] = value
        elif not same(value, common[name]):
            found[name] = own(value, common[name])
    return found


def merged(common: Tree, rest: Tree) -> Tree:
    """The whole tree again."""
    found = dict(common)
    for name, value in rest.items():
        held = common.get(name)
        found[name] = merged(held, value) if isinstance(held, dict) and isinstance(value, dict) else value
    return found


def same(one: JsonValue, other: JsonValue) -> bool:
    """Equal as JSON: 1, 1.0 and true are three values."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(value, other[name]) for name, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and one == other


def content(tree: Tree) -> bytes:
    """A tree as bytes, always the same ones."""
    return json.dumps(tree, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def packed(tree: Tree) -> bytes:
    """Compressed for shipping."""
    return lzma.compress(content(tree), preset=9 | lzma.PRESET_EXTREME)


def unpacked(data: bytes) -> Tree:
    """What :func:`packed` was given. Raises ValueError for anything else."""
    try:
        tree: Tree = from_json(lzma.decompress(data))
    except (lzma.LZMAError, EOFError) as error:
        raise ValueError(str(error)) from error
    return tree
