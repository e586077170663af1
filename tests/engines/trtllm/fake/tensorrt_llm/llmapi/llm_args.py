"""The arguments, with the defaults that tests look at."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class CapacitySchedulerPolicy(StrEnum):
    GUARANTEED_NO_EVICT = "GUARANTEED_NO_EVICT"
    MAX_UTILIZATION = "MAX_UTILIZATION"


class KvCacheConfig(Strict):
    enable_block_reuse: bool = True
    free_gpu_memory_fraction: float = 0.9
    tokens_per_block: int = 32
    dtype: str = "auto"
    host_cache_size: int | None = None
    max_gpu_total_bytes: int = 0
    use_kv_cache_manager_v2: bool | str = False


class SchedulerConfig(Strict):
    capacity_scheduler_policy: CapacitySchedulerPolicy = CapacitySchedulerPolicy.GUARANTEED_NO_EVICT
    context_chunking_policy: str | None = None


class CudaGraphConfig(Strict):
    batch_sizes: list[int] | None = None
    max_batch_size: int = 128
    enable_padding: bool = False


class TorchLlmArgs(Strict):
    model: str
    backend: str = "pytorch"
    dtype: str = "auto"
    tensor_parallel_size: int = 1
    pipeline_parallel_size: int = 1
    trust_remote_code: bool = False
    max_batch_size: int | None = 2048
    max_num_tokens: int | None = 8192
    max_seq_len: int | None = None
    enable_chunked_prefill: bool = False
    disable_overlap_scheduler: bool = False
    attn_backend: str = "TRTLLM"
    enable_iter_perf_stats: bool = False
    kv_cache_config: KvCacheConfig = Field(default_factory=KvCacheConfig)
    scheduler_config: SchedulerConfig = Field(default_factory=SchedulerConfig)
    cuda_graph_config: CudaGraphConfig | None = Field(default_factory=CudaGraphConfig)

    def model_post_init(self, context: Any) -> None:
        graphs = self.cuda_graph_config
        if graphs is not None and graphs.batch_sizes is None:
            graphs.batch_sizes = [size for size in (1, 2, 4, 8, 16, 32, 64, 128) if size <= graphs.max_batch_size]
