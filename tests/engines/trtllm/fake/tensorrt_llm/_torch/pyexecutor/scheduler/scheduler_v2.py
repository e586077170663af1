# ruff: noqa: TID252 - a package of its own, which mypy finds only below tests/
from __future__ import annotations

from ....llmapi.llm_args import CapacitySchedulerPolicy


class KVCacheV2Scheduler:
    def __init__(self, policy: CapacitySchedulerPolicy) -> None:
        self.policy = CapacitySchedulerPolicy.MAX_UTILIZATION
        self.chunking_enabled = False
