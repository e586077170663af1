# ruff: noqa: TID252 - a package of its own, which mypy finds only below tests/
from __future__ import annotations

from ...llmapi.llm_args import KvCacheConfig


class KVCacheManager:
    def __init__(self, config: KvCacheConfig, blocks: int, max_seq_len: int) -> None:
        self.blocks_in_primary_pool = blocks
        self.tokens_per_block = config.tokens_per_block
        self.max_seq_len = max_seq_len
        self.enable_block_reuse = config.enable_block_reuse


class KVCacheManagerV2:
    def __init__(self, config: KvCacheConfig, blocks: int, max_seq_len: int) -> None:
        self.max_blocks = blocks
        self.tokens_per_block = config.tokens_per_block
        self.max_seq_len = max_seq_len
        self.enable_block_reuse = config.enable_block_reuse
