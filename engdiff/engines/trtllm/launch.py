"""How TensorRT-LLM's server is started with the probe in its processes, and which variables it reads."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from engdiff.engines import starting
from engdiff.engines.contract import LaunchPlan, LaunchRequest
from engdiff.engines.starting import LIBRARIES, beginning, without_flags, written
from engdiff.engines.trtllm import plugin
from engdiff.errors import UsageError
from engdiff.redact import redact_words

PREFIXES = (
    "TLLM_",
    "TRTLLM_",
    "TRT_LLM_",
    "ENABLE_PERFECT_ROUTER",
    "NVIDIA_",
    "NVSHMEM_",
    "UCX_",
    "OMPI_",
    "PMIX_",
    "PRTE_",
    "FORCE_DETERMINISTIC",
    "DISABLE_HARMONY_ADAPTER",
    *LIBRARIES,
)
"""Variables that TensorRT-LLM and the libraries under it read (tensorrt_llm 0.20 to newest)."""

ENGDIFF_DECIDES = ("--port", "--host")
"""The server listens where engdiff can reach it; these never change what is decided."""

SCRIPT = "trtllm-serve"
MODULE = "tensorrt_llm.commands.serve"
"""The script that the package installs, and the module behind it; both take the command ``serve`` (0.17 to newest)."""

START_LIMIT_SECONDS = 3600
"""An hour, and a guess: nobody here could measure one. Weights are read once, warm-up and graphs run twice."""

REASONS = {
    **starting.REASONS,
    "TLLM_LOG_LEVEL": "without it the log leaves out what was decided",
    "TRTLLM_NO_USAGE_STATS": "a capture sends nothing to anybody",
}

UNLESS_SET = {"TLLM_LOG_LEVEL": "INFO", "TRTLLM_NO_USAGE_STATS": "1"}


def plan(request: LaunchRequest) -> LaunchPlan:
    """The plan for one start. Raises :class:`~engdiff.errors.UsageError` for a server that does not speak HTTP."""
    if "--grpc" in request.arguments:
        raise UsageError("trtllm: `--grpc`: engdiff asks the server over HTTP", "leave --grpc out for the capture")
    out = request.folder / "probe"
    out.mkdir(parents=True, exist_ok=True)
    hook = written(request.folder / "hook", plugin.probe_files())
    added = _added(request, hook, out)
    words = without_flags(request.arguments, ENGDIFF_DECIDES)
    base = f"http://127.0.0.1:{request.port}"
    return LaunchPlan(
        argv=(
            *_program(request),
            "serve",
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
        probe_files=tuple(f"{stem}.json" for stem in (plugin.ARGUMENTS, plugin.LLM, f"{plugin.WORKER}0")),
        scrape={
            "version": f"{base}/version",
            "models": f"{base}/v1/models",
            "prometheus": f"{base}/prometheus/metrics",
            "one_token": f"{base}/health_generate",
            "metrics": f"{base}/metrics",
        },
        start_limit_seconds=START_LIMIT_SECONDS,
    )


def _program(request: LaunchRequest) -> tuple[str, ...]:
    """The script beside the interpreter; where there is none, or nobody can look, the module behind it."""
    script = request.interpreter.parent / SCRIPT
    if request.image is None and script.is_file():
        return (str(script),)
    return (str(request.interpreter), "-m", MODULE)


def _added(request: LaunchRequest, hook: Path, out: Path) -> dict[str, str]:
    """Variables that engdiff sets; a variable that the user set keeps its value."""
    unless_set = {name: value for name, value in UNLESS_SET.items() if name not in request.variables}
    return {**starting.added(request, hook, out), **unless_set}


def native_command(model: str, arguments: Sequence[str]) -> tuple[str, ...]:
    """The command as TensorRT-LLM's users write it."""
    return (SCRIPT, model, *redact_words(arguments))
