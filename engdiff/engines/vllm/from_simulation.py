"""From what vLLM's configuration code said of a GPU that is not there to the parts of a Capture."""

from __future__ import annotations

import re

from engdiff.engines.contract import Observed
from engdiff.engines.layers import exact
from engdiff.engines.probed import Tree, tree, unreadable
from engdiff.engines.simulated import NEEDS_DEVICE, cache, lines_said, warnings, weights
from engdiff.engines.vllm import admission, memory, normalize
from engdiff.engines.vllm.normalize import value_of
from engdiff.knowledge.versions import holds
from engdiff.schema.capture import Capture, Graphs, Instance, Pool, Rank, Runner, Setting, Term
from engdiff.schema.values import Known, Unknown, Value


def capture(observed: Observed, base: Capture) -> Capture:
    """``base`` with everything that the configuration decides, and nothing that a device would have to measure."""
    core, arguments = tree(observed.probe.get("core-0")), tree(observed.probe.get("arguments"))
    simulation = tree(observed.probe.get("simulation"))
    built = tree(simulation.get("built"))
    said = lines_said(simulation)
    return base.model_copy(
        update={
            "native": normalize.native(core, arguments),
            "settings": _settings(normalize.settings(observed, core, arguments, []), built),
            "instances": (Instance(processes=(), ranks=(_rank(core, built),)),) if core else (),
            "runner": _runner(core, built, said, observed.request.version),
            "admission": admission.rule(core),
            "warnings": tuple(warnings(said)),
            "notes": (*base.notes, *_notes(simulation), *_not_built(core, built)),
        }
    )


LATER = {
    "kv.layout": "from 0.30 on the engine core settles it from what its workers report",
    "kv.gpu_memory_utilization": "on a CPU the worker resolves its share of the NUMA node when it starts",
}
"""Settings that a boot may change after the configuration was resolved (vllm/v1/engine/core.py 0.30.0, 0.32.0;
vllm/v1/worker/cpu_worker.py 0.32.0)."""


def _settings(found: dict[str, Setting], built: Tree) -> dict[str, Setting]:
    """With the block size that the platform settled on once the model was built, and what a boot may still change."""
    settled = {
        key: one.model_copy(update={"because": LATER[key]}) if key in LATER and one.origin != "user" else one
        for key, one in found.items()
    }
    size, block = built.get("block_size"), settled.get("kv.block_size")
    if size is not None and block is not None:
        where = "cache_config.block_size, once the model was built"
        settled["kv.block_size"] = block.model_copy(update={"effective": exact(size, "probe", where)})
    return settled


def _notes(simulation: Tree) -> tuple[str, ...]:
    built = simulation.get("built")
    if failed := unreadable(built):
        return (f"the model could not be built without a device, so weights and cache are unknown: {failed}",)
    if failed := unreadable(tree(built).get("pool")):
        return (f"the engine made no pool of the size that was asked for: {failed}",)
    return ()


def _not_built(core: Tree, built: Tree) -> tuple[str, ...]:
    speculative = (core.get("config") or {}).get("speculative_config") or {}
    if not built or not speculative.get("draft_model_config"):
        return ()
    return ("the draft model was not built: its weights and its layers of the cache are not among those that are told",)


def _rank(core: Tree, built: Tree) -> Rank:
    sized = tree(built.get("pool"))
    if "num_blocks" in sized:
        asked = {**core, "kv": sized}
        ledger = memory.ledger(asked, {})
        pools = memory.pool(asked, ledger)
        return Rank(device="cuda", ledger=(*_ledger(built), *ledger), pools=pools, graphs=_graphs(core))
    return Rank(device="cuda", ledger=_ledger(built), pools=_pools(built), graphs=_graphs(core))


def _ledger(built: Tree) -> tuple[Term, ...]:
    return weights(
        memory.known((built.get("weights") or {}).get("bytes"), "parameters on the meta device", "engine rule")
    )


def _pools(built: Tree) -> tuple[Pool, ...]:
    groups = tuple(memory.group_of(one, "engine rule") for one in built.get("groups") or ())
    return cache(value_of(built.get("block_size"), "cache_config.block_size"), groups)


def _graphs(core: Tree) -> Graphs:
    compilation = (core.get("config") or {}).get("compilation_config") or {}
    return Graphs(
        mode=value_of(compilation.get("cudagraph_mode"), "compilation_config.cudagraph_mode"),
        sizes=value_of(compilation.get("cudagraph_capture_sizes"), "compilation_config.cudagraph_capture_sizes"),
        prefill_sizes=normalize.ONE_LIST,
        captured=NEEDS_DEVICE,
        bytes=NEEDS_DEVICE,
        seconds=NEEDS_DEVICE,
    )


CANDIDATES = re.compile(
    r"(?:attention backend|Using \w+ backend|Overriding with \w+) out of potential backends: [\[(](.*?)[\])]"
)
"""vllm/platforms/cuda.py, 0.12.0 to 0.33.0, and rocm.py, 0.18.0 to 0.33.0."""


def _candidates(said: list[str]) -> Value:
    for line in said:
        if found := CANDIDATES.search(line):
            return exact(found[1].replace("'", ""), "log", line)
    return Unknown(because="this version does not say which backends it considered")


def _runner(core: Tree, built: Tree, said: list[str], version: str) -> Runner:
    runner = core.get("runner") or {}
    use = runner.get("use_v2")
    backends = ", ".join(built.get("backends") or ()) or None
    return Runner(
        name=exact("V2" if use else "V1", "probe", "VllmConfig.use_v2_model_runner")
        if isinstance(use, bool)
        else _opt_in(core, version),
        because=normalize.unsupported(core),
        attention_backend=value_of(backends, "static_forward_context[].attn_backend"),
        candidates=_candidates(said),
    )


LAST_OPT_IN = "0.21.0"
"""Up to here a variable alone decides; from 0.22 on the configuration tells (vllm/config/vllm.py 0.21.0, 0.22.0)."""


def _opt_in(core: Tree, version: str) -> Known | Unknown:
    """Where the configuration does not tell."""
    if not holds(version, until=LAST_OPT_IN):
        return Unknown(because="this release does not say which model runner it takes")
    value = (core.get("variables") or {}).get("VLLM_USE_V2_MODEL_RUNNER")
    return exact("V2" if value in (True, 1, "1") else "V1", "probe", "envs.VLLM_USE_V2_MODEL_RUNNER")
