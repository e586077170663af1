"""Shipped profiles are what the engines say: a few drawn by the day are resolved again and compared, byte for byte."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import groupby
from random import Random

import pytest

from engdiff import engines
from engdiff.machine import look
from engdiff.schema.capture import Capture
from engdiff.sources.profiles import grid, refresh, shipped
from engdiff.sources.profiles.packing import content
from engdiff.sources.simulate import Ask, simulate_all

pytestmark = pytest.mark.real

SEED = datetime.now(UTC).date().toordinal()

LIBRARIES = {"vllm": ("0.32.0",), "sglang": ("0.5.23",), "llamacpp": ("2026.10.11549", "0.2.7")}
"""Releases whose environments other tests make anyway: profiles that they answer for are drawn from."""


def drawn(name: str) -> tuple[str, tuple[grid.Shipped, ...]]:
    """A release and the scenarios of one GPU, another pair each day."""
    engine, chance = engines.get(name), Random(SEED)  # noqa: S311 - a draw, no secret
    assert engine.simulation is not None
    every = grid.scenarios(by_device=shipped.by_device(engine))
    several = [tuple(group) for _, group in groupby(every, key=lambda one: one.device and one.device.gpu.key)]
    scenarios = chance.choice(several)
    answering = {
        version: engine.simulation.answering(version, scenarios[0].device, look()).recipe.version
        for version in shipped.versions(name)
    }
    return chance.choice([v for v, libraries in answering.items() if libraries in LIBRARIES[name]]), scenarios


@pytest.mark.parametrize("name", list(LIBRARIES))
def test_a_profile_drawn_by_the_day_is_what_the_engine_says(name: str) -> None:
    engine = engines.get(name)
    version, scenarios = drawn(name)
    asks = [Ask(one.device, one.model, one.arguments) for one in scenarios]
    for scenario, made in zip(scenarios, simulate_all(engine, version, asks, {}, lambda text: None), strict=True):
        tree = shipped.tree_of(name, version, scenario.key)
        if isinstance(made, Capture):
            assert tree is not None
            assert content(refresh.lasting(made, engine)) == content(tree), f"{name}@{version} {scenario.key}"
        else:
            assert tree is None
