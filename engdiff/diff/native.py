"""The whole native configuration, leaf by leaf: what has no canonical name is compared as well."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from engdiff.engines.layers import same
from engdiff.knowledge.tables import Knowledge


@dataclass(frozen=True)
class Leaves:
    """The outcome: ``changed`` maps path to (old, new); ``retyped`` those that were renamed and mean something else."""

    changed: Mapping[str, tuple[JsonValue, JsonValue]]
    retyped: Mapping[str, tuple[JsonValue, JsonValue]]
    only_old: Mapping[str, JsonValue]
    only_new: Mapping[str, JsonValue]
    compared: int


def flatten(tree: JsonValue, path: str = "") -> Iterator[tuple[str, JsonValue]]:
    """Dotted path and value of every leaf; lists and empty mappings are leaves."""
    if isinstance(tree, dict) and tree:
        for key, value in tree.items():
            yield from flatten(value, f"{path}.{key}" if path else key)
    else:
        yield path, tree


def compare_leaves(
    old: Mapping[str, JsonValue],
    new: Mapping[str, JsonValue],
    *,
    knowledge: Knowledge,
    root: str,
    renamed: Mapping[str, str],
    covered: frozenset[str],
) -> Leaves:
    """Every leaf that is neither noise nor shown by a canonical setting; moved leaves are matched by ``renamed``.

    Knowledge names paths without ``root``. New leaves whose value means "off" are left out.
    """

    def kept(tree: Mapping[str, JsonValue], names: Mapping[str, str]) -> dict[str, JsonValue]:
        leaves = ((names.get(p, p), v) for p, v in flatten(dict(tree)))
        return {p: v for p, v in leaves if p not in covered and not knowledge.is_noise(p.removeprefix(root))}

    def shown(path: str, value: JsonValue) -> bool:
        return not knowledge.is_inert(path.removeprefix(root), value)

    left, right = kept(old, renamed), kept(new, {})
    both = left.keys() & right.keys()
    moved = {p: (left[p], right[p]) for p in sorted(both) if not same_leaf(left[p], right[p])}
    retyped = {p: pair for p, pair in moved.items() if p in renamed.values() and type(pair[0]) is not type(pair[1])}
    return Leaves(
        changed={p: pair for p, pair in moved.items() if p not in retyped},
        retyped=retyped,
        only_old={p: left[p] for p in sorted(left.keys() - both) if shown(p, left[p])},
        only_new={p: right[p] for p in sorted(right.keys() - both) if shown(p, right[p])},
        compared=len(both),
    )


def same_leaf(old: JsonValue, new: JsonValue) -> bool:
    """Equality of leaves: empty is nothing, and lists of plain values are compared without order."""
    if old in (None, "", [], {}) and new in (None, "", [], {}):
        return True
    if isinstance(old, list) and isinstance(new, list):
        return old == new or sorted(map(str, old)) == sorted(map(str, new))
    return same(old, new)
