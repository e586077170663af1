"""Reading shipped profiles: which releases have one, and the capture of a scenario."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from engdiff import __version__, errors
from engdiff.knowledge.gpus import Pretended
from engdiff.knowledge.versions import release
from engdiff.models.shapes import shape
from engdiff.schema.capture import CAPTURE_SCHEMA, Capture
from engdiff.shipped import folder
from engdiff.sources.profiles import grid
from engdiff.sources.profiles.packing import Tree, merged, unpacked

ENDING = ".json.xz"
NOT_DATED = ""
"""A profile holds no date: it is the same whenever it is made."""


def home(engine: str) -> Path:
    """Where the profiles of an engine lie."""
    return folder("profiles") / "defaults" / engine


def versions(engine: str) -> tuple[str, ...]:
    """Releases with a profile, oldest first."""
    return tuple(sorted((path.name.removesuffix(ENDING) for path in home(engine).glob(f"*{ENDING}")), key=release))


@cache
def read(engine: str, version: str) -> Tree:
    """A whole profile as data. Raises FileNotFoundError, and EngdiffError for one that is not whole."""
    path = home(engine) / f"{version}{ENDING}"
    try:
        tree = unpacked(path.read_bytes())
    except ValueError as error:
        raise errors.EngdiffError(f"{path}: not a profile: {error}", "install engdiff again") from error
    if tree.get("schema") != CAPTURE_SCHEMA:
        raise errors.EngdiffError(
            f"{path}: of document version {tree.get('schema')}, and this engdiff reads {CAPTURE_SCHEMA}",
            f"engdiff profiles refresh {engine}@{version}",
        )
    return tree


def has(engine: str, version: str) -> bool:
    """Whether a release has a profile."""
    return (home(engine) / f"{version}{ENDING}").is_file()


def scenario_key(device: Pretended, model: str, arguments: Sequence[str]) -> str:
    """The name of a scenario in a profile, if it is a shipped one."""
    known = shape(model)
    words = tuple(part for word in arguments for part in word.split("=", 1))
    return grid.Shipped(device, known.key if known else model, words).key


def tree_of(engine: str, version: str, key: str) -> Tree | None:
    """The capture of a scenario as data; ``None`` where it has none or the engine refused it."""
    profile = read(engine, version)
    entry = profile["scenarios"].get(key)
    return merged(profile["shared"], entry["own"]) if entry and "own" in entry else None


def capture(engine: str, version: str, key: str) -> Capture | None:
    """The capture of a scenario; ``None`` where none is shipped. Raises EngineFailed where the engine refused it."""
    if not has(engine, version):
        return None
    entry: Mapping[str, Any] | None = read(engine, version)["scenarios"].get(key)
    if entry is not None and "refused" in entry:
        raise errors.EngineFailed(log=None, **{**entry["refused"], "last_words": tuple(entry["refused"]["last_words"])})
    tree = tree_of(engine, version, key)
    if tree is None:
        return None
    made = Capture.model_validate(tree)
    return made.model_copy(
        update={"identity": made.identity.model_copy(update={"engdiff_version": __version__, "source": "profile"})}
    )


def rows(engine: str) -> Iterator[tuple[str, Tree]]:
    """Every profile of an engine, oldest release first."""
    for version in versions(engine):
        yield version, read(engine, version)
