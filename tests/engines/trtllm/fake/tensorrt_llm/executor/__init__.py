# ruff: noqa: TID252 - a package of its own, which mypy finds only below tests/
"""Starts the worker and waits until it is ready."""

from __future__ import annotations

import os
import subprocess
import sys

from ..scenario import fault


class Proxy:
    def __init__(self, arguments: str) -> None:
        environ = {k: v for k, v in os.environ.items() if k != "PYTHONPATH" or not fault("bare_worker")}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tensorrt_llm.executor.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environ,
            text=True,
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(arguments + "\n")
        self.process.stdin.flush()
        if not any(line.strip() == "ready" for line in self.process.stdout):
            raise RuntimeError("Executor worker returned error")

    def shutdown(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()
