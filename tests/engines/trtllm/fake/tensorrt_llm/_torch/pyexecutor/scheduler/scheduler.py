# ruff: noqa: TID252 - a package of its own, which mypy finds only below tests/
from __future__ import annotations

from typing import Any

from ....llmapi.llm_args import CapacitySchedulerPolicy


class BindCapacityScheduler:
    """Its policy goes into C++ and cannot be read again."""

    def __init__(
        self,
        max_num_requests: int,
        kv_cache_manager: Any,
        peft_cache_manager: Any,
        scheduler_policy: CapacitySchedulerPolicy = CapacitySchedulerPolicy.GUARANTEED_NO_EVICT,
    ) -> None:
        self.kv_cache_manager = kv_cache_manager


class SimpleScheduler:
    def __init__(self, capacity_scheduler: BindCapacityScheduler) -> None:
        self.capacity_scheduler = capacity_scheduler
