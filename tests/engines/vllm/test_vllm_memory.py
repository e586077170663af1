"""How vLLM's memory adds up, by version and platform."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engdiff.engines.vllm import memory
from engdiff.schema.capture import Term
from engdiff.schema.values import Known, Unknown, number, plain

GIB = 2**30
Tree = dict[str, Any]


def sizes(terms: tuple[Term, ...]) -> dict[str, float | None]:
    return {term.name: number(term.bytes) for term in terms}


def test_gpu_to_026(gpu_core: Tree) -> None:
    terms = memory.ledger(gpu_core, gpu_core["workers"][0])
    assert sizes(terms) == {
        "device memory": 80 * GIB,
        "vLLM may use": 72 * GIB,
        "weights": 15 * GIB,
        "activation peak": 2 * GIB,
        "outside torch": 3 * GIB,
        "graphs": GIB,
        "KV cache": 50 * GIB,
        "unexplained": GIB,
    }
    assert [t.kind for t in terms][:3] == ["capacity", "limit", "use"]


def test_gpu_from_027(gpu_core: Tree) -> None:
    worker = gpu_core["workers"][0]
    worker["memory"] |= {"total_consumed": 19 * GIB, "peak_activation_memory": 3 * GIB}
    terms = memory.ledger(gpu_core, worker)
    assert sizes(terms) == {
        "device memory": 80 * GIB,
        "vLLM may use": 72 * GIB,
        "consumed": 19 * GIB,
        "activation peak": 3 * GIB,
        "graphs": GIB,
        "KV cache": 50 * GIB,
    }
    (pool,) = memory.pool(gpu_core, terms)
    assert isinstance(pool.bytes, Known)
    assert pool.bytes.high is not None
    assert pool.bytes.high - 50 * GIB == pytest.approx(0.02 * 22 * GIB), "graphs are in the peak already"


@pytest.mark.parametrize(
    ("version", "charged", "draws_on", "unexplained"),
    [
        ("0.18.1", True, "activation peak", 2 * GIB),
        ("0.18.1", False, None, 2 * GIB),
        ("0.19.0", True, "vLLM may use", GIB),
        ("0.19.0", False, None, 2 * GIB),
        ("0.26.0", True, "vLLM may use", GIB),
        ("0.26.0", None, None, 2 * GIB),
    ],
)
def test_what_the_estimate_of_graphs_draws_on(
    version: str, charged: bool | None, draws_on: str | None, unexplained: int, gpu_core: Tree
) -> None:
    gpu_core |= {"versions": {"vllm": version}, "variables": {memory.CHARGED_IF: charged}}
    terms = memory.ledger(gpu_core, gpu_core["workers"][0])
    (graphs,) = [t for t in terms if t.name == "graphs"]
    assert graphs.draws_on == draws_on
    assert ("not known" in graphs.meaning) == (charged is None)
    assert sizes(terms)["unexplained"] == unexplained


def test_a_pool_that_is_sized_after_warm_up(gpu_core: Tree) -> None:
    gpu_core["config"]["cache_config"]["enable_extensible_kv_cache"] = True
    gpu_core["kv"]["available_bytes"] = 54 * GIB
    (rest,) = [t for t in memory.ledger(gpu_core, gpu_core["workers"][0]) if t.name == "kept after warm-up"]
    assert number(rest.bytes) == 4 * GIB
    assert "margin" in rest.meaning


def test_gpu_with_a_line_missing_claims_no_balance(gpu_core: Tree) -> None:
    gpu_core["kv"]["tensor_bytes"] = None
    terms = memory.ledger(gpu_core, gpu_core["workers"][0])
    assert "unexplained" not in sizes(terms)
    assert sizes(terms)["KV cache"] is None


def test_cpu(cpu_core: Tree) -> None:
    assert sizes(memory.ledger(cpu_core, cpu_core["workers"][0])) == {
        "memory of the node": 24 * GIB,
        "vLLM may use": 22 * GIB,
        "process of the worker": 21 * GIB - 1000,
        "KV cache": GIB,
        "less than one block": 1000,
    }


def test_old_cpu(cpu_core: Tree) -> None:
    cpu_core["workers"][0] |= {"memory": {"rank": 0}, "node_memory": None}
    assert sizes(memory.ledger(cpu_core, cpu_core["workers"][0])) == {
        "KV cache space": GIB + 1000,
        "KV cache": GIB,
        "less than one block": 1000,
    }


@pytest.mark.parametrize("platform", ["cpu_core", "gpu_core"])
def test_an_explicit_size(platform: str, request: pytest.FixtureRequest) -> None:
    core: Tree = request.getfixturevalue(platform)
    core["config"]["cache_config"]["kv_cache_memory_bytes"] = 2 * GIB
    core["kv"] |= {"available_bytes": 2 * GIB, "tensor_bytes": 2 * GIB}
    terms = memory.ledger(core, core["workers"][0])
    assert sizes(terms) == {"KV cache asked for": 2 * GIB, "KV cache": 2 * GIB}
    (pool,) = memory.pool(core, terms)
    assert isinstance(pool.bytes, Known)
    assert (pool.bytes.basis, pool.bytes.low) == ("exact", None)


@pytest.mark.parametrize("platform", ["cpu_core", "gpu_core"])
def test_what_draws_on_a_limit_adds_up_to_it(platform: str, request: pytest.FixtureRequest) -> None:
    core: Tree = request.getfixturevalue(platform)
    terms = memory.ledger(core, core["workers"][0])
    limit = next(t for t in terms if t.kind == "limit")
    assert sum(number(t.bytes) or 0 for t in terms if t.draws_on == limit.name) == number(limit.bytes)


def test_pool(gpu_core: Tree) -> None:
    terms = memory.ledger(gpu_core, gpu_core["workers"][0])
    (pool,) = memory.pool(gpu_core, terms)
    assert [plain(v) for v in (pool.blocks, pool.block_tokens, pool.tokens, pool.max_concurrency)] == [
        8192, 128, 512 * 2048, 512.0,
    ]  # fmt: skip
    assert plain(pool.concurrency_at_tokens) == 2048
    assert isinstance(pool.bytes, Known)
    assert pool.bytes.basis == "measured"
    assert pool.bytes.low is not None
    assert pool.bytes.high is not None
    assert pool.bytes.high - 50 * GIB == 50 * GIB - pool.bytes.low == pytest.approx(0.02 * 21 * GIB)
    (group,) = pool.groups
    assert (group.kind, plain(group.layers), plain(group.bytes_per_block)) == ("full", 4, 4 * 32768)
    assert group.detail == {"spec": "FullAttentionSpec", "num_kv_heads": 2, "dtype": "torch.float16"}


@pytest.mark.parametrize(
    ("spec", "kind"),
    [
        ("FullAttentionSpec", "full"),
        ("SlidingWindowSpec", "sliding window"),
        ("ChunkedLocalAttentionSpec", "chunked"),
        ("MLAAttentionSpec", "mla"),
        ("MambaSpec", "state"),
        ("CrossAttentionSpec", "cross"),
        ("TeapotSpec", "other"),
    ],
)
def test_groups(cpu_core: Tree, spec: str, kind: str) -> None:
    cpu_core["kv"]["groups"] = [{"spec": spec, "layers": None, "block_size": 16}, {"unreadable": "gone"}]
    (pool,) = memory.pool(cpu_core, ())
    (group,) = pool.groups
    assert group.kind == kind
    assert isinstance(group.bytes_per_block, Unknown)
    assert plain(pool.block_tokens) == 16


def test_no_pool() -> None:
    assert memory.pool({}, ()) == ()
    assert memory.pool({"kv": {"available_bytes": 5}}, ()) == ()
    (pool,) = memory.pool({"kv": {"num_blocks": {"unreadable": "gone"}}}, ())
    assert all(isinstance(v, Unknown) for v in (pool.bytes, pool.blocks, pool.tokens, pool.block_tokens))


NUMBERS = st.none() | st.integers(0, 100 * GIB)
COUNTED = (
    "requested_memory",
    "requested_cpu_memory",
    "peak_activation_memory",
    "non_torch_memory",
    "total_consumed",
    "cudagraph_memory_estimate",
)
MEMORY = st.fixed_dictionaries({}, optional=dict.fromkeys(COUNTED, NUMBERS))


@given(MEMORY, NUMBERS, NUMBERS, NUMBERS, NUMBERS)
def test_property_a_ledger_whose_lines_are_known_adds_up(
    counted: Tree, weights: int | None, total: int | None, pool: int | None, budget: int | None
) -> None:
    core = {"kv": {"tensor_bytes": pool, "available_bytes": budget}}
    worker = {
        "memory": counted,
        "runner": {"model_memory_usage": weights},
        "snapshot": {"total_memory": total},
        "node_memory": {"total_memory": total},
    }
    terms = memory.ledger(core, worker)
    limit = next(t for t in terms if t.kind == "limit")
    parts = [number(t.bytes) for t in terms if t.draws_on == limit.name]
    whole = number(limit.bytes)
    if whole is not None and all(part is not None for part in parts):
        assert sum(part or 0 for part in parts) == whole
