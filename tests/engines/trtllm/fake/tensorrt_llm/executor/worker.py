# ruff: noqa: TID252 - a package of its own, which mypy finds only below tests/
"""The worker's process: the profiling pass, then the executor that serves, until its parent goes."""

from __future__ import annotations

import sys

from .._torch.pyexecutor.py_executor import PyExecutor
from ..llmapi.llm_args import TorchLlmArgs

if __name__ == "__main__":
    args = TorchLlmArgs.model_validate_json(sys.stdin.readline())
    profiling = PyExecutor(args, blocks=129)
    profiling.is_warmup = True
    profiling.start_worker()
    PyExecutor(args).start_worker()
    print("ready", flush=True)
    sys.stdin.read()
