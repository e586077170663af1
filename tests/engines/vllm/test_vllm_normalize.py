"""From what one launch of vLLM showed to the parts of a capture; see test_vllm_recorded.py for a real launch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from engdiff.engines.contract import Observed
from engdiff.engines.vllm import normalize
from engdiff.schema import files
from engdiff.schema.capture import Capture
from engdiff.schema.values import Known, Unknown, number, plain

GIB = 2**30
Tree = dict[str, Any]
Observe = Callable[..., Observed]


@pytest.fixture
def seen(observe: Observe, base: Capture, cpu_core: Tree, arguments: Tree) -> Capture:
    return normalize.capture(observe({"core-0": cpu_core, "arguments": arguments}), base)


@pytest.mark.parametrize(
    ("key", "configured", "resolved", "effective", "origin"),
    [
        ("scheduler.max_num_seqs", 64, 64, 64, "user"),
        ("scheduler.max_num_batched_tokens", None, 2048, 2048, "derived"),
        ("scheduler.async_scheduling", True, False, None, "forced"),
        ("scheduler.class", None, None, "Scheduler", None),  # the parser here has no such flag
        ("model.max_model_len", None, 2048, None, "derived"),
        ("model.dtype", None, "float16", None, "derived"),
        ("kv.gpu_memory_utilization", None, 0.92, None, "default"),
        ("kv.prefix_caching", None, True, None, "derived"),
        ("compile.mode", "NONE", "NONE", None, "user"),
        ("graphs.mode", None, "NONE", None, "derived"),
        ("parallel.worker_class", None, None, "CPUWorker", None),
    ],
)
def test_layers(seen: Capture, key: str, configured: Any, resolved: Any, effective: Any, origin: str | None) -> None:
    setting = seen.settings[key]
    assert plain(setting.configured) == configured
    assert plain(setting.resolved) == resolved
    assert plain(setting.effective) == effective
    assert setting.origin == origin


def test_the_share_of_memory_that_a_property_resolves(
    observe: Observe, base: Capture, cpu_core: Tree, arguments: Tree
) -> None:
    cpu_core["config"]["cache_config"]["gpu_memory_utilization"] = None
    cpu_core["kv"]["utilisation"] = 1.0
    capture = normalize.capture(observe({"core-0": cpu_core, "arguments": arguments}), base)
    setting = capture.settings["kv.gpu_memory_utilization"]
    assert (plain(setting.final), setting.origin) == (1.0, "derived")
    assert isinstance(setting.effective, Known)
    assert setting.effective.evidence is not None
    assert setting.effective.evidence.where == "CacheConfig.resolved_gpu_memory_utilization"


def test_only_what_this_version_has(seen: Capture) -> None:
    assert "speculative.method" not in seen.settings
    assert set(seen.settings) <= set(normalize.KNOWLEDGE.names("0.32.0"))


@pytest.mark.parametrize(("text", "value"), [("2", 2 * GIB), ("0.5", GIB // 2), ("many", "many"), ("inf", "inf")])
def test_a_variable_is_written_in_the_settings_unit(
    text: str, value: Any, observe: Observe, base: Capture, cpu_core: Tree, arguments: Tree
) -> None:
    cpu_core["config"]["cache_config"]["kv_cache_memory_bytes"] = 2 * GIB
    probe = {"core-0": cpu_core, "arguments": arguments}
    setting = normalize.capture(observe(probe, VLLM_CPU_KVCACHE_SPACE=text), base).settings["kv.configured_bytes"]
    assert setting.configured is not None
    assert setting.configured.evidence is not None
    assert (setting.configured.value, setting.configured.evidence.where) == (value, "VLLM_CPU_KVCACHE_SPACE")
    assert setting.origin == ("user" if value == 2 * GIB else "forced")


def test_processes_and_who_owns_which_step(seen: Capture) -> None:
    (instance,) = seen.instances
    assert [(p.name, p.parent, plain(p.threads), p.steps) for p in instance.processes] == [
        ("front end", None, 10, ("http", "tokenise", "detokenise")),
        ("engine core", "front end", 20, ("schedule",)),
        ("worker", "engine core", 30, ("execute",)),
        ("resource tracker", "front end", 1, ()),
    ]


def test_without_workers_the_core_executes(observe: Observe, base: Capture) -> None:
    observed = observe({})
    alone = Observed(**{**vars(observed), "processes": observed.processes[:2]})
    core = normalize.capture(alone, base).instances[0].processes[1]
    assert (core.name, core.steps) == ("engine core", ("schedule", "execute"))


def test_devices_and_commit(observe: Observe, base: Capture, gpu_core: Tree, seen: Capture) -> None:
    identity = normalize.capture(observe({"core-0": gpu_core}), base).identity
    assert [(d.kind, d.name, number(d.memory_bytes)) for d in identity.devices] == [("gpu", "cuda:0", 80 * GIB)]
    assert plain(identity.commit) == "0123abc"
    assert seen.identity.devices == base.identity.devices


V1_CLASS = "vllm.v1.worker.gpu_model_runner.GPUModelRunner"
V2_CLASS = "vllm.v1.worker.gpu.model_runner.GPUModelRunner"
FALLBACK = "Model Runner V2 does not support LoRA; using the V1 model runner instead."


@pytest.mark.parametrize(
    ("asked", "cls", "log", "name", "because"),
    [
        ({"use_v2": False, "unsupported": []}, V1_CLASS, "", "V1", None),
        ({"use_v2": True, "unsupported": []}, V1_CLASS, "", "V2", None),
        ({}, V2_CLASS, "", "V2", None),
        ({}, V1_CLASS, "", "V1", None),
        ({"use_v2": {"unreadable": "x"}}, V2_CLASS, "", "V2", None),
        ({"use_v2": False, "unsupported": ["LoRA", "PP"]}, V1_CLASS, "", "V1", "LoRA, PP"),
        (
            {"use_v2": False, "unsupported": ["PP"]},
            V1_CLASS,
            f"INFO 12-02 15:00:00 [a.py:1] {FALLBACK}",
            "V1",
            FALLBACK,
        ),
    ],
)
def test_runner(
    asked: Tree, cls: str, log: str, name: str, because: str | None, observe: Observe, base: Capture, gpu_core: Tree
) -> None:
    gpu_core["runner"] = asked
    gpu_core["workers"][0]["runner_class"] = cls
    runner = normalize.capture(observe({"core-0": gpu_core}, log), base).runner
    assert (plain(runner.name), plain(runner.because)) == (name, because)
    assert plain(runner.attention_backend) == "FLASH_ATTN"


def test_graphs_and_phases(observe: Observe, base: Capture, gpu_core: Tree) -> None:
    gpu_core["config"]["compilation_config"] = {
        "cudagraph_mode": "FULL_AND_PIECEWISE",
        "cudagraph_capture_sizes": [1, 2],
    }
    log = "INFO 12-02 15:00:00 [x.py:1] Graph capturing finished in 4 secs, took 0.50 GiB\n"
    made = normalize.capture(observe({"core-0": gpu_core}, log), base)
    graphs = made.instances[0].ranks[0].graphs
    assert (plain(graphs.mode), plain(graphs.sizes), plain(graphs.captured)) == ("FULL_AND_PIECEWISE", [1, 2], 67)
    assert (number(graphs.bytes), number(graphs.seconds)) == (GIB / 2, 4)
    assert isinstance(graphs.bytes, Known)
    assert graphs.bytes.evidence is not None
    assert graphs.bytes.evidence.line == 1
    assert {p.name: number(p.seconds) for p in made.boot} == {"capture graphs": 4, "start to healthy": 12.34}


def test_what_the_user_typed_is_kept_as_the_engine_names_it(seen: Capture) -> None:
    assert seen.native["explicit"] == {
        "max_num_seqs": 64, "compilation_config": {"mode": "NONE"}, "async_scheduling": True,
    }  # fmt: skip
    flags = seen.native["flags"]
    assert isinstance(flags, dict)
    assert flags["headless"] == {"names": ["--headless"], "default": False, "choices": None, "takes": "flag"}


NONE_YET = {"unreadable": "RuntimeError: no"}


@pytest.mark.parametrize(
    ("probe", "ready", "notes"),
    [
        ({}, True, ["the probe wrote no arguments.json", "the probe wrote no core-0.json"]),
        ({}, False, []),
        ({"core-0": NONE_YET, "arguments": {}}, True, ["the probe could not read core-0: RuntimeError: no"]),
        ({"core-0": {}, "arguments": NONE_YET}, False, ["the probe could not read arguments: RuntimeError: no"]),
        ({"core-0": {"config": NONE_YET, "workers": NONE_YET, "kv": NONE_YET}, "arguments": {}}, True, []),
        ({"core-0": [1], "arguments": "text"}, True, []),
    ],
)
def test_what_the_probe_did_not_say_is_unknown(
    probe: Tree, ready: bool, notes: list[str], observe: Observe, base: Capture
) -> None:
    made = normalize.capture(observe(probe, ready=ready), base)
    assert made.notes[0] == "before"
    assert len(made.notes) == 1 + len(notes)
    assert all(said.startswith(note) for said, note in zip(made.notes[1:], notes, strict=True))
    assert isinstance(made.runner.name, Unknown)
    assert made.instances[0].ranks == ()
    assert isinstance(made.boot[-1].seconds, Known if ready else Unknown)
    assert files.parse(files.dump(made), "again", Capture) == made
