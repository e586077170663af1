# ruff: noqa: TID252 - a package of its own, which mypy finds only below tests/
"""The ``LLM``: its arguments, and a worker in a process of its own."""

from __future__ import annotations

from typing import Any

from ..executor import Proxy
from ..scenario import replay
from .llm_args import TorchLlmArgs


class BaseLLM:
    def __init__(self, model: str, tokenizer: str | None = None, **kwargs: Any) -> None:
        for name in kwargs:
            if name not in TorchLlmArgs.model_fields:
                raise ValueError(f"{type(self).__name__} got invalid argument: {name}")
        self.args = TorchLlmArgs(model=model, **kwargs)
        replay()
        self._executor = Proxy(self.args.model_dump_json())

    def shutdown(self) -> None:
        self._executor.shutdown()


class _TorchLLM(BaseLLM):
    def __init__(self, model: str, **kwargs: Any) -> None:
        super().__init__(model, **kwargs)


class LLM(_TorchLLM):
    pass
