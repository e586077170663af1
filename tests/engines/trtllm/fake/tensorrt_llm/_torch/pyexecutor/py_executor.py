# ruff: noqa: TID252 - a package of its own, which mypy finds only below tests/
from __future__ import annotations

from typing import Any

from ...llmapi.llm_args import TorchLlmArgs
from ...scenario import scenario
from .model_engine import PyTorchModelEngine
from .resource_manager import KVCacheManager, KVCacheManagerV2
from .scheduler import BindCapacityScheduler, KVCacheV2Scheduler, SimpleScheduler


class TorchSampler:
    """The default."""


class PyExecutor:
    def __init__(self, args: TorchLlmArgs, blocks: int | None = None) -> None:
        second = args.kv_cache_config.use_kv_cache_manager_v2 is True
        longest = scenario().get("max_seq_len", (args.max_seq_len or 4096) + 1)
        manager: Any = KVCacheManagerV2 if second else KVCacheManager
        self.global_rank = 0
        self.device_id = 0
        self.llm_args = args
        self.max_batch_size = args.max_batch_size
        self.max_num_tokens = args.max_num_tokens
        self.max_seq_len = longest
        self.is_warmup = False
        self.disable_overlap_scheduler = args.disable_overlap_scheduler
        self.event_loop = self._executor_loop if args.disable_overlap_scheduler else self._executor_loop_overlap
        self.model_engine = PyTorchModelEngine(args)
        self.sampler = TorchSampler()
        self.kv_cache_manager = manager(args.kv_cache_config, blocks or scenario().get("blocks", 1000), longest)
        policy = args.scheduler_config.capacity_scheduler_policy
        self.scheduler: Any = (
            KVCacheV2Scheduler(policy)
            if second
            else SimpleScheduler(BindCapacityScheduler(8, self.kv_cache_manager, None, policy))
        )

    def start_worker(self) -> None:
        """Nothing to start."""

    def _executor_loop(self) -> None: ...

    def _executor_loop_overlap(self) -> None: ...

    def get_kv_cache_capacity(self) -> dict[str, int]:
        return {"max_num_blocks": getattr(self.kv_cache_manager, "max_blocks", 0)}
