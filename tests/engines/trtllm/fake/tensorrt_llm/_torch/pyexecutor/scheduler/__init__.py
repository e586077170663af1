from .scheduler import BindCapacityScheduler, SimpleScheduler
from .scheduler_v2 import KVCacheV2Scheduler

__all__ = ["BindCapacityScheduler", "KVCacheV2Scheduler", "SimpleScheduler"]
