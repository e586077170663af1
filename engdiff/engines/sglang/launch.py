"""How SGLang's server is started with the probe in its processes, and which variables it reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from engdiff.engines import starting
from engdiff.engines.contract import DeviceKind, LaunchPlan, LaunchRequest
from engdiff.engines.site_hook import site_files, source
from engdiff.engines.starting import LIBRARIES, beginning, without_flags, written
from engdiff.knowledge.versions import holds
from engdiff.redact import redact_words

PREFIXES = ("SGLANG_", "SGL_", *LIBRARIES)
"""Variables that SGLang and the libraries under it read."""

ENGDIFF_DECIDES = ("--port", "--host")
"""The server listens where engdiff can reach it; these never change what is decided."""

START_LIMIT_SECONDS = 900
"""On a GPU graphs are captured and kernels tuned; on two busy cores a tiny model needed up to 80 s."""

READY = "The server is fired up and ready to roll!"
"""Said after the warm-up, in every version (entrypoints/http_server.py 0.4.6-0.5.23) at the level INFO. /health is no
sign: it answers at once in 0.4.6, and runs a request from 0.4.10 on."""

ASK_LIMIT_SECONDS = 3
"""Older releases end within one; newer ones wait for ever in the shutdown of their HTTP server (seen with 0.5.23)."""

PACKAGE = "engdiff.engines.sglang"
PROBE_MODULE = "engdiff_sglang_probe"
SUPPORT_MODULE = "engdiff_sglang_support"

LAST_WITHOUT_CPU_DEFAULTS = "0.4.6"
"""Up to here the arguments are resolved from the size of a GPU, and a machine without one fails."""


def plan(request: LaunchRequest) -> LaunchPlan:
    """The plan for one start."""
    out = request.folder / "probe"
    out.mkdir(parents=True, exist_ok=True)
    hook = written(request.folder / "hook", _hook_files(request.device))
    words, added_words = server_words(request.arguments, request.version, request.device)
    added = _added(request, hook, out)
    base = f"http://127.0.0.1:{request.port}"
    return LaunchPlan(
        argv=(
            str(request.interpreter),
            "-m",
            "sglang.launch_server",
            "--model-path",
            request.model,
            *words,
            *(word for pair in added_words for word in pair[0]),
            "--host",
            request.host,
            "--port",
            str(request.port),
        ),
        environ={**request.variables, **added},
        added={**{name: REASONS[name] for name in added}, **{" ".join(pair): why for pair, why in added_words}},
        native_command=native_command(request.model, words),
        read_variables=beginning(request.variables, PREFIXES),
        ready_url=f"{base}/v1/models",
        probe_output=out,
        probe_files=("arguments.json", "scheduler-dp0-pp0-tp0.json"),
        scrape={
            "server_info": f"{base}/server_info",
            "get_server_info": f"{base}/get_server_info",
            "model_info": f"{base}/model_info",
            "get_model_info": f"{base}/get_model_info",
            "models": f"{base}/v1/models",
            "metrics": f"{base}/metrics",
        },
        start_limit_seconds=START_LIMIT_SECONDS,
        ask_limit_seconds=ASK_LIMIT_SECONDS,
        ready_text="" if "--log-level" in {word.partition("=")[0] for word in words} else READY,
    )


CPU_ENGINE = "SGLANG_USE_CPU_ENGINE"

REASONS = {**starting.REASONS, CPU_ENGINE: "without it SGLang asks for a GPU even with --device cpu"}


def _added(request: LaunchRequest, hook: Path, out: Path) -> dict[str, str]:
    """Variables that engdiff sets; a variable that the user set keeps its value."""
    found = starting.added(request, hook, out)
    return found | cpu_variables(request.variables, request.device)


def cpu_variables(variables: Mapping[str, str], device: DeviceKind) -> dict[str, str]:
    """What makes SGLang answer for a CPU; a variable that the user set keeps its value."""
    return {CPU_ENGINE: "1"} if device == "cpu" and CPU_ENGINE not in variables else {}


Addition = tuple[tuple[str, ...], str]
"""Words that engdiff adds to the command line, and why."""


def server_words(arguments: Sequence[str], version: str, device: DeviceKind) -> tuple[tuple[str, ...], list[Addition]]:
    """The user's words without the address, and what a machine without a GPU needs besides."""
    words = without_flags(arguments, ENGDIFF_DECIDES)
    if device != "cpu":
        return words, []
    written = {word.partition("=")[0] for word in words}
    wanted: list[Addition] = [(("--device", "cpu"), "this machine has no GPU")]
    if holds(version, until=LAST_WITHOUT_CPU_DEFAULTS):
        why = f"SGLang {version} fails where there is no GPU to decide it by"
        wanted += [((flag, value), why) for flag, value in OLD_CPU_NEEDS.items()]
    return words, [pair for pair in wanted if pair[0][0] not in written]


OLD_CPU_NEEDS = {
    "--mem-fraction-static": "0.88",
    "--sampling-backend": "pytorch",
    "--attention-backend": "torch_native",
}
"""The share is its default for one GPU of up to 80 GiB, and what the next releases take on a CPU; the back ends are the
only ones that run there."""


def _hook_files(device: DeviceKind) -> dict[str, str]:
    """The probe, and on a CPU what stands in for CUDA's packages."""
    return {**probe_files(), **(support_files() if device == "cpu" else {})}


def probe_files() -> dict[str, str]:
    """The probe as a folder for ``PYTHONPATH``."""
    return site_files(source(PACKAGE, "probe.py"), PROBE_MODULE)


def support_files() -> dict[str, str]:
    """The stand-ins of a machine without a GPU."""
    return {f"{SUPPORT_MODULE}.py": source(PACKAGE, "support.py")}


def native_command(model: str, arguments: Sequence[str]) -> tuple[str, ...]:
    """The command as SGLang's users write it."""
    return ("python", "-m", "sglang.launch_server", "--model-path", model, *redact_words(arguments))
