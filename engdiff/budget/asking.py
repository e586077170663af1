"""From what a user wrote to a question: whatever was not said is guessed, and every guess is named."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from engdiff import engines
from engdiff.budget.defaults import defaults
from engdiff.budget.question import Question
from engdiff.engines.contract import Engine
from engdiff.engines.sizing import Parallel, Sizing
from engdiff.errors import UsageError
from engdiff.geometry import Geometry, geometry
from engdiff.knowledge.gpus import Gpu, pretended
from engdiff.models.shapes import configuration, shape, shapes
from engdiff.references import EngineReference, parse
from engdiff.schema.budget import Guess
from engdiff.sources.profiles.shipped import versions
from engdiff.units import GIB

ENGINE, GPU = "vllm", "h100-80gb"


@dataclass(frozen=True)
class Said:
    """What the user wrote; empty where nothing."""

    model: str
    engine: str
    gpu: str
    tensor: int
    pipeline: int
    experts: bool
    settings: Mapping[str, JsonValue]


def question(said: Said) -> Question:
    """The question, whole. Raises :class:`~engdiff.errors.UsageError` for what cannot be answered."""
    engine, version, of_engine = which_engine(said.engine)
    sizing = engine.sizing
    if sizing is None:
        with_one = ", ".join(one.name for one in map(engines.get, engines.names()) if one.sizing is not None)
        raise UsageError(f"no budget is made for {engine.title} yet", f"engines with one: {with_one}")
    name, content = which_model(said.model)
    made = geometry(content)
    device = pretended(said.gpu or GPU)
    ranks = said.tensor * said.pipeline
    if said.gpu and device.count > 1 and ranks not in (1, device.count):
        raise UsageError(
            f"{said.gpu} has {device.count} devices, and --tp x --pp is {ranks}",
            "let both agree, or leave the count out",
        )
    tensor = device.count if ranks == 1 else said.tensor
    found = defaults(engine, sizing, version, device.gpu, made)
    longest = made.config.integer("max_position_embeddings")
    base = {**found.settings, "model.max_model_len": longest, **block(sizing, made, found.settings)}
    size, of_size = device_bytes(device.gpu)
    guesses = [*of_engine, *([] if said.gpu else [Guess(name="--gpu", value=GPU, because="the usual one")])]
    guesses += [Guess(name="device memory", value=f"{size / GIB:.2f} GiB", because=of_size)]
    guesses += guessed(said.settings, base, sizing, found.where)
    return Question(
        engine=engine,
        version=version,
        model=name,
        geometry=made,
        gpu=device.gpu,
        device_bytes=size,
        parallel=Parallel(tensor, said.pipeline, said.experts),
        settings=sizing.settled(version, said.settings, base),
        stated=said.settings,
        guesses=tuple(guesses),
    )


def which_engine(text: str) -> tuple[Engine, str, list[Guess]]:
    """The engine and its release; the newest with a profile where none is named."""
    reference = parse(text or ENGINE)
    if not isinstance(reference, EngineReference) or reference.gpu:
        raise UsageError(f"`{text}` is no engine", "write ENGINE@VERSION: vllm@0.25.1")
    engine = engines.get(reference.engine)
    if reference.version is not None:
        return engine, reference.version, []
    held = versions(engine.name)
    if not held:
        raise UsageError(f"no release of {engine.title} has a profile", "name a release: vllm@0.33.0")
    why = "the newest release that a profile is shipped of"
    return engine, held[-1], [Guess(name="--engine", value=f"{engine.name}@{held[-1]}", because=why)]


def which_model(text: str) -> tuple[str, Mapping[str, Any]]:
    """The name of a model and the content of its configuration."""
    if not text:
        raise UsageError("no model is named", "engdiff budget --model 70b --tp 2")
    known = shape(text)
    if known is not None:
        return known.key, known.config
    path = Path(text)
    if path.exists():
        return path.name, configuration(path)
    raise UsageError(
        f"`{text}`: no shipped model and no folder or config.json", f"shipped: {', '.join(shapes())}; aliases: 8b, 70b"
    )


def block(sizing: Sizing, made: Geometry, settings: Mapping[str, JsonValue]) -> Mapping[str, JsonValue]:
    """The block size before it is grown for a state: the profile of a like model holds the grown one."""
    states = any(cache.kind == "state" for cache in made.caches)
    return {"kv.block_size": sizing.smallest_block} if states and "kv.block_size" in settings else {}


def device_bytes(gpu: Gpu) -> tuple[int, str]:
    """Memory that a process sees, and where the figure is from."""
    if gpu.usable_gib is not None:
        return round(gpu.usable_gib * GIB), f"what CUDA shows of a {gpu.title}, not its nominal size"
    return gpu.memory_bytes, f"what the driver reports of a {gpu.title}; a process sees a little less"


def guessed(stated: Mapping[str, JsonValue], base: Mapping[str, JsonValue], sizing: Sizing, where: str) -> list[Guess]:
    """Every setting that the user did not state."""
    longest = "the longest that the model was made for"
    return [
        Guess(name=key, value=base[key], because=longest if key == "model.max_model_len" else f"default: {where}")
        for key in sizing.reads
        if key in base and key not in stated and base[key] is not None
    ]
