"""The probe as a folder for ``PYTHONPATH``."""

from __future__ import annotations

from engdiff.engines.site_hook import site_files, source

MODULE = "engdiff_trtllm_probe"

ARGUMENTS = "trtllm-arguments"
LLM = "trtllm-llm"
WORKER = "trtllm-worker-"
"""Stems of what the probe writes; the worker's is followed by its rank. They name the engine: probes of several
engines may write into one folder."""


def probe_files() -> dict[str, str]:
    """The probe, what probes have in common, and the hook that brings both into every process."""
    return site_files(source("engdiff.engines.trtllm", "probe.py"), MODULE)
