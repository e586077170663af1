"""The pair of policies of issue #16827: what was configured, what ran, what it cost, and the way back.

The reporter ran Llama-3.3-70B-FP8 on one H200, with more KV wanted than the pool holds. Between GUARANTEED_NO_EVICT and
MAX_UTILIZATION throughput fell from 161.0 to 95.7 tok/s on 1.2.1, and from 160.7 to 159.2 tok/s on 1.3.0rc22.
"""

from __future__ import annotations

import pytest

from engdiff.diff.compare import compare
from engdiff.engines.trtllm import admission
from engdiff.schema.capture import Capture
from engdiff.schema.diff import Diff, Finding
from engdiff.schema.values import Unknown, plain
from tests.engines.conftest import Read
from tests.engines.trtllm import logs
from tests.logs.cited import invented

GUARANTEED, UTILIZATION = "GUARANTEED_NO_EVICT", "MAX_UTILIZATION"
POLICY = "scheduler.capacity_policy"
SECOND_HEAD = f"{logs.STAMP}[RANK 0] "
FORCED = (
    f"{SECOND_HEAD}[W] KVCacheV2Scheduler only supports MAX_UTILIZATION for now, got {GUARANTEED}, setting to "
    "MAX_UTILIZATION"
)
SECOND = (
    f"{SECOND_HEAD}[I] KVCacheV2Scheduler: tokens_per_block=32, max_num_tokens=4096, max_batch_size=8, draft_mgr=None"
)
FIRST_MANAGERS = ("paged KV cache", "KV cache blocks per sequence", "Number of tokens per block")
"""Lines that only the cache manager in C++ writes."""


def first(version: str, policy: str = GUARANTEED) -> str:
    """A start on the first cache manager."""
    return "\n".join(logs.ranks()).replace("1.3.0rc7", version).replace(GUARANTEED, policy)


def second(version: str, *said: str) -> str:
    """A start on the second one: other lines about the cache, and these."""
    lines = [line for line in logs.ranks() if not any(words in line for words in FIRST_MANAGERS)]
    return "\n".join([*lines[:-1], *said, lines[-1]]).replace("1.3.0rc7", version)


def diff(old: Capture, new: Capture) -> Diff:
    return compare(old, new, old_label="old.log", new_label="new.log")


def finding(found: Diff, key: str) -> Finding:
    return next(f for f in found.findings if f.key == key)


def layers(capture: Capture) -> tuple[object, ...]:
    setting = capture.settings[POLICY]
    return plain(setting.configured), plain(setting.resolved), plain(setting.effective), setting.origin


@pytest.mark.parametrize("version", ["1.2.1", "1.3.0rc22"])
def test_the_first_manager_runs_what_it_is_given(version: str, read: Read) -> None:
    guaranteed, utilization = read(first(version)), read(first(version, UTILIZATION))
    assert layers(guaranteed) == (None, GUARANTEED, GUARANTEED, "default")
    assert layers(utilization) == (UTILIZATION, UTILIZATION, UTILIZATION, "user")
    assert str(plain(guaranteed.admission.rule)).startswith(GUARANTEED)
    assert str(plain(utilization.admission.rule)).startswith(UTILIZATION)


@pytest.mark.parametrize("version", ["1.2.1", "1.3.0rc22"])
def test_the_pair_of_the_issue_on_one_version(version: str, read: Read) -> None:
    found = diff(read(first(version)), read(first(version, UTILIZATION)))
    moved = finding(found, POLICY)
    assert (moved.kind, moved.asked) == ("SettingChanged", True)
    (cost,) = moved.evidence
    for words in ("#16827", "only under KV pressure", "161.0 to 95.7 tok/s (-40.6 %)", "122 to 1,111 ms", "-0.9 %"):
        assert words in cost
    assert moved.pin.text == f"scheduler_config: {{capacity_scheduler_policy: {GUARANTEED}}}"
    assert {f.kind for f in found.findings if f.key.startswith("admission.")} == {"AdmissionChanged"}


def test_both_versions_under_one_policy_differ_in_nothing_of_it(read: Read) -> None:
    found = diff(read(first("1.2.1")), read(first("1.3.0rc22")))
    assert not {POLICY, "admission.rule", "admission.preemption", "scheduler.class"} & {f.key for f in found.findings}


def test_the_second_manager_overrules_the_policy(read: Read) -> None:
    old, new = read(first("1.2.1")), read(second("1.3.0rc22", FORCED, SECOND))
    assert layers(new) == (GUARANTEED, GUARANTEED, UTILIZATION, "forced")
    found = diff(old, new)
    moved = finding(found, POLICY)
    assert (moved.kind, moved.asked, moved.since) == ("PolicyForced", False, "1.3.0")
    assert (plain(moved.old), plain(moved.new)) == (GUARANTEED, UTILIZATION)
    assert (moved.old_origin, moved.new_origin) == ("default", "forced")
    assert "is overruled" in moved.headline
    assert found.findings[0] == moved
    (because,) = moved.evidence
    assert because.startswith(f"KVCacheV2Scheduler schedules by {UTILIZATION} only; it was given {GUARANTEED}")
    assert "measured by the reporter of issue #16827" in because
    assert "only under KV pressure" in moved.why
    assert (moved.pin.style, moved.pin.text) == ("file", "kv_cache_config: {use_kv_cache_manager_v2: false}")
    assert "refuse the way back" in moved.why


def test_the_rules_of_admission_follow(read: Read) -> None:
    found = diff(read(first("1.2.1")), read(second("1.3.0rc22", FORCED, SECOND)))
    rules = [finding(found, key) for key in ("admission.rule", "admission.preemption")]
    assert {(f.kind, f.since, f.pin.text) for f in rules} == {
        ("AdmissionChanged", "1.3.0", "kv_cache_config: {use_kv_cache_manager_v2: false}")
    }


@pytest.mark.parametrize("said", [(FORCED,), (SECOND,)], ids=["only the warning", "only the introduction"])
def test_one_line_of_the_second_scheduler_is_enough(said: tuple[str, ...], read: Read) -> None:
    capture = read(second("1.3.0rc22", *said))
    assert plain(capture.settings[POLICY].effective) == UTILIZATION
    assert plain(capture.settings["scheduler.class"].final) == "KVCacheV2Scheduler"
    assert str(plain(capture.admission.rule)).startswith(UTILIZATION)


def test_the_arguments_alone_tell_no_policy(read: Read) -> None:
    capture = read(second("1.3.0rc22"))
    assert plain(capture.settings[POLICY].resolved) == GUARANTEED
    assert isinstance(capture.settings[POLICY].effective, Unknown)
    assert isinstance(capture.admission.rule, Unknown)
    assert f"the arguments say {GUARANTEED}" in capture.admission.rule.because


def test_no_way_back_is_given_where_none_is_needed(read: Read) -> None:
    old = read(first("1.2.1", UTILIZATION))
    new = read(second("1.3.0rc22", SECOND))
    assert POLICY not in {f.key for f in diff(old, new).findings}


def test_early_candidates_refuse_to_start(read: Read) -> None:
    died = [
        "AssertionError: KVCacheV2Scheduler only supports MAX_UTILIZATION for now, got "
        f"CapacitySchedulerPolicy.{GUARANTEED}",
        "RuntimeError: Executor worker returned error",
    ]
    capture = read("\n".join([*second("1.3.0rc9").splitlines()[:-1], *died]))
    assert capture.failure
    assert f"{GUARANTEED} is configured" in (capture.failure.cause or "")
    assert "use_kv_cache_manager_v2: false" in capture.failure.advice
    assert isinstance(capture.settings[POLICY].effective, Unknown)
    found = diff(read(first("1.2.1")), capture)
    assert found.findings[0].kind == "StartRefused"


@pytest.mark.parametrize(
    "log",
    [first("1.2.1", UTILIZATION), second("1.3.0rc22", FORCED, SECOND), second("1.3.0rc22", SECOND)],
    ids=["first manager", "second", "second, without the warning"],
)
def test_nothing_is_invented(log: str, read: Read) -> None:
    assert invented(read(log), log) == []


def test_every_policy_has_a_rule_and_costs_name_their_source() -> None:
    assert set(admission.COSTS) <= {"GUARANTEED_NO_EVICT", "MAX_UTILIZATION", "STATIC_BATCH"}
    assert all("issue #" in words for words in admission.COSTS.values())
