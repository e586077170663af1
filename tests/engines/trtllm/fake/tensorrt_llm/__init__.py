"""Stands in for TensorRT-LLM in tests: the modules that the probe looks at, and a server that replays a log.

Own code, nothing of the engine: names and shapes as ``engdiff/engines/trtllm/probe.py`` has them from public sources.
It runs in the interpreter that ``tests/engines/trtllm/standin.py`` makes, never in that of the tests.
"""

from importlib.metadata import version

__version__ = version("tensorrt-llm")

print(f"[TensorRT-LLM] TensorRT LLM version: {__version__}", flush=True)
