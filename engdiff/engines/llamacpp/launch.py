"""How llama.cpp's server is started from a wheel: the words after ``--`` mean what llama-server's users mean."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from importlib.resources import files

from engdiff.engines.contract import LaunchPlan, LaunchRequest
from engdiff.engines.llamacpp import flags
from engdiff.errors import UnknownFlag
from engdiff.knowledge.versions import holds
from engdiff.redact import redact_words

HOST_LIST_SINCE = "2026.10"
"""The field ``hostname`` became the list ``hostnames``."""

VERBOSITY_WITH_MEMORY_LINES = 4
"""From about b9294 on, level 3 (the default) no longer prints KV and buffer sizes."""

PREFIXES = ("LLAMA_ARG_", "LLAMA_", "GGML_", "OMP_", "GOMP_", "KMP_", "CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES")
"""Variables that llama-server, ggml and OpenMP read."""


IN_IMAGE = "/app/llama-server"
"""Where the project's images keep it (.devops/*.Dockerfile, since December 2024)."""

SAYS_VERBOSITY = ("-lv", "--verbosity", "--log-verbosity", "-v", "--verbose", "--log-verbose")


def plan(request: LaunchRequest) -> LaunchPlan:
    """The plan for one start. Raises :class:`~engdiff.errors.UnknownFlag` for a word that this version lacks.

    An image holds llama-server itself and no Python: the words go to it as they are, and there is no probe.
    """
    return _plan_in_image(request) if request.image else _plan_of_wheel(request)


def _plan_in_image(request: LaunchRequest) -> LaunchPlan:
    wanted = {
        ("-lv", str(VERBOSITY_WITH_MEMORY_LINES)): (SAYS_VERBOSITY, "so that the log states buffer sizes"),
        ("--metrics",): (("--metrics",), "so that counters can be read"),
    }
    added = {words: why for words, (said, why) in wanted.items() if not set(said) & set(request.arguments)}
    address = ("--host", request.host, "--port", str(request.port))
    words = (*request.arguments, *(word for words in added for word in words))
    return _plan(
        request,
        (IN_IMAGE, "-m", request.model, *words, *address),
        {" ".join(words): why for words, why in added.items()},
        probe_files=(),
    )


def _plan_of_wheel(request: LaunchRequest) -> LaunchPlan:
    translation = translate(request.arguments, request.variables, request.version)
    fields, added = _fields(request, translation)
    out = request.folder / "probe"
    out.mkdir(parents=True, exist_ok=True)
    script = request.folder / "engdiff_llamacpp_probe.py"
    with (files("engdiff.engines.llamacpp") / "probe.py").open("rb") as source, script.open("wb") as target:
        shutil.copyfileobj(source, target)
    plan_file = request.folder / "plan.json"
    plan_file.write_text(json.dumps({"fields": fields, "out": str(out), "observe": True}), encoding="utf-8")
    return _plan(request, (str(request.interpreter), "-u", str(script), str(plan_file)), added, ("server.json",))


def _plan(
    request: LaunchRequest, argv: tuple[str, ...], added: Mapping[str, str], probe_files: tuple[str, ...]
) -> LaunchPlan:
    base = f"http://127.0.0.1:{request.port}"
    return LaunchPlan(
        argv=argv,
        environ=dict(request.variables),
        added=added,
        native_command=native_command(request.model, request.arguments),
        read_variables={k: v for k, v in request.variables.items() if k.startswith(PREFIXES)},
        ready_url=f"{base}/health",
        probe_output=request.folder / "probe",
        probe_files=probe_files,
        scrape={
            "props": f"{base}/props",
            "models": f"{base}/v1/models",
            "metrics": f"{base}/metrics",
            "slots": f"{base}/slots",
        },
        start_limit_seconds=600,
    )


def translate(arguments: Sequence[str], variables: Mapping[str, str], version: str) -> flags.Translation:
    """The user's words and variables as CommonParams fields."""
    try:
        return flags.translate(arguments, variables, version)
    except flags.FlagError as error:
        raise UnknownFlag("llamacpp", error.argument, error.reason, error.suggestion) from None


def _fields(request: LaunchRequest, translation: flags.Translation) -> tuple[dict[str, object], dict[str, str]]:
    """Every field to set, and those among them that engdiff adds, with the reason."""
    fields: dict[str, object] = dict(flags.server_defaults(request.version))
    fields.update(translation.fields)
    added: dict[str, str] = {}

    def add(name: str, value: object, reason: str) -> None:
        if name not in translation.fields:
            fields[name] = value
            added[name] = f"{value}: {reason}"

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    add("verbosity", VERBOSITY_WITH_MEMORY_LINES, "so that the log states buffer sizes")
    add("endpoint_metrics", True, "so that counters can be read")
    add("endpoint_slots", True, "so that slots can be read")
    add(
        "cpuparams.n_threads", max(1, cores // 2), "half the cores: a wheel's OpenMP stalls when other work shares them"
    )
    fields["model.path"] = request.model
    fields["port"] = request.port
    if holds(request.version, since=HOST_LIST_SINCE):
        fields["hostnames"] = [request.host]
    else:
        fields["hostname"] = request.host
    return fields, added


def native_command(model: str, arguments: Sequence[str]) -> tuple[str, ...]:
    """The command as llama-server's users write it."""
    return ("llama-server", "-m", model, *redact_words(arguments))
