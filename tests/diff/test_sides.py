"""A log states a part: what it does not state never moved, and what the user wrote is not known."""

from __future__ import annotations

import pytest

from engdiff.diff.compare import compare
from engdiff.diff.effect import no_effect
from engdiff.diff.pools import matched
from engdiff.engines import get
from engdiff.schema.capture import Capture, Rank, Term
from engdiff.schema.diff import Diff
from engdiff.schema.values import Known, Unknown
from tests import factories as make
from tests.diff.parts_of_sides import died_serving, ended, failed_with, from_log, stated, without_words
from tests.factories import GIB

KEPT = ("kv.block_size", "model.max_model_len")


def diff(old: Capture, new: Capture) -> Diff:
    return compare(old, new, old_label="old.json", new_label="boot.log")


def fragment(capture: Capture) -> Capture:
    """A log that states two settings, the weights and the pool."""
    made = from_log(capture)
    rank = made.instances[0].ranks[0]
    ledger = tuple(t for t in rank.ledger if t.name in ("weights", "KV cache"))
    settings = {key: without_words(made.settings[key]) for key in KEPT}
    return make.with_rank(rank.model_copy(update={"ledger": ledger}))(made.model_copy(update={"settings": settings}))


def told(found: Diff) -> dict[str, str]:
    return {one.what: one.because for one in found.not_compared}


@pytest.mark.parametrize("log", [from_log, fragment])
@pytest.mark.parametrize("make_one", [make.vllm, make.llamacpp])
def test_a_log_of_the_same_start_moved_nothing(make_one: object, log: object) -> None:
    launched = make_one()  # type: ignore[operator]
    if make_one is make.llamacpp and log is fragment:
        return
    for old, new in ((launched, log(launched)), (log(launched), launched)):  # type: ignore[operator]
        found = diff(old, new)
        assert (found.findings, found.machine, found.packages, found.waterfalls) == ((), (), (), ())
        assert (found.native_only, found.warnings_new, found.warnings_gone) == ((), (), ())


def test_what_a_log_does_not_state_is_counted() -> None:
    found = diff(fragment(make.vllm()), make.vllm())
    assert told(found) == {
        "8 settings": "the old side was read from a log, which does not state them",
        "native configuration": "the two were read in different ways, which name and write it differently",
        "machine": "the old side was read from a log, which does not state it",
        "packages": "the old side was read from a log, which does not state them",
    }


def test_of_two_logs_neither_states_the_machine() -> None:
    found = told(diff(from_log(make.vllm()), from_log(make.vllm())))
    assert found["machine"] == "neither side states it"
    assert found["packages"] == "neither side states them"


def test_sides_say_that_they_come_from_a_log() -> None:
    found = diff(make.vllm(), ended("ready", of=3)(from_log(make.vllm())))
    assert (found.old.read_from, found.old.words_unknown_because) == (None, None)
    assert (found.new.read_from, found.new.words_unknown_because) == (
        "start 3 of 3 in a log",
        "a log does not state it",
    )
    assert (found.new.distribution, found.new.model) == (None, None)


# --- who wrote it ---------------------------------------------------------------------------------------------------


def moved(old: Capture, new: Capture) -> list[tuple[str, bool]]:
    return [(f.kind, f.asked) for f in diff(old, new).findings]


SEQS = "scheduler.max_num_seqs"


def test_a_value_whose_writer_is_not_known_moved_and_no_more() -> None:
    new = make.with_setting(SEQS, stated(64))(from_log(make.vllm()))
    found = diff(make.vllm(), new)
    assert [(f.kind, f.asked, f.headline) for f in found.findings] == [
        ("SettingMoved", False, "scheduler.max_num_seqs moved: 256 requests → 64 requests (÷4)")
    ]
    assert found.findings[0].pin.text == "--max-num-seqs 256" or found.findings[0].pin.because


def test_what_both_sides_say_the_user_wrote_was_asked_for() -> None:
    old = make.with_setting(SEQS, make.setting(128, "user", asked=128))(make.vllm())
    new = make.with_setting(SEQS, make.setting(64, "user", asked=64))(from_log(make.vllm()))
    assert moved(old, new) == [("SettingChanged", True)]
    assert moved(new, old) == [("SettingChanged", True)]
    assert moved(make.vllm(), new) == [("SettingChanged", True)], "nobody wrote it in the launch"


def test_what_one_log_does_not_say_is_not_asked_for() -> None:
    old = make.with_setting(SEQS, stated(128))(from_log(make.vllm()))
    new = make.with_setting(SEQS, make.setting(64, "user", asked=64))(from_log(make.vllm()))
    assert moved(old, new) == [("SettingMoved", False)]


def test_the_default_of_two_logs_moved() -> None:
    new = make.with_setting(SEQS, make.setting(64))(from_log(make.vllm()))
    assert moved(from_log(make.vllm()), new) == [("DefaultMoved", False)]


def test_a_log_never_says_that_a_setting_is_gone() -> None:
    old = make.with_setting("kv.swap_space_gib", make.setting(4, "user", asked=4, word="--no-such-word"))(make.vllm())
    assert moved(old, from_log(make.vllm())) == []
    unknown = make.with_identity(version=Unknown(because="not said"))(make.vllm())
    assert moved(old, unknown) == []


# --- numbers --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("printed", "low", "high", "moves"),
    [(0.9, 0.895, 0.905, False), (0.9, None, None, False), (0.85, 0.845, 0.855, True)],
)
def test_a_rounded_number_is_the_exact_one_within_its_bounds(
    printed: float, low: float | None, high: float | None, moves: bool
) -> None:
    old = make.with_setting("kv.gpu_memory_utilization", make.setting(0.9012 if low == 0.895 else 0.9))(make.vllm())
    new = make.with_setting("kv.gpu_memory_utilization", stated(printed, low, high))(from_log(make.vllm()))
    assert bool(diff(old, new).findings) is moves


def rounded(gib: float) -> Known:
    return Known(value=gib * GIB, low=(gib - 0.005) * GIB, high=(gib + 0.005) * GIB, basis="measured")


def test_two_starts_of_one_thing_print_other_last_digits() -> None:
    """Bounds of rounding are no bounds of repeating: a pool that remains differs a little in every start."""
    old, new = (make.with_pool(bytes=rounded(size))(from_log(make.vllm())) for size in (57.12, 57.09))
    assert diff(old, new).findings == ()
    assert diff(old, new).waterfalls == ()
    lines = [make.with_term("weights", rounded(size))(from_log(make.vllm())) for size in (15.27, 15.28)]
    assert diff(*lines).findings == ()


def test_a_pool_that_is_a_product_is_compared_to_its_bounds() -> None:
    old, new = make.llamacpp(cells=1024), make.llamacpp(cells=1032)
    assert "kv.pool_bytes" in {f.key for f in diff(old, new).findings}


def ranks(capture: Capture, *ranks: Rank) -> Capture:
    instance = capture.instances[0].model_copy(update={"ranks": ranks})
    return capture.model_copy(update={"instances": (instance,)})


def test_ranks_are_paired_by_their_place() -> None:
    """A log that holds the lines of rank 1 alone says nothing of rank 0."""
    small, large = make.vllm_rank(), make.vllm_rank(weights=30 * GIB)
    old = ranks(make.vllm(), small.model_copy(update={"tp": 0}), large.model_copy(update={"tp": 1}))
    new = ranks(from_log(make.vllm()), large.model_copy(update={"tp": 1}))
    assert diff(old, new).findings == ()


def test_a_rank_that_states_less_is_no_other_kind() -> None:
    whole = make.vllm_rank()
    bare = whole.model_copy(update={"ledger": whole.ledger[2:3], "pools": ()})
    eight = [bare.model_copy(update={"tp": n}) if n in (0, 3) else whole.model_copy(update={"tp": n}) for n in range(8)]
    grown = [make.vllm_rank(weights=8 * GIB).model_copy(update={"tp": n}) for n in range(8)]
    found = diff(ranks(from_log(make.vllm()), *eight), ranks(from_log(make.vllm()), *grown))
    assert sorted(f.key for f in found.findings) == ["kv.pool_bytes", "memory.weights"]


def test_a_line_that_a_log_does_not_state_makes_no_waterfall() -> None:
    shrunk = make.with_pool(bytes=rounded(40))(fragment(make.vllm()))
    found = diff(make.vllm(), shrunk)
    assert [f.kind for f in found.findings] == ["PoolShrank"]
    assert found.waterfalls == ()


def test_a_log_whose_lines_leave_the_pool_is_whole() -> None:
    graphs = Term(name="graphs", kind="use", bytes=make.measured(4 * GIB), draws_on="vLLM may use")
    rank = make.vllm_rank()
    pool = rank.pools[0].model_copy(update={"bytes": rounded(48)})
    new = rank.model_copy(update={"ledger": (*rank.ledger, graphs), "pools": (pool,)})
    (found,) = diff(from_log(make.vllm()), make.with_rank(new)(make.vllm())).waterfalls
    assert [(s.name, s.bytes) for s in found.steps] == [("graphs", -4 * GIB)]


# --- pools by name --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "pairs"),
    [
        (["a"], ["a"], [(0, 0)]),
        (["a", "b"], ["b", "a"], [(0, 1), (1, 0)]),
        (["a", "b"], ["b"], [(1, 0)]),
        (["a"], ["b"], [(0, 0)]),
        (["a", "b"], ["a", "c"], [(0, 0), (1, 1)]),
        (["", ""], ["", ""], [(0, 0), (1, 1)]),
        (["a"], ["b", "c"], []),
        (["a", "a"], ["a"], [(0, 0)]),
        ([], ["a"], []),
    ],
)
def test_pools_are_paired_by_name(old: list[str], new: list[str], pairs: list[tuple[int, int]]) -> None:
    assert matched(old, new) == pairs


def test_a_pool_that_one_side_alone_has_is_told_and_not_moved() -> None:
    rank = make.vllm_rank()
    window = rank.pools[0].model_copy(update={"name": "sliding window", "bytes": make.measured(GIB)})
    new = make.with_rank(rank.model_copy(update={"pools": (window, *rank.pools)}))(make.vllm())
    found = diff(make.vllm(), new)
    assert found.findings == ()
    assert told(found) == {"the pool “sliding window”": "only the new side states it"}


# --- how it ended ---------------------------------------------------------------------------------------------------


def test_a_log_that_breaks_off_did_not_start_and_did_not_fail() -> None:
    cut = ended("breaks off")(from_log(make.vllm()))
    found = diff(make.failed()(make.vllm()), cut)
    assert found.findings == ()
    assert told(found)["start-up"] == "the log of the new side breaks off before its end"
    assert diff(cut, make.vllm()).findings == ()
    assert (diff(make.vllm(), cut).warnings_new, diff(cut, make.vllm()).warnings_new) == ((), ())


def test_a_failure_after_a_log_that_breaks_off_is_a_finding() -> None:
    cut = ended("breaks off")(from_log(make.vllm()))
    (finding,) = diff(cut, make.failed()(make.vllm())).findings
    assert (finding.kind, isinstance(finding.old, Unknown)) == ("StartRefused", True)


def test_a_failed_start_in_a_log_still_tells_what_was_resolved() -> None:
    """A log prints settings when they are resolved: where it fails later, they explain it."""
    new = make.both(from_log, failed_with("too little memory"), ended("failed"))(make.vllm())
    new = make.with_setting("scheduler.max_num_batched_tokens", make.setting(16384))(new)
    assert [f.kind for f in diff(from_log(make.vllm()), new).findings] == ["StartRefused", "DefaultMoved"]


def test_a_server_that_died_had_started() -> None:
    new = make.both(died_serving(), make.with_setting(SEQS, make.setting(64)))(make.vllm())
    found = diff(make.vllm(), new)
    assert [f.kind for f in found.findings] == ["DiedServing", "DefaultMoved"]
    assert found.findings[0].headline == "vllm 0.32.0 died while it served: out of memory: a request of 40,000 tokens"
    assert found.findings[0].why == "Nothing is served any more."
    assert found.new.started
    assert [f.kind for f in diff(new, make.vllm()).findings] == ["StartMended", "DefaultMoved"]


# --- commands -------------------------------------------------------------------------------------------------------


def test_no_command_where_the_command_is_not_known() -> None:
    new = make.with_setting(SEQS, make.setting(64))(from_log(make.vllm()))
    new = new.model_copy(update={"native": make.vllm().native})
    found = diff(from_log(make.vllm()), new)
    assert found.findings[0].pin.text == "--max-num-seqs 256"
    assert (found.pinned_command, found.prove_command) == (None, None)


def test_a_log_is_an_old_side_like_any_other() -> None:
    found = compare(
        from_log(make.vllm()),
        make.with_setting(SEQS, make.setting(64))(make.vllm()),
        old_label="boot.log",
        new_label="vllm@0.32.0",
    )
    assert (found.prove_command or "").startswith("engdiff diff boot.log vllm@0.32.0 --model tiny -- ")


def test_what_a_log_does_not_say_makes_no_move_harmless() -> None:
    nowhere = make.with_identity(devices=())(from_log(make.vllm()))
    engine = get("vllm")
    keys = [c.pattern for c in engine.knowledge._conditions if any(n.startswith("device:") for n in c.needs)]
    assert keys
    assert all(no_effect(f"{engine.native_root}{key}", nowhere, engine) is None for key in keys)


def test_native_leaves_of_two_logs_are_compared_without_what_lines_say() -> None:
    def log(value: object, tokens: int) -> Capture:
        native = {"log": {"kv": {"tokens": tokens}}, "config": {"example_config": {"example_option": value}}}
        return from_log(make.vllm()).model_copy(update={"native": native})

    found = diff(log("a", 1), log("b", 2))
    assert [f.key for f in found.findings] == ["config.example_config.example_option"]
    assert found.native_compared == 1
    assert diff(log("a", 1), from_log(make.vllm())).native_only == ()
