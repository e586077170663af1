"""What the probe makes of objects that are shaped as vLLM's are, by version."""

from __future__ import annotations

from types import SimpleNamespace as Object

import pytest

from engdiff.engines.vllm import probe


@pytest.mark.parametrize(
    ("tensors", "held"),
    [
        pytest.param([Object(size=4), Object(size=6)], 10, id="0.12: one allocation each"),
        pytest.param(
            [Object(size=4, offset=0, block_stride=0), Object(size=6, offset=0, block_stride=0)], 10, id="0.24: each"
        ),
        pytest.param(
            [Object(size=10, offset=0, block_stride=5), Object(size=10, offset=2, block_stride=5)],
            10,
            id="0.24: packed",
        ),
        pytest.param(
            [
                Object(size=10, offset=0, block_stride=2, host_resident=False),
                Object(size=10, offset=4, block_stride=2, host_resident=False),
                Object(size=99, offset=0, block_stride=2, host_resident=True),
            ],
            10,
            id="0.30: one allocation on the device, one on the host",
        ),
    ],
)
def test_bytes_of_the_pool(tensors: list[Object], held: int) -> None:
    assert probe.tensor_bytes(tensors) == held


@pytest.mark.parametrize(("cache", "share"), [(Object(resolved_gpu_memory_utilization=0.92), 0.92), (Object(), None)])
def test_the_share_of_memory_that_was_not_written(cache: Object, share: float | None) -> None:
    core = Object(scheduler=Object(), vllm_config=Object(cache_config=cache), available_gpu_memory_for_kv_cache=10)
    assert probe.kv_cache(core).get("utilisation") == share
