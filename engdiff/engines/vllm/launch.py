"""How vLLM's server is started with the probe as a plugin, and which variables it reads."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from engdiff.engines import starting
from engdiff.engines.contract import LaunchPlan, LaunchRequest
from engdiff.engines.starting import LIBRARIES, beginning, without_flags, written
from engdiff.engines.vllm.plugin import PLUGIN, plugin_files
from engdiff.redact import redact_words

PREFIXES = ("VLLM_", *LIBRARIES)
"""Variables that vLLM and the libraries under it read."""

ENGDIFF_DECIDES = ("--port", "--host", "--uds")
"""The server listens where engdiff can reach it; these never change what is decided."""

START_LIMIT_SECONDS = 1200
"""A cold first start compiles kernels; on two busy cores a tiny model needed up to 150 s."""


def plan(request: LaunchRequest) -> LaunchPlan:
    """The plan for one start."""
    out = request.folder / "probe"
    out.mkdir(parents=True, exist_ok=True)
    plugin = written(request.folder / "plugin", plugin_files())
    added = _added(request, plugin, out)
    words = without_flags(request.arguments, ENGDIFF_DECIDES)
    base = f"http://127.0.0.1:{request.port}"
    return LaunchPlan(
        argv=(
            str(request.interpreter),
            "-m",
            "vllm.entrypoints.openai.api_server",
            "--model",
            request.model,
            *words,
            "--host",
            request.host,
            "--port",
            str(request.port),
        ),
        environ={**request.variables, **added},
        added={name: REASONS[name] for name in added},
        native_command=native_command(request.model, words),
        read_variables=beginning(request.variables, PREFIXES),
        ready_url=f"{base}/health",
        probe_output=out,
        probe_files=("arguments.json", "core-0.json"),
        scrape={"metrics": f"{base}/metrics", "models": f"{base}/v1/models", "version": f"{base}/version"},
        start_limit_seconds=START_LIMIT_SECONDS,
    )


REASONS = {
    **starting.REASONS,
    "VLLM_PLUGINS": "the user's list of plugins, and the probe",
    "VLLM_NO_USAGE_STATS": "a capture sends nothing to anybody",
}


def _added(request: LaunchRequest, plugin: Path, out: Path) -> dict[str, str]:
    """Variables that engdiff sets; a variable that the user set keeps its value."""
    found = starting.added(request, plugin, out)
    if plugins := request.variables.get("VLLM_PLUGINS"):
        found["VLLM_PLUGINS"] = f"{plugins},{PLUGIN}"
    if "VLLM_NO_USAGE_STATS" not in request.variables:
        found["VLLM_NO_USAGE_STATS"] = "1"
    return found


def native_command(model: str, arguments: Sequence[str]) -> tuple[str, ...]:
    """The command as vLLM's users write it."""
    return ("vllm", "serve", model, *redact_words(arguments))
