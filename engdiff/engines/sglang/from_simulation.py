"""From what SGLang's configuration code said of a GPU that is not there to the parts of a Capture."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import JsonValue

from engdiff.engines.contract import Observed
from engdiff.engines.probed import Tree, known, tree
from engdiff.engines.sglang import admission, held, layered
from engdiff.engines.simulated import NEEDS_DEVICE, cache, lines_said, warnings, weights
from engdiff.schema.capture import Capture, Graphs, Group, Instance, Pool, Rank, Runner, Setting, Term
from engdiff.schema.values import Evidence, Known, Unknown, Value, number

NO_MODEL_RUNNER = Unknown(because="no model runner was built")
NOT_SAID = Unknown(because="SGLang does not say which ones it considered")


def capture(observed: Observed, base: Capture) -> Capture:
    """``base`` with everything that the configuration decides, and nothing that a device would have to measure."""
    arguments, simulation = tree(observed.probe.get("arguments")), tree(observed.probe.get("simulation"))
    later, built = tree(simulation.get("later")), tree(simulation.get("built"))
    settings = _settings(observed, arguments, later)
    rank = Rank(
        device=observed.request.device,
        ledger=_ledger(built),
        pools=_pools(settings, built, later),
        graphs=_graphs(settings, arguments),
    )
    return base.model_copy(
        update={
            "native": _native(arguments, simulation, later),
            "settings": settings,
            "instances": (Instance(processes=(), ranks=(rank,)),) if arguments else (),
            "runner": _runner(settings),
            "admission": admission.rule(),
            "warnings": tuple(warnings(lines_said(simulation))),
            "notes": (*base.notes, *_notes(simulation)),
        }
    )


def _settings(observed: Observed, arguments: Tree, later: Tree) -> dict[str, Setting]:
    """The arguments as they resolved, and what the model runner would have made of them."""
    version = observed.request.version
    wrote = layered.Wrote(observed.plan.read_variables, tuple(observed.plan.added))
    return layered.settings(arguments, held.effective(_as_held(later), version), version, wrote)


def _as_held(later: Tree) -> dict[str, Any]:
    """What the scheduler's process would hold, in the probe's words, as far as it is known."""
    model = later.get("model") or {}
    runner = {"context_len": model.get("context_len"), "dtype": model.get("dtype")}
    sizes = later.get("capture_bs")
    if isinstance(sizes, list):
        runner["capture_bs"] = sizes
    classes = {"graph_runner": "CudaGraphRunner"} if isinstance(sizes, list) else {}
    return {"server_args": later.get("server_args") or {}, "runner": runner, "classes": classes}


def _native(arguments: Tree, simulation: Tree, later: Tree) -> dict[str, JsonValue]:
    parts: dict[str, JsonValue] = {
        "server_args": _without_drawn(arguments),
        "explicit": arguments.get("explicit"),
        "flags": arguments.get("flags"),
        "rules": arguments.get("rules"),
        "variables": simulation.get("variables"),
        "changed_by_scheduler": later.get("server_args"),
    }
    return {name: part for name, part in parts.items() if part}


SEED = "random_seed"


def _without_drawn(arguments: Tree) -> dict[str, JsonValue]:
    """The arguments without the seed that nobody wrote: SGLang draws another one each time."""
    resolved, explicit = arguments.get("resolved") or {}, arguments.get("explicit") or {}
    return {name: value for name, value in resolved.items() if name != SEED or name in explicit}


def _ledger(built: Tree) -> tuple[Term, ...]:
    return weights(_rule((built.get("weights") or {}).get("bytes"), "parameters and buffers on the meta device"))


def _rule(value: object, where: str) -> Value:
    """A number that the engine's own code gave without a device."""
    if isinstance(value, int):
        return Known(value=value, basis="engine rule", evidence=Evidence(source="simulation", where=where))
    return Unknown(because="the model could not be built without a device")


def _pools(settings: Mapping[str, Setting], built: Tree, later: Tree) -> tuple[Pool, ...]:
    tokens, layers = built.get("token_bytes") or {}, built.get("layers") or {}
    page = _final(settings, "kv.block_size")
    latent = (later.get("model") or {}).get("attention_arch") == "MLA"
    kinds: dict[str, Kind] = {**KINDS, **({"full": "mla"} if latent else {})}
    groups = tuple(_group(kinds[k], tokens[k], layers.get(k), page) for k in kinds if k in tokens)
    return cache(page, groups)


Kind = Literal["full", "mla", "sliding window", "other"]

KINDS: dict[str, Kind] = {"full": "full", "sliding window": "sliding window", "all": "other"}
"""Kinds of layers by which SGLang's own code gives the bytes of a token; some releases count two kinds as one."""


def _group(kind: Kind, token: int, layers: object, page: Value) -> Group:
    size = number(page)
    per_block = None if size is None else token * int(size)
    return Group(
        kind=kind,
        layers=_rule(layers, "layers that the cell size counts"),
        block_tokens=page,
        bytes_per_block=_rule(per_block, "cell size of a token x page_size"),
    )


def _graphs(settings: Mapping[str, Setting], arguments: Tree) -> Graphs:
    return Graphs(
        mode=_final(settings, "graphs.mode"),
        sizes=_final(settings, "graphs.capture_sizes"),
        prefill_sizes=_prefill_sizes(arguments.get("resolved") or {}),
        captured=NEEDS_DEVICE,
        bytes=NEEDS_DEVICE,
        seconds=NEEDS_DEVICE,
    )


PREFILL_SIZES = ("cuda_graph_config.prefill.bs", "piecewise_cuda_graph_tokens")
"""Where the arguments keep the token counts of graphs for prompts (server_args.py: from 0.5.14 on, before)."""


def _prefill_sizes(resolved: Tree) -> Value:
    for path in PREFILL_SIZES:
        found: Any = resolved
        for name in path.split("."):
            found = found.get(name) if isinstance(found, dict) else None
        if found is not None:
            return known(found, f"ServerArgs.{path}") or NEEDS_DEVICE
    return Unknown(because="the arguments hold no sizes of graphs for prompts")


def _final(settings: Mapping[str, Setting], key: str) -> Value:
    one = settings.get(key)
    return one.final if one else Unknown(because="the arguments do not hold it")


def _runner(settings: Mapping[str, Setting]) -> Runner:
    return Runner(
        name=NO_MODEL_RUNNER,
        because=NO_MODEL_RUNNER,
        attention_backend=_final(settings, "kernels.attention_backend"),
        candidates=NOT_SAID,
    )


def _notes(simulation: Tree) -> tuple[str, ...]:
    """What could not be asked without a scheduler's process."""
    later, built = simulation.get("later"), simulation.get("built")
    parts = {
        "what its model runner changes": later,
        **(later if isinstance(later, dict) else {}),
        "weights and cache": built,
        **(built if isinstance(built, dict) else {}),
    }
    return (*_not_its_own(built), *_not_asked(parts))


def _not_its_own(built: object) -> tuple[str, ...]:
    """SGLang passes over a model file that fails to import, and takes the library's model in its place."""
    name = built.get("model_class") if isinstance(built, dict) else None
    if not isinstance(name, str) or not name.startswith("Transformers"):
        return ()
    return (f"built with {name}, as this release has no class of its own for the model or failed to import it",)


def _not_asked(parts: Mapping[str, object]) -> tuple[str, ...]:
    return tuple(
        f"without a device it is not known {NOT_ASKED.get(name, name)}: {part['unreadable']}"
        for name, part in parts.items()
        if isinstance(part, dict) and "unreadable" in part
    )


NOT_ASKED = {
    "what its model runner changes": "what the model runner would change",
    "not_adjusted": "how the model runner would adjust the arguments",
    "weights and cache": "how large weights and cache are, as the model could not be built",
    "token_bytes": "how large a token is in the cache",
    "capture_bs": "which graph sizes it would capture",
}
