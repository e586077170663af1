"""Known changes of TensorRT-LLM as findings, and what each known regression gets as an answer."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pydantic import JsonValue

from engdiff.diff.compare import compare
from engdiff.engines.trtllm.normalize import KNOWLEDGE
from engdiff.knowledge.tables import Change
from engdiff.knowledge.versions import is_version
from engdiff.schema.capture import Capture, Environment, Setting
from engdiff.schema.diff import Diff
from engdiff.schema.values import Known, Unknown, plain
from tests import factories as make
from tests.engines.conftest import Read
from tests.engines.trtllm import logs
from tests.engines.trtllm.test_trtllm_policies import FORCED, SECOND, diff, finding, first

# --- the table --------------------------------------------------------------------------------------------------


def test_every_change_says_where_it_was_read() -> None:
    for change in KNOWLEDGE.changes:
        assert is_version(change.since), change.key
        assert is_version(str(change.extra["last_without"])), change.key
        assert change.source, change.key
        assert not (change.pin and change.no_pin), change.key


def test_own_names_are_said_to_be_such() -> None:
    """A key that no finding can have is documentation: all others are a setting, a field or a part of admission."""
    names = KNOWLEDGE.names("1.4.0rc4")
    fields = {change.old_native for change in KNOWLEDGE.changes} | {change.new_native for change in KNOWLEDGE.changes}
    own = {c.key for c in KNOWLEDGE.changes if c.key not in names and c.key not in fields} - FIELDS
    assert own == {
        "bench.overrides",
        "kv.draft_budget",
        "kv.manager_of_gemma3",
        "kv.tokens_rounding",
        "memory.graph_estimate",
        "packages.triton",
        "serve.config_merge",
        "serve.config_precedence",
        "serve.kv_cache_dtype_flag",
    }


FIELDS = {"admission.rule", "admission.preemption", "backend"}


def side(version: str, settings: dict[str, JsonValue], native: dict[str, JsonValue] | None = None) -> Capture:
    """A launched capture with these settings, at their defaults."""
    base = make.vllm()
    identity = base.identity.model_copy(update={"engine": "trtllm", "version": Known(value=version)})
    made = {
        key: Setting(resolved=Known(value=value), effective=Unknown(because="x"), origin="default")
        for key, value in settings.items()
    }
    return base.model_copy(update={"identity": identity, "settings": made, "native": {"config": native or {"a": 1}}})


Moves = tuple[str, JsonValue, JsonValue, str, str, str]

SETTINGS: tuple[Moves, ...] = (
    ("graphs.mode", "none", "decode", "0.21.0", "1.0.0", "1.0.0"),
    ("graphs.capture_sizes", [1, 128, 300], [1, 128, 256, 300], "1.0.0", "1.2.1", "1.2.0"),
    ("graphs.capture_sizes", [128, 256, 512], [128, 192, 256, 512], "1.2.1", "1.3.0rc27", "1.3.0rc27"),
    ("kv.gpu_memory_utilization", None, 0.9, "1.0.0", "1.2.1", "1.2.0"),
    ("scheduler.max_num_seqs", None, 2048, "1.2.1", "1.3.0rc5", "1.3.0"),
)


@pytest.mark.parametrize(("key", "old", "new", "before", "after", "since"), SETTINGS)
def test_a_moved_default_is_explained(
    key: str, old: JsonValue, new: JsonValue, before: str, after: str, since: str
) -> None:
    found = finding(diff(side(before, {key: old}), side(after, {key: new})), key)
    assert (found.kind, found.since) == ("DefaultMoved", since)


LEAVES: tuple[Moves, ...] = (
    ("kv_cache_config.use_kv_cache_manager_v2", False, "auto", "1.3.0rc5", "1.3.0rc29", "1.3.0rc27"),
    ("backend", "tensorrt", "pytorch", "1.3.0rc20", "1.3.0rc21", "1.3.0rc21"),
    ("backend", "tensorrt", "pytorch", "0.21.0", "1.0.0", "1.0.0"),
)


@pytest.mark.parametrize(("path", "old", "new", "before", "after", "since"), LEAVES)
def test_a_moved_field_is_explained(
    path: str, old: JsonValue, new: JsonValue, before: str, after: str, since: str
) -> None:
    found = finding(diff(side(before, {}, nested(path, old)), side(after, {}, nested(path, new))), f"config.{path}")
    assert (found.kind, found.since, found.explained) == ("NativeMoved", since, True)


def nested(path: str, value: JsonValue) -> dict[str, JsonValue]:
    name, dot, rest = path.partition(".")
    return {name: nested(rest, value) if dot else value}


def test_a_candidate_before_the_change_has_it_not(read: Read) -> None:
    old, new = side("1.3.0rc5", {}, {"backend": "tensorrt"}), side("1.3.0rc20", {}, {"backend": "pytorch"})
    assert finding(diff(old, new), "config.backend").since is None


def test_a_renamed_field_is_no_loss() -> None:
    old = side("1.0.0", {}, {"connector_config": {"connector_module": "m"}})
    new = side("1.2.1", {}, {"kv_connector_config": {"connector_module": "m"}})
    assert KNOWLEDGE.renamed("1.0.0", "1.2.1")["connector_config"] == "kv_connector_config"
    assert "connector_config" not in KNOWLEDGE.renamed("1.2.1", "1.3.0rc5")
    assert diff(old, new).findings == ()


@pytest.mark.parametrize(
    ("path", "settings", "words"),
    [
        ("kv_cache_config.max_util_for_resume", {"scheduler.class": "SimpleScheduler"}, "never suspends"),
        ("kv_cache_config.enable_partial_reuse", {"kv.prefix_caching": False}, "block reuse is off"),
        ("cuda_graph_config.enable_padding", {"graphs.mode": "none"}, "no graphs"),
    ],
)
def test_what_does_nothing_here_is_cosmetic(path: str, settings: dict[str, JsonValue], words: str) -> None:
    old, new = (side("1.3.0rc27", settings, nested(path, value)) for value in (0.5, 0.9))
    found = finding(diff(old, new), f"config.{path}")
    assert (found.area, words in found.why) == ("cosmetic", True)


def test_counters_and_tables_of_a_failed_start_are_no_findings() -> None:
    for path in ("components.model.free_before_gib", "iteration.iter", "PyTorchConfig.attn_backend", "gpus_per_node"):
        assert KNOWLEDGE.is_noise(path), path
    for path in ("PyTorchConfig.sampler_type", "max_beam_width", "kv_cache_config.enable_partial_reuse"):
        assert not KNOWLEDGE.is_noise(path), path


# --- known regressions ------------------------------------------------------------------------------------------


def _change(key: str, since: str) -> Change:
    return next(c for c in KNOWLEDGE.changes if (c.key, c.since) == (key, since))


NOTHING_IS_LEFT = (
    *logs.ranks()[:4],
    "RuntimeError: Executor creation failed due to insufficient GPU memory.",
    "The following component could not be created: KV cache",
    "Total GPU memory (GiB): 95.00",
    "Free GPU memory before component creation attempt (GiB): 16.95",
    "",
    "Previously created components and free GPU memory before/after creation (GiB):",
    "Model: 94.50 / 17.10",
    "Sampler: 17.10 / 16.95",
)


def out_of_memory(version: str, *said: str) -> str:
    return "\n".join([*NOTHING_IS_LEFT, *said]).replace("1.3.0rc7", version)


def packages(version: str, triton: str) -> Capture:
    base = side(version, {})
    environment = base.identity.environment
    assert isinstance(environment, Environment)
    changed = environment.model_copy(update={"packages": {**environment.packages, "triton": triton}})
    return base.model_copy(update={"identity": base.identity.model_copy(update={"environment": changed})})


def triton_in_the_container(read: Read) -> None:
    """case-054: no setting shows it, the packages do; the table says what they mean."""
    found = diff(packages("1.2.1", "3.4.0"), packages("1.3.0rc5", "3.5.1"))
    assert ("triton", "3.4.0", "3.5.1") in [(m.name, m.old, m.new) for m in found.packages]
    change = _change("packages.triton", "1.3.0rc5")
    assert "H200" in change.matters
    assert "Triton 3.6" in (change.no_pin or "")


def draft_and_target_claim_the_budget(read: Read) -> None:
    """case-067: the failure says what ran out, the policy that the manager changed, the table why."""
    found = refused(read, first("1.2.1"), out_of_memory("1.3.0rc9", FORCED, SECOND))
    assert "while the KV cache was allocated" in found.findings[0].headline
    assert "4 in the report" in _change("kv.draft_budget", "1.3.0rc27").matters


def graphs_at_60_mb(read: Read) -> None:
    """case-079: no log of that version states the guess; the table does."""
    change = _change("memory.graph_estimate", "0.20.0")
    assert "60 MB" in change.summary
    assert "guess" in change.matters


def out_of_memory_after_an_upgrade(read: Read) -> None:
    """case-118: from one log of each version; what changed in the engine is not established."""
    found = refused(read, first("1.0.0rc1"), out_of_memory("1.0.0rc2"))
    assert "16.95 of 95.00 GiB were free" in found.findings[0].headline
    assert found.findings[0].pin.because


def gemma3_on_the_second_manager(read: Read) -> None:
    """case-120."""
    found = refused(read, first("1.2.1"), out_of_memory("1.3.0rc29", FORCED, SECOND))
    assert finding(found, "scheduler.capacity_policy").pin.text == "kv_cache_config: {use_kv_cache_manager_v2: false}"
    change = _change("kv.manager_of_gemma3", "1.3.0rc27")
    assert "131,072" in change.matters
    assert change.pin == "--max_seq_len N"


def refused(read: Read, old: str, new: str) -> Diff:
    found = diff(read(old), read(new))
    assert found.findings[0].kind == "StartRefused"
    return found


ANSWERED: dict[str, Callable[[Read], None]] = {
    "case-054": triton_in_the_container,
    "case-067": draft_and_target_claim_the_budget,
    "case-079": graphs_at_60_mb,
    "case-118": out_of_memory_after_an_upgrade,
    "case-120": gemma3_on_the_second_manager,
}

NOT_SEEN = {
    "case-052": "time to first token grew between 0.19.0 and 0.21.0rc2 under the same settings, each with an engine of "
    "its own; no cause is established: it takes a measurement at a fixed load, not a capture",
    "case-053": "throughput of DeepSeek-V3 fell between 1.2.0rc1 and 1.2.0rc2 under the same settings; no cause is "
    "established: candidates have to be bisected, with container, driver and CUDA held",
}
"""Regressions of ``cases/regressions.jsonl`` that leave no trace in what an engine decided."""


def test_every_known_regression_is_answered_or_listed() -> None:
    known = {f"case-{n}" for n in ("052", "053", "054", "067", "079", "118", "120")}
    assert set(ANSWERED) | set(NOT_SEEN) == known
    assert not set(ANSWERED) & set(NOT_SEEN)


@pytest.mark.parametrize("case", ANSWERED)
def test_a_known_regression_is_answered(case: str, read: Read) -> None:
    ANSWERED[case](read)


@pytest.mark.parametrize(("before", "after"), [("0.19.0", "0.21.0rc2"), ("1.2.0rc1", "1.2.0rc2")])
def test_what_leaves_no_trace_is_not_made_up(before: str, after: str, read: Read) -> None:
    old, new = (read("\n".join(logs.pytorch()).replace("1.1.0rc3", version)) for version in (before, after))
    found = compare(old, new, old_label="a", new_label="b")
    assert [f.key for f in found.findings] == []
    assert plain(old.identity.version) == before


def test_no_change_is_told_twice() -> None:
    assert len({(c.key, c.since, c.kind) for c in KNOWLEDGE.changes}) == len(KNOWLEDGE.changes)
