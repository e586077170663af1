"""From what one launch of SGLang showed to the parts of a Capture: the log first, made exact by the probe."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import JsonValue

from engdiff.engines.contract import Observed
from engdiff.engines.probed import known, tree
from engdiff.engines.processes import Role, processes
from engdiff.engines.sglang import admission, from_log, held, http, layered, log
from engdiff.engines.starting import whole_boot
from engdiff.logs.launched import launched
from engdiff.schema.capture import Capture, Instance, Runner, Setting

Tree = Mapping[str, Any]


def capture(observed: Observed, base: Capture) -> Capture:
    """``base`` with everything that the probe, the endpoints and the log say."""
    said = launched(observed.log, log.FORMAT)
    told = from_log.capture(said, base)
    answered = http.capture({name: body for name, body in observed.endpoints.items() if body}, base)
    arguments, schedulers = tree(observed.probe.get("arguments")), held.schedulers(observed.probe)
    settings = _settings(observed, arguments, schedulers) or told.settings
    return base.model_copy(
        update={
            "native": _native(arguments, schedulers, told),
            "settings": settings,
            "instances": _instances(observed, told, schedulers, settings),
            "runner": _runner(told, schedulers),
            "admission": admission.rule(),
            "boot": (*(told.boot or answered.boot), whole_boot(observed)),
            "warnings": tuple(said.warnings),
            "run_summary": answered.run_summary,
            "notes": (*base.notes, *_notes(observed, schedulers)),
        }
    )


def _notes(observed: Observed, schedulers: Sequence[Tree]) -> tuple[str, ...]:
    """What the probe could not read, and what stood in for something else."""
    out = []
    arguments = observed.probe.get("arguments")
    if observed.ready_at is not None:
        out += ["the probe wrote no arguments.json; settings are as of the log"] if arguments is None else []
        out += ["the probe wrote nothing in a scheduler; memory is as of the log"] if not schedulers else []
    for name, value in observed.probe.items():
        if isinstance(value, dict) and "unreadable" in value:
            out.append(f"the probe could not read {name}: {value['unreadable']}")
    stood_in = sorted({name for tree in schedulers for name in tree.get("substituted") or ()})
    if stood_in:
        out.append(f"stand-ins were imported for {', '.join(stood_in)}")
    return tuple(out)


def _settings(observed: Observed, arguments: Tree, schedulers: Sequence[Tree]) -> dict[str, Setting]:
    if not arguments and not schedulers:
        return {}
    version = observed.request.version
    effective = held.effective(schedulers[0], version) if schedulers else {}
    wrote = layered.Wrote(observed.plan.read_variables, tuple(observed.plan.added))
    return layered.settings(arguments, effective, version, wrote)


def _native(arguments: Tree, schedulers: Sequence[Tree], told: Capture) -> dict[str, JsonValue]:
    """Everything as SGLang names it; flags by field, so that a pin can be written in this version's own words."""
    first = schedulers[0] if schedulers else {}
    parts: dict[str, JsonValue] = {
        "server_args": arguments.get("resolved") or told.native.get("server_args"),
        "explicit": arguments.get("explicit"),
        "flags": arguments.get("flags"),
        "rules": arguments.get("rules"),
        "variables": first.get("variables"),
        "scheduler": {k: v for k, v in first.items() if k not in ("server_args", "variables", "pid", "at", "seconds")},
        "changed_by_scheduler": _changed(arguments, first),
    }
    return {name: part for name, part in parts.items() if part}


def _changed(arguments: Tree, scheduler: Tree) -> dict[str, JsonValue]:
    """Fields that the scheduler holds otherwise than the front end resolved them."""
    resolved, own = arguments.get("resolved") or {}, scheduler.get("server_args")
    if not resolved or not isinstance(own, dict):
        return {}
    return {name: value for name, value in own.items() if name in resolved and resolved[name] != value}


# --- instances --------------------------------------------------------------------------------------------------


def _instances(
    observed: Observed, told: Capture, schedulers: Sequence[Tree], settings: Mapping[str, Setting]
) -> tuple[Instance, ...]:
    ranks = told.instances[0].ranks if told.instances else ()
    made = tuple(
        held.exact_rank(ranks[index] if index < len(ranks) else None, tree, settings)
        for index, tree in enumerate(schedulers)
    )
    role = told.instances[0].role if told.instances else "serve"
    return (Instance(role=role, processes=processes(observed.processes, ROLES), ranks=made or ranks),)


ROLES: tuple[Role, ...] = (
    ("sglang::scheduler", "scheduler", ("schedule", "execute")),
    ("sglang::detokenizer", "detokenizer", ("detokenise",)),
    ("sglang::data_parallel", "data-parallel controller", ()),
    ("sglang::tokenizer_worker", "tokenizer worker", ("http", "tokenise")),
    ("sglang.launch_server", "front end", ("http", "tokenise")),
    ("resource_tracker", "resource tracker", ()),
)
"""Which process owns which step, by its title (``setproctitle`` in managers/*.py, 0.4.6-0.5.23)."""


# --- runner and boot --------------------------------------------------------------------------------------------


def _runner(told: Capture, schedulers: Sequence[Tree]) -> Runner:
    if not schedulers:
        return told.runner
    first = schedulers[0]
    name = first.get("runner_class")
    return told.runner.model_copy(
        update={
            "name": known(name.rsplit(".", 1)[-1], f"type(model_runner): {name}")
            if isinstance(name, str)
            else told.runner.name,
            "attention_backend": held.attention(first) or told.runner.attention_backend,
        }
    )
