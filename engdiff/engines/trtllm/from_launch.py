"""From what one launch of TensorRT-LLM showed to the parts of a Capture, its three layers kept apart.

configured: the words and the YAML file. resolved: the arguments of the ``LLM`` in the process that made it. effective:
what the worker holds, else what its log states; the worker changes more than it tells its parent, so nothing effective
is ever taken from the arguments.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pydantic import JsonValue

from engdiff.engines.contract import Observed
from engdiff.engines.layers import exact
from engdiff.engines.probed import Tree, tree
from engdiff.engines.processes import Role, processes
from engdiff.engines.starting import whole_boot
from engdiff.engines.trtllm import admission, from_log, http, log, plugin, three_layers, worker
from engdiff.engines.trtllm.seen import SERVE, Seen, look
from engdiff.schema.capture import Capture, Identity, Instance, Runner, Setting
from engdiff.schema.values import Known, Value


def capture(observed: Observed, base: Capture) -> Capture:
    """``base`` with everything that the probe, the endpoints and the log say."""
    seen, start = look(observed), log.launched(observed.log)
    stated = from_log.capture(start, base)
    settings, notes = three_layers.settings(seen, stated)
    answers = {name: body for name, body in observed.endpoints.items() if name in ANSWERS and body}
    return stated.model_copy(
        update={
            "identity": _identity(base, stated, seen),
            "launch": base.launch,
            "native": _native(stated, seen),
            "settings": settings,
            "instances": _instances(observed, stated, seen, settings),
            "runner": _runner(stated, seen, settings),
            "admission": admission.rule(settings.get(three_layers.POLICY)),
            "boot": (*stated.boot, whole_boot(observed)),
            "warnings": tuple(start.warnings),
            "run_summary": http.capture(answers, base).run_summary if answers else base.run_summary,
            "notes": (*stated.notes, *_unread(observed, seen), *notes, *_metrics_notes(observed)),
        }
    )


ANSWERS = {"version", "models", "prometheus", "metrics"}


# --- identity and native ----------------------------------------------------------------------------------------


def _identity(base: Capture, stated: Capture, seen: Seen) -> Identity:
    """The version by the package's metadata where that is known, never by the banner in the log."""
    version = base.identity.version if isinstance(base.identity.version, Known) else stated.identity.version
    devices = worker.devices(seen.workers) or stated.identity.devices or base.identity.devices
    return stated.identity.model_copy(update={"version": version, "devices": devices})


def _native(stated: Capture, seen: Seen) -> dict[str, JsonValue]:
    """Everything as TensorRT-LLM names it. Settings are named below ``config``, the arguments of the ``LLM``."""
    flags = [f for f in seen.asked.get("flags") or () if isinstance(f, dict)]
    asked: Tree = {name: seen.asked[name] for name in ("front", "argv", "keywords", "variables") if name in seen.asked}
    parts: dict[str, JsonValue] = {
        "config": tree(seen.made.get("args")) or stated.native.get("config"),
        "class": seen.made.get("class"),
        "executor": seen.made.get("executor"),
        "set": seen.made.get("set"),
        "arguments": asked,
        "flags": {str(f.get("dest")): {k: v for k, v in f.items() if k != "dest"} for f in flags},
        "yaml": {**seen.yaml.tree} if seen.yaml else None,
        "workers": [{k: v for k, v in one.items() if k != "worker_args"} for one in seen.workers],
        "worker_config": seen.workers[0].get("worker_args") if seen.workers else None,
    }
    return {**stated.native, **{name: part for name, part in parts.items() if part}}


# --- instances --------------------------------------------------------------------------------------------------


def _instances(
    observed: Observed, stated: Capture, seen: Seen, settings: Mapping[str, Setting]
) -> tuple[Instance, ...]:
    logged = stated.instances[0].ranks if stated.instances else ()
    longest = settings["model.max_model_len"].final if "model.max_model_len" in settings else None
    ranks = worker.ranks(seen.workers, logged, longest) if seen.workers else logged
    running = processes(observed.processes, ROLES)
    return (Instance(processes=running, ranks=ranks),) if ranks or running else ()


ROLES: tuple[Role, ...] = (
    ("mpi4py", "worker", ("schedule", "execute")),
    ("tensorrt_llm.executor", "worker", ("schedule", "execute")),
    ("orted", "MPI daemon", ()),
    ("prted", "MPI daemon", ()),
    ("prterun", "MPI daemon", ()),
    ("resource_tracker", "resource tracker", ()),
    (SERVE, "front end", ("http", "tokenise", "detokenise")),
    ("tensorrt_llm.commands.serve", "front end", ("http", "tokenise", "detokenise")),
)
"""Which process owns which step, by its words (tensorrt_llm/llmapi/mpi_session.py: mpi4py starts the workers)."""


# --- runner, boot, notes ----------------------------------------------------------------------------------------


def _runner(stated: Capture, seen: Seen, settings: Mapping[str, Setting]) -> Runner:
    if not seen.workers:
        return stated.runner
    backend = settings.get("kernels.attention_backend")
    attention: Value = backend.final if backend else stated.runner.attention_backend
    return stated.runner.model_copy(
        update={"name": exact("PyTorch", "probe", "PyExecutor is of this back end"), "attention_backend": attention}
    )


def _unread(observed: Observed, seen: Seen) -> Iterator[str]:
    """What the probe or the file did not tell, with the reason."""
    for stem, what in FILES.items():
        value = observed.probe.get(stem)
        if value is None and observed.ready_at is not None:
            yield f"the probe wrote no {stem}.json: {what}"
        elif isinstance(value, dict) and "unreadable" in value:
            yield f"the probe could not read {stem}: {value['unreadable']}"
    if seen.yaml and seen.yaml.unread:
        yield f"{seen.yaml.path} ({seen.yaml.flag}) was not read: {seen.yaml.unread}"


FILES: Mapping[str, str] = {
    plugin.ARGUMENTS: "what the user wrote is read from the command line alone",
    plugin.LLM: "the resolved arguments are unknown where the log does not print them",
    f"{plugin.WORKER}0": "what the worker does is unknown where its log does not state it",
}


def _metrics_notes(observed: Observed) -> Iterator[str]:
    if "one_token" not in observed.endpoints:
        return
    yield (
        "engdiff asked its own server for one token (/health_generate) and read /metrics after it; a reading takes "
        "the statistics out of their queue, and nobody else reads this server"
    )
    if not (observed.endpoints.get("metrics") or "").strip().strip("[]").strip():
        yield "/metrics holds no iteration: TensorRT-LLM keeps them only with enable_iter_perf_stats: true in the YAML"
