"""Fields of a block, each read as the kind it must be or refused with its line."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from engdiff.deployments.told import told
from engdiff.deployments.yaml_file import Block, Value
from engdiff.errors import DeploymentUnreadable


@dataclass(frozen=True)
class Reader:
    """Reads fields of one file, whose name its errors give."""

    path: Path

    def fault(self, block: Block, key: str, problem: str, advice: str) -> DeploymentUnreadable:
        """The error for one key."""
        return DeploymentUnreadable(self.path, f"`{told(key)}` {problem}", advice, block.lines.get(key))

    def text(self, block: Block, key: str) -> str:
        """A text; empty where there is none."""
        value = block.get(key)
        if isinstance(value, str) or value is None:
            return value or ""
        raise self.fault(block, key, "must be text", "quote text that starts with { or [ or holds `: `")

    def block(self, block: Block, key: str) -> Block:
        """A mapping; empty where there is none."""
        value = block.get(key)
        if isinstance(value, Block):
            return value
        if value is None:
            return Block()
        raise self.fault(block, key, "must be a mapping", "write it as `name: value` lines")

    def blocks(self, block: Block, key: str) -> list[Block]:
        """A list of mappings; empty where there is none."""
        value = block.get(key)
        items = value if isinstance(value, list) else [] if value is None else [value]
        if blocks := [item for item in items if isinstance(item, Block)]:
            return blocks
        if not items:
            return []
        raise self.fault(block, key, "must be a list of mappings", "write it as `- name: ...` items")

    def words(self, block: Block, key: str) -> tuple[str, ...]:
        """A list of texts; empty where there is none."""
        value = block.get(key)
        items = [] if value is None else value
        if not isinstance(items, list):
            raise self.fault(block, key, "must be a list", 'write each word as an item: ["vllm", "serve", "MODEL"]')
        return tuple(self._word(block, key, item) for item in items)

    def split(self, block: Block, key: str, text: str) -> tuple[str, ...]:
        """The words of a text, as docker compose splits them."""
        try:
            return tuple(shlex.split(text.replace("\\\n", " ")))
        except ValueError as error:
            raise self.fault(
                block, key, f"cannot be split into words: {error}", "close the quote, or write a list of words"
            ) from None

    def _word(self, block: Block, key: str, item: Value) -> str:
        if isinstance(item, str):
            return item
        raise self.fault(block, key, "holds an item that is not text", 'quote it: - \'{"a": 1}\', - "--flag: x"')
