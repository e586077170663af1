"""Which shipped profile holds vLLM's defaults for a GPU, and what follows from a setting that the user stated.

``get_batch_defaults`` in vllm/engine/arg_utils.py (0.10-0.33) and ``_set_cudagraph_sizes`` in vllm/config/vllm.py.
"""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import JsonValue

from engdiff.knowledge.gpus import Gpu
from engdiff.units import GIB

LARGE_BYTES = 70 * GIB
"""Of device memory, from which on a server takes larger batches and more requests; an A100 does not."""

BLACKWELL = (10, 0)


def like(gpu: Gpu) -> tuple[str, str]:
    """The shipped GPU of the same class, and why."""
    if gpu.memory_bytes < LARGE_BYTES or "a100" in gpu.name.lower():
        key = "a100-80gb" if gpu.memory_bytes >= LARGE_BYTES else "l4"
        return key, "defaults of a server on a GPU with less than 70 GiB, or on an A100"
    key = "b200" if gpu.compute_capability and gpu.compute_capability >= BLACKWELL else "h100-80gb"
    return key, "defaults of a server on a GPU with 70 GiB or more"


REQUESTS, SIZES = "scheduler.max_num_seqs", "graphs.capture_sizes"


def settled(
    version: str,  # noqa: ARG001 - the rule is the same in all releases that are known
    stated: Mapping[str, JsonValue],
    given: Mapping[str, JsonValue],
) -> Mapping[str, JsonValue]:
    """Defaults, what was stated, and graph sizes no larger than twice the requests."""
    found = {**given, **stated}
    sizes, requests = found.get(SIZES), found.get(REQUESTS)
    if found.get("model.enforce_eager") is True:
        return {**found, SIZES: []}
    if SIZES not in stated and REQUESTS in stated and isinstance(sizes, list) and isinstance(requests, int):
        found[SIZES] = [size for size in sizes if isinstance(size, int) and size <= 2 * requests]
    return found
