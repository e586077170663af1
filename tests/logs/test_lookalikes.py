"""Programs whose lines look like an engine's: none is taken for one."""

from __future__ import annotations

import pytest

from engdiff.errors import LogForeign
from engdiff.sources.log import read_text

VLLM_RS = (
    "vllm-rs-med1  | 2025-01-01T00:00:01.000000Z  WARN vllm_rs::utils::kvcache_allocator: KVCache Allocation: 8192 "
    "GPU blocks (48.00 GB), max usable kvcache tokens 524288, scheduling limits [2 seqs x 262144 tokens]\n"
    "vllm-rs-med1  | 2025-01-01T00:00:01.000000Z  INFO vllm_rs::core::engine: KVCache allocation planned!\n"
    "vllm-rs-med1  | The following batches for capture: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]\n"
    "Graph capturing: 100%|███████████████████████████| 15/15 [00:08<00:00, 4.95it/s]\n"
    "vllm-rs-med1  | Default pool usage: 82781.53 MB (current), 82781.53 MB (peak)\n"
)
ACCESS = 'INFO:     10.0.0.1:1 - "POST /v1/chat/completions HTTP/1.1" 200 OK\n' * 50
PROSE = "The KV cache of vLLM and SGLang is too small; CUDA out of memory. See --gpu-memory-utilization.\n"


@pytest.mark.parametrize(
    "log", [VLLM_RS, ACCESS, PROSE, "", "\n" * 1000], ids=["vllm.rs", "access", "prose", "", "empty"]
)
def test_refused(log: str) -> None:
    with pytest.raises(LogForeign):
        read_text(log.encode())
