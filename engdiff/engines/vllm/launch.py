"""How vLLM's server is started with the probe as a plugin, and which variables it reads."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from engdiff.engines.contract import LaunchPlan, LaunchRequest
from engdiff.engines.vllm.plugin import PLUGIN, plugin_files
from engdiff.redact import redact_words

PREFIXES = (
    "VLLM_",
    "HF_",
    "HUGGING_FACE_",
    "TRANSFORMERS_",
    "TORCH",
    "PYTORCH_",
    "INDUCTOR_",
    "TRITON_",
    "FLASHINFER_",
    "NCCL_",
    "CUDA_",
    "HIP_",
    "ROCR_",
    "GLOO_",
    "RAY_",
    "OMP_",
    "KMP_",
    "MKL_",
    "GOMP_",
    "LD_PRELOAD",
    "DG_JIT_",
    "LMCACHE_",
)
"""Variables that vLLM and the libraries under it read."""

ENGDIFF_DECIDES = ("--port", "--host", "--uds")
"""The server listens where engdiff can reach it; these never change what is decided."""

START_LIMIT_SECONDS = 1200
"""A cold first start compiles kernels; on two busy cores a tiny model needed up to 150 s."""


def plan(request: LaunchRequest) -> LaunchPlan:
    """The plan for one start."""
    out = request.folder / "probe"
    out.mkdir(parents=True, exist_ok=True)
    plugin = _write_plugin(request.folder / "plugin")
    added = _added(request, plugin, out)
    words = without_address(request.arguments)
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
            "127.0.0.1",
            "--port",
            str(request.port),
        ),
        environ={**request.variables, **added},
        added={name: REASONS[name] for name in added},
        native_command=native_command(request.model, words),
        read_variables=user_variables(request.variables),
        ready_url=f"{base}/health",
        probe_output=out,
        probe_files=("arguments.json", "core-0.json"),
        scrape={"metrics": f"{base}/metrics", "models": f"{base}/v1/models", "version": f"{base}/version"},
        start_limit_seconds=START_LIMIT_SECONDS,
    )


REASONS = {
    "ENGDIFF_PROBE_OUT": "where the probe writes",
    "PYTHONPATH": "so that vLLM finds the probe as a plugin",
    "PATH": "so that tools of the engine's own environment come first",
    "VLLM_PLUGINS": "the user's list of plugins, and the probe",
    "VLLM_NO_USAGE_STATS": "a capture sends nothing to anybody",
    "HF_HUB_OFFLINE": "the model is a local folder",
}


def _added(request: LaunchRequest, plugin: Path, out: Path) -> dict[str, str]:
    """Variables that engdiff sets; a variable that the user set keeps its value."""
    variables = request.variables
    added = {
        "ENGDIFF_PROBE_OUT": str(out),
        "PYTHONPATH": os.pathsep.join(filter(None, (str(plugin), variables.get("PYTHONPATH", "")))),
        "PATH": os.pathsep.join(filter(None, (str(request.interpreter.parent), variables.get("PATH", "")))),
    }
    if plugins := variables.get("VLLM_PLUGINS"):
        added["VLLM_PLUGINS"] = f"{plugins},{PLUGIN}"
    if "VLLM_NO_USAGE_STATS" not in variables:
        added["VLLM_NO_USAGE_STATS"] = "1"
    if Path(request.model).is_dir() and "HF_HUB_OFFLINE" not in variables:
        added["HF_HUB_OFFLINE"] = "1"
    return added


def _write_plugin(folder: Path) -> Path:
    """The probe where vLLM's interpreter will look for plugins."""
    for name, text in plugin_files().items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def without_address(arguments: Sequence[str]) -> tuple[str, ...]:
    """The words without the address to listen on, which is engdiff's to choose."""
    out: list[str] = []
    skip = False
    for word in arguments:
        name, equals, _ = word.partition("=")
        if skip:
            skip = False
        elif name in ENGDIFF_DECIDES:
            skip = not equals
        else:
            out.append(word)
    return tuple(out)


def native_command(model: str, arguments: Sequence[str]) -> tuple[str, ...]:
    """The command as vLLM's users write it."""
    return ("vllm", "serve", model, *redact_words(arguments))


def user_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Those variables that vLLM reads."""
    return {k: v for k, v in environ.items() if k.startswith(PREFIXES)}
