"""Reading shipped profiles: which releases have one, and the capture of a scenario."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from packaging.version import Version

from engdiff import __version__, errors
from engdiff.engines.contract import Engine
from engdiff.knowledge.gpus import Pretended
from engdiff.models.shapes import shape
from engdiff.schema.capture import CAPTURE_SCHEMA, Capture
from engdiff.shipped import folder
from engdiff.sources.profiles import grid
from engdiff.sources.profiles.packing import Tree, merged, unpacked

if TYPE_CHECKING:
    from engdiff.sources.simulate import Ask  # to read a profile nothing of a simulation is needed

ENDING = ".json.xz"
MOST_HELD = 4
"""Profiles kept in memory: a history walks over dozens and looks at each once or twice."""

NOT_DATED = ""
"""A profile holds no date: it is the same whenever it is made."""


def home(engine: str) -> Path:
    """Where the profiles of an engine lie."""
    return folder("profiles") / "defaults" / engine


def versions(engine: str) -> tuple[str, ...]:
    """Releases with a profile, oldest first."""
    return tuple(sorted((path.name.removesuffix(ENDING) for path in home(engine).glob(f"*{ENDING}")), key=Version))


@lru_cache(maxsize=MOST_HELD)
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


def by_device(engine: Engine) -> bool:
    """Whether device and model decide anything of this engine without a start."""
    return engine.simulation is not None and engine.simulation.by_device


def asked(engine: Engine, device: Pretended | None, model: str, arguments: Sequence[str]) -> grid.Shipped:
    """What a user asks for, in the words of a profile: ``--flag=value`` is two words, a model has one name."""
    words = tuple(part for word in arguments for part in word.split("=", 1))
    if not by_device(engine):
        return grid.Shipped(None, "", words)
    known = shape(model)
    return grid.Shipped(device, known.key if known else model, words)


def scenario(engine: Engine, device: Pretended, model: str, arguments: Sequence[str]) -> grid.Shipped:
    """A shipped scenario. Raises UsageError for one that is not shipped, with those of this engine that are."""
    wanted = asked(engine, device, model, arguments)
    held = versions(engine.name)
    if not held:
        raise errors.UsageError(f"{engine.name}: no profiles are shipped", "engdiff profiles list shows what is")
    if wanted.key in read(engine.name, held[-1])["scenarios"]:
        return wanted
    every = grid.scenarios(by_device=by_device(engine))
    same = [one for one in every if one.model == wanted.model and one.device and one.device.gpu == device.gpu]
    near = same or [one for one in every if one.model == wanted.model] or list(every)
    raise errors.UsageError(
        f"no profile of {wanted.key} is shipped",
        f"shipped: {'; '.join(one.key for one in near[:6])}. Any other is resolved when it is asked for: "
        f"engdiff diff {engine.name}@OLD/{wanted.text} {engine.name}@NEW/{wanted.text} --model {model}",
    )


def newest_capture(engine: str, key: str) -> Capture | None:
    """The newest release's capture of a scenario."""
    made = (_capture_or_none(engine, version, key) for version in reversed(versions(engine)))
    return next((one for one in made if one), None)


def _capture_or_none(engine: str, version: str, key: str) -> Capture | None:
    try:
        return capture(engine, version, key)
    except errors.EngineFailed:
        return None


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
    made = Capture.model_validate({**tree, "native": {}})
    identity = made.identity.model_copy(update={"engdiff_version": __version__, "source": "profile"})
    # read as JSON, so JSON it is: to look at each of its values again takes longer than all the rest
    return made.model_copy(update={"identity": identity, "native": tree["native"]})


def profile_of(engine: Engine, version: str, ask: Ask) -> Capture | None:
    """The shipped capture of what is asked, if it is a shipped scenario. Raises EngineFailed where it was refused."""
    if ask.device is None and by_device(engine):
        return None
    made = capture(engine.name, version, asked(engine, ask.device, ask.model, ask.arguments).key)
    if made is None:
        return None
    return made.model_copy(update={"launch": made.launch.model_copy(update={"model_given": ask.model or None})})
