"""One start, seen three ways: by the probe, over HTTP and in its log. Where they overlap they agree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from pathlib import Path
from urllib.parse import urljoin

import pytest

from engdiff.diff.tolerance import moved
from engdiff.engines.contract import LaunchPlan
from engdiff.references import EngineReference
from engdiff.schema.capture import Capture
from engdiff.schema.values import Known, Value
from engdiff.sources.acquire import Wishes, order
from engdiff.sources.attach import AttachWishes, attach
from engdiff.sources.launch import launch
from engdiff.sources.log import read_log
from tests.real.real_helpers import SMALL_POOL

pytestmark = pytest.mark.real

STARTS: tuple[tuple[str, tuple[str, ...], Mapping[str, str], tuple[str, ...]], ...] = (
    ("llamacpp", ("-np", "2", "-c", "2048"), {}, ("0.2.7", "2026.5.9093", "2026.8.10229", "2026.10.11549")),
    (
        "vllm",
        ("--max-model-len", "2048"),
        SMALL_POOL,
        ("0.12.0", "0.17.1", "0.20.2", "0.24.0", "0.28.0", "0.30.0", "0.32.0"),
    ),
    ("sglang", ("--max-total-tokens", "16384", "--enable-metrics"), {}, ("0.4.6", "0.5.4", "0.5.12", "0.5.23")),
)
"""Every engine that runs here, with releases from the oldest to the newest; another engine joins with one line."""


def starts() -> Iterator[object]:
    """The oldest and the newest of each engine; those between are for `make test-matrix`."""
    for engine, words, variables, versions in STARTS:
        for version in versions:
            marks = () if version in (versions[0], versions[-1]) else pytest.mark.matrix
            yield pytest.param(engine, version, words, variables, marks=marks)


LEAST_SHARED = {
    "llamacpp": {"probe/log": 8, "probe/attach": 3},
    "vllm": {"probe/log": 4, "probe/attach": 3},
    "sglang": {"probe/log": 20, "probe/attach": 20},
}
"""How many values at least are known both ways: an agreement on nothing is none."""


def known_values(capture: Capture) -> Iterator[tuple[str, Value]]:
    """Everything that can be said in more than one way."""
    if capture.identity.engine != "llamacpp":  # launched, it is the wheel's; the server knows its build only
        yield "version", capture.identity.version
    for key, setting in capture.settings.items():
        yield key, setting.final
    yield "attention", capture.runner.attention_backend
    for instance in capture.instances[:1]:
        for index, rank in enumerate(instance.ranks):
            for term in rank.ledger:
                yield f"ledger[{index}].{term.name}", term.bytes
            for pool in rank.pools:
                for name in ("bytes", "blocks", "block_tokens", "tokens", "max_concurrency", "concurrency_at_tokens"):
                    yield f"pool[{index}].{pool.name}.{name}", getattr(pool, name)


def shared(a: Capture, b: Capture) -> dict[str, tuple[Known, Known]]:
    """What both know."""
    left, right = dict(known_values(a)), dict(known_values(b))
    both = {key: (left[key], right[key]) for key in left.keys() & right.keys()}
    return {k: (x, y) for k, (x, y) in both.items() if isinstance(x, Known) and isinstance(y, Known)}


@pytest.mark.parametrize(
    ("engine", "version", "words", "variables"),
    list(starts()),
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_probe_attach_and_log_agree(
    engine: str, version: str, words: tuple[str, ...], variables: Mapping[str, str], tmp_path: Path
) -> None:
    log = tmp_path / "server.log"
    seen: dict[str, Capture] = {}

    def look(plan: LaunchPlan) -> None:
        seen["attach"] = attach(urljoin(plan.ready_url, "/"), AttachWishes(), lambda _: None)

    wishes = Wishes(model="tiny", arguments=words, variables=variables, keep_log=log)
    outcome = launch(order(EngineReference(engine, version), wishes, lambda _: None), lambda _: None, look)
    assert outcome.error is None
    seen["probe"] = outcome.capture
    seen["log"] = read_log((log,))
    assert seen["log"].failure is None
    assert seen["log"].reading is not None
    assert [start.ended for start in seen["log"].reading.starts] == ["ready"]
    for a, b in combinations(("probe", "attach", "log"), 2):
        both = shared(seen[a], seen[b])
        wrong = {key: (x.value, y.value) for key, (x, y) in both.items() if moved(x, y)}
        assert wrong == {}, f"{a} against {b}"
        assert len(both) >= LEAST_SHARED[engine].get(f"{a}/{b}", 1), f"{a}/{b}: {sorted(both)}"
