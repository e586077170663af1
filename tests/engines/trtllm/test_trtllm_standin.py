"""The whole way from the command line to the capture, against a stand-in: logs replayed in time, and faults."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from engdiff import errors
from engdiff.diff.compare import compare
from engdiff.engines.trtllm.record import NOT_VERIFIED
from engdiff.schema.capture import Capture
from engdiff.schema.diff import Diff
from engdiff.schema.files import load_capture
from engdiff.schema.values import Known, Unknown, plain
from engdiff.sources.order import Outcome
from engdiff.sources.probe import read_probe
from engdiff.sources.probe_export import export_probe
from tests.cli.conftest import Call
from tests.cli.conftest import call as call
from tests.engines.conftest import Read
from tests.engines.trtllm import logs
from tests.engines.trtllm.conftest import NEW, OLD, Start
from tests.engines.trtllm.facts import final, gib, pool, rank, term
from tests.engines.trtllm.standin import Scenario

BOOT = Scenario(log=tuple(logs.pytorch(ready=False)), blocks=14318, max_seq_len=131073)
V2 = "kv_cache_config: {use_kv_cache_manager_v2: true}\n"
POLICY = "scheduler.capacity_policy"
FRACTION = "kv.gpu_memory_utilization"


def good(outcome: Outcome) -> Capture:
    assert outcome.error is None, outcome.error
    return outcome.capture


def layers(capture: Capture, key: str) -> tuple[Any, ...]:
    """configured, resolved, effective and origin."""
    setting = capture.settings[key]
    return plain(setting.configured), plain(setting.resolved), plain(setting.effective), setting.origin


# --- what a start gives -----------------------------------------------------------------------------------------


def test_a_start_in_all_its_parts(start: Start) -> None:
    capture = good(start("--max_batch_size", "8", "--max_num_tokens", "4096", scenario=BOOT))
    assert plain(capture.identity.version) == OLD, "by the package's metadata; the banner of the log says another"
    assert capture.launch.command[1:2] == ("serve",)
    assert capture.launch.command[0].endswith("bin/trtllm-serve")
    assert capture.launch.native_command[0] == "trtllm-serve"
    assert capture.launch.native_command[2:] == ("--max_batch_size", "8", "--max_num_tokens", "4096")
    assert capture.launch.added_by_engdiff["TRTLLM_NO_USAGE_STATS"] == "a capture sends nothing to anybody"
    assert (plain(pool(capture).blocks), plain(pool(capture).tokens)) == (14318, 458176)
    assert gib(pool(capture).bytes) == 55.93
    assert term(capture, "weights") == 15.20
    assert rank(capture).device == "cuda:0"
    assert [p.name for p in capture.instances[0].processes] == ["front end", "worker"]
    assert capture.instances[0].processes[1].parent == "front end"
    assert plain(capture.runner.name) == "PyTorch"
    assert plain(capture.runner.attention_backend) == "TRTLLM"
    assert str(plain(capture.admission.rule)).startswith("GUARANTEED_NO_EVICT")
    assert [w.text[:20] for w in capture.warnings] == ["Both free_gpu_memory"]
    assert capture.notes.count(NOT_VERIFIED) == 1
    assert not any("probe" in note for note in capture.notes)
    config: Any = capture.native["config"]
    assert config["kv_cache_config"]["tokens_per_block"] == 32


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("scheduler.max_num_seqs", (8, 8, 8, "user")),
        ("scheduler.max_num_batched_tokens", (None, 8192, 8192, "default")),
        (FRACTION, (None, 0.9, None, "default")),
        ("kv.prefix_caching", (False, False, False, "user")),
        ("kv.block_size", (None, 32, 32, "default")),
        ("scheduler.async_scheduling", (False, False, False, "user")),
        ("scheduler.chunked_prefill", (True, True, True, "user")),
        (POLICY, ("MAX_UTILIZATION", "MAX_UTILIZATION", "MAX_UTILIZATION", "user")),
        ("graphs.capture_sizes", (None, [1, 2, 4, 8, 16, 32, 64, 128], [1, 2, 4, 8], "derived")),
        ("model.max_model_len", (2048, 2048, 2049, "user")),
    ],
)
def test_three_layers(start: Start, key: str, expected: tuple[Any, ...]) -> None:
    yaml = (
        "kv_cache_config: {enable_block_reuse: false}\ndisable_overlap_scheduler: true\n"
        "scheduler_config: {capacity_scheduler_policy: MAX_UTILIZATION}\n"
    )
    words = ("--max_batch_size", "8", "--enable_chunked_prefill", "--max_seq_len", "2048")
    capture = good(start(*words, yaml=yaml, scenario=Scenario(max_seq_len=2049)))
    assert layers(capture, key) == expected


@pytest.mark.parametrize("version", [OLD, NEW])
@pytest.mark.parametrize("written", [None, "GUARANTEED_NO_EVICT"])
def test_the_second_cache_manager_runs_another_policy(start: Start, version: str, written: str | None) -> None:
    yaml = V2 + (f"scheduler_config: {{capacity_scheduler_policy: {written}}}\n" if written else "")
    capture = good(start(yaml=yaml, version=version))
    origin = "forced" if written else "derived"
    assert layers(capture, POLICY) == (written, "GUARANTEED_NO_EVICT", "MAX_UTILIZATION", origin)
    assert "KVCacheManagerV2" in str(capture.settings[POLICY].because)
    assert final(capture, "scheduler.class") == "KVCacheV2Scheduler"
    assert str(plain(capture.admission.rule)).startswith("MAX_UTILIZATION")


def test_no_policy_is_taken_from_the_arguments(start: Start) -> None:
    """Neither the worker nor the log says which one runs: then nobody knows it."""
    capture = good(start(scenario=Scenario(fault="bare_worker")))
    effective = capture.settings[POLICY].effective
    assert plain(capture.settings[POLICY].resolved) == "GUARANTEED_NO_EVICT"
    assert isinstance(effective, Unknown)
    assert "KVCacheManagerV2" in effective.because
    assert isinstance(capture.admission.rule, Unknown)
    assert any("trtllm-worker-0.json" in note for note in capture.notes)


# --- the YAML and the words -------------------------------------------------------------------------------------

REUSE_OFF = "kv_cache_config: {enable_block_reuse: false}\n"
BOTH = "max_batch_size: 8\nkv_cache_config: {free_gpu_memory_fraction: 0.8}\n"
WORDS = ("--kv_cache_free_gpu_memory_fraction", "0.7", "--max_batch_size", "16")


@pytest.mark.parametrize(
    ("version", "yaml", "key", "expected", "because"),
    [
        (OLD, BOTH, FRACTION, (0.7, 0.8, "forced"), "the YAML of --config overrides the command line"),
        (OLD, BOTH, "scheduler.max_num_seqs", (16, 8, "forced"), "the YAML of --config overrides the command line"),
        (OLD, REUSE_OFF, FRACTION, (0.7, 0.9, "forced"), "shallow merge"),
        (OLD, REUSE_OFF, "scheduler.max_num_seqs", (16, 16, "user"), None),
        (NEW, BOTH, FRACTION, (0.7, 0.7, "user"), None),
        (NEW, REUSE_OFF, FRACTION, (0.7, 0.7, "user"), None),
    ],
)
def test_which_of_them_holds(
    start: Start, version: str, yaml: str, key: str, expected: tuple[Any, ...], because: str | None
) -> None:
    capture = good(start(*WORDS, version=version, yaml=yaml))
    configured, resolved, _, origin = layers(capture, key)
    assert (configured, resolved, origin) == expected
    assert (because or "") in str(capture.settings[key].because or "")
    about = [note for note in capture.notes if note.startswith(f"{key}: ")]
    overridden = version == NEW and "0.8" in yaml
    assert len(about) == (1 if because or overridden else 0)
    assert not overridden or "the command line overrides the YAML" in about[0]


@pytest.mark.parametrize("yaml", [BOTH, REUSE_OFF])
def test_a_word_that_no_longer_holds_is_a_finding(start: Start, yaml: str) -> None:
    held, dropped = (good(start(*WORDS, version=version, yaml=yaml)) for version in (NEW, OLD))
    diff = compared(held, dropped)
    found = {finding.key: finding for finding in diff.findings}
    assert (found[FRACTION].kind, found[FRACTION].asked) == ("PolicyForced", False)
    assert "YAML" in " ".join(found[FRACTION].evidence)
    back = compared(dropped, held)
    assert any(f.key == FRACTION and not f.asked for f in back.findings), "the other way round it is one as well"


def compared(old: Capture, new: Capture) -> Diff:
    return compare(old, new, old_label="old", new_label="new")


def test_the_policy_of_the_second_manager_is_a_finding(start: Start) -> None:
    """Issue 16827's pair of policies, here by the manager."""
    yaml = "scheduler_config: {capacity_scheduler_policy: GUARANTEED_NO_EVICT}\n"
    diff = compared(good(start(yaml=yaml)), good(start(yaml=yaml + V2, version=NEW)))
    found = next(f for f in diff.findings if f.key == POLICY)
    assert (found.kind, plain(found.old), plain(found.new)) == (
        "PolicyForced", "GUARANTEED_NO_EVICT", "MAX_UTILIZATION",
    )  # fmt: skip


# --- endpoints --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("on", [True, False])
def test_statistics_after_one_token(start: Start, on: bool) -> None:
    scenario = Scenario(iteration={"iter": 1, "kvCacheStats": {"maxNumBlocks": 1000}})
    capture = good(start(yaml=f"enable_iter_perf_stats: {str(on).lower()}\n", scenario=scenario))
    assert ("iteration.kvCacheStats.maxNumBlocks" in capture.run_summary) == on
    assert any("asked its own server for one token" in note for note in capture.notes)
    assert any("enable_iter_perf_stats" in note for note in capture.notes) == (not on)


# --- records ----------------------------------------------------------------------------------------------------

RECORDS = [
    json.loads(line) for line in (Path(__file__).parent / "records.jsonl").read_text(encoding="utf-8").splitlines()
]


def lines_of(record: dict[str, str]) -> tuple[str, ...]:
    text = record["log_excerpt"]
    return tuple(text.split(" | ") if " | " in text and "\n" not in text else text.splitlines())


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record["id"])
def test_a_record_says_the_same_when_it_is_launched(start: Start, read: Read, record: dict[str, str]) -> None:
    """The log alone speaks: the worker of this start has no probe."""
    words = ("[TensorRT-LLM] TensorRT LLM version: 1.2.1", *lines_of(record))
    capture = good(start(scenario=Scenario(log=lines_of(record), fault="bare_worker")))
    alone = read("\n".join(words) + "\n")
    assert memory(capture) == memory(alone)
    for key, setting in alone.settings.items():
        if isinstance(setting.effective, Known):
            assert plain(capture.settings[key].effective) == setting.effective.value, key


def memory(capture: Capture) -> list[Any]:
    """Every number of every rank."""
    return [
        ([(t.name, plain(t.bytes)) for t in r.ledger], [(plain(p.bytes), plain(p.blocks)) for p in r.pools])
        for instance in capture.instances
        for r in instance.ranks
    ]


# --- faults -----------------------------------------------------------------------------------------------------


def record(name: str) -> tuple[str, ...]:
    return lines_of(next(r for r in RECORDS if r["id"] == name))


@pytest.mark.parametrize(
    ("words", "scenario", "yaml", "sentence", "advice"),
    [
        (("--kv_dtype", "fp8"), Scenario(), None, "This version does not know --kv_dtype", "--config"),
        (("--tp_size", "many"), Scenario(), None, "--tp_size", "accepted values"),
        ((), Scenario(fault="port_taken"), None, "taken by another process: 127.0.0.1:", "start it again"),
        ((), Scenario(fault="no_gpu"), None, "No GPU can be used", "NVIDIA driver"),
        ((), Scenario(fault="killed"), None, "killed from outside", "Out of memory"),
        ((), Scenario(), "a: b: c\n", "extra.yaml is not valid at line 1, column 5", "Correct the file"),
        ((), Scenario(), "", "The YAML file holds nothing", "at least one field"),
        (("--config", "gone.yaml"), Scenario(), None, "The YAML file gone.yaml is not there", "Check the path"),
        ((), Scenario(), "no_such_field: 1\n", "This version's LLM takes no no_such_field", "reference"),
        ((), Scenario(), "kv_cache_config: {no_such: 1}\n", "does not know: no_such", "Fields of the YAML"),
        ((), Scenario(log=record("trt-005"), fault="dies"), None, "Memory ran out while the KV cache was allocated: "
         "108.86 of 140.06 GiB were free", "--kv_cache_free_gpu_memory_fraction"),
        ((), Scenario(log=record("trt-007"), fault="dies"), None, "Memory ran out while the KV cache was allocated",
         "--kv_cache_free_gpu_memory_fraction"),
    ],
    ids=["flag", "value", "port", "gpu", "killed", "bad yaml", "empty yaml", "no yaml", "field", "inner field", "oom",
         "oom newer"],
)  # fmt: skip
def test_a_fault_has_a_clear_cause(
    start: Start, words: tuple[str, ...], scenario: Scenario, yaml: str | None, sentence: str, advice: str
) -> None:
    outcome = start(*words, scenario=scenario, yaml=yaml)
    assert isinstance(outcome.error, errors.EngineFailed)
    assert sentence in str(outcome.error.cause)
    assert advice in outcome.error.advice
    assert outcome.capture.failure is not None
    assert outcome.capture.failure.last_words
    assert NOT_VERIFIED in outcome.capture.notes
    for word in words[::2]:
        assert word in outcome.capture.launch.arguments


def test_what_was_written_is_known_of_a_failed_start(start: Start) -> None:
    outcome = start(*WORDS, yaml=BOTH, scenario=Scenario(fault="no_gpu"))
    configured, resolved, _, origin = layers(outcome.capture, FRACTION)
    assert (configured, resolved, origin) == (0.7, None, None)
    assert any("which of them holds is not known" in note for note in outcome.capture.notes)


def test_one_that_hangs_is_given_up(start: Start) -> None:
    outcome = start(scenario=Scenario(log=BOOT.log, fault="hangs"), limit=1)
    assert outcome.error is not None
    assert "not ready in time" in str(outcome.error)
    assert gib(pool(outcome.capture).bytes) == 55.93, "what its log said until then is kept"


@pytest.mark.parametrize("fault", ["ignores_sigterm", "child"])
def test_nothing_is_left_behind(start: Start, fault: str) -> None:
    """The fixture looks for processes afterwards."""
    good(start(scenario=Scenario(fault=fault)))


# --- the command line, and the probe in somebody else's process ---------------------------------------------------


def test_the_command(call: Call, environments: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "config.json").write_text("{}")
    (tmp_path / "extra.yaml").write_text(REUSE_OFF)
    ended = call(
        "capture", "trtllm", "--python", str(environments[OLD]), "--model", "m", "--env", BOOT.write(tmp_path),
        "-o", "t.json", "--", "--config", "extra.yaml", "--kv_cache_free_gpu_memory_fraction", "0.7",
    )  # fmt: skip
    assert ended.code == 0, ended.err
    assert "forced (you asked for 0.7)" in ended.out
    assert NOT_VERIFIED in ended.out
    assert load_capture(tmp_path / "t.json").identity.source == "launch"
    shown = call("show", "t.json")
    assert NOT_VERIFIED in shown.out


def test_without_an_interpreter_the_user_is_told_what_works(call: Call) -> None:
    ended = call("capture", "trtllm@1.2.1", "--model", "org/model", "-o", "t.json")
    assert ended.code == errors.EXIT_UNFIT
    for words in (
        "NVIDIA publishes its wheels",
        "--python PATH",
        "--container nvcr.io/nvidia/tensorrt-llm/release:1.2.1",
    ):
        assert words in ended.err


SCRIPT = """
from tensorrt_llm.llmapi.llm import LLM
from tensorrt_llm.llmapi.llm_args import KvCacheConfig
LLM("org/model", max_batch_size=4, kv_cache_config=KvCacheConfig(free_gpu_memory_fraction=0.6)).shutdown()
"""


def test_an_exported_probe_in_a_script_of_the_users_own(environments: dict[str, Path], tmp_path: Path) -> None:
    import subprocess

    mounted, out = tmp_path / "mounted", tmp_path / "out"
    export_probe("trtllm", mounted, force=False)
    out.mkdir()
    subprocess.run(
        [environments[OLD], "-c", SCRIPT],
        env={"PYTHONPATH": str(mounted), "ENGDIFF_PROBE_OUT": str(out)},
        check=True,
        capture_output=True,
    )
    capture = read_probe(out, None)
    assert (capture.identity.engine, plain(capture.identity.version)) == ("trtllm", OLD)
    assert capture.launch.model == "org/model"
    assert layers(capture, FRACTION) == (0.6, 0.6, None, "user")
    assert layers(capture, "scheduler.max_num_seqs") == (4, 4, 4, "user")
    assert layers(capture, "kv.prefix_caching") == (None, True, True, "default")
    assert layers(capture, POLICY) == (None, "GUARANTEED_NO_EVICT", "GUARANTEED_NO_EVICT", "default")
    assert capture.settings["scheduler.max_num_seqs"].configured is not None
    assert NOT_VERIFIED in capture.notes


def test_captures_of_logs_and_servers_are_marked_as_well(read: Read) -> None:
    assert read("\n".join(logs.pytorch())).notes.count(NOT_VERIFIED) == 1
