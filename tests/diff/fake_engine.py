"""An engine whose knowledge is a few tables in the test: what the tables do is tested here, not what they say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from engdiff import engines
from engdiff.engines.vllm import engine as vllm
from engdiff.knowledge.tables import Knowledge


@dataclass(frozen=True)
class FakeKnowledge(Knowledge):
    """Tables by file name: ``{"noise": {"paths": [...]}}``. Names are vLLM's own."""

    tables: Mapping[str, dict[str, Any]] = field(default_factory=dict)

    def _read(self, name: str) -> dict[str, Any]:
        if name == "native.toml":
            return super()._read(name)
        return self.tables.get(name.removesuffix(".toml"), {})

    def __hash__(self) -> int:
        return id(self)


def use(monkeypatch: pytest.MonkeyPatch, **tables: dict[str, Any]) -> None:
    """Make ``vllm`` an engine with these tables."""
    fake = replace(vllm.ENGINE, knowledge=FakeKnowledge(vllm.ENGINE.knowledge.package, tables))
    monkeypatch.setattr(engines, "get", lambda name: fake)


def change(key: str, since: str = "0.31.0", **fields: Any) -> dict[str, Any]:
    """A row of ``changes.toml``."""
    row = {"key": key, "since": since, "kind": "default", "summary": "it moved", "matters": "it costs", "source": "x"}
    return {**row, **fields}
