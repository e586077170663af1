"""Every kind of finding: one change to a capture, and what is found."""

from __future__ import annotations

import pytest

from engdiff.diff import findings
from engdiff.diff.compare import compare
from engdiff.diff.findings import Found
from engdiff.schema.capture import Capture, Process
from engdiff.schema.diff import Diff
from engdiff.schema.values import Unknown, Value
from tests import factories as make
from tests.diff.parts_of_sides import died_serving, failed_with, from_log
from tests.factories import GIB, MIB, Change

Key = tuple[str, str, str]

ASKED = make.with_launch(arguments=("--max-model-len", "2048", "--max-num-seqs", "64"))


def diff(old: Capture, new: Capture) -> Diff:
    return compare(old, new, old_label="old.json", new_label="new.json")


def keys(found: Diff) -> list[Key]:
    return [(f.kind, f.key, f.area) for f in found.findings]


def nothing(capture: Capture) -> Capture:
    return capture


UNKNOWN = Unknown(because="not said")

ON_THE_NEW_SIDE: list[tuple[str, Change, list[Key]]] = [
    ("nothing", nothing, []),
    ("start refused", make.failed(), [("StartRefused", "start", "startup")]),
    (
        "pool shrank",
        make.with_pool(bytes=make.measured(40 * GIB)),
        [("PoolShrank", "kv.pool_bytes", "memory")],
    ),
    ("pool grew", make.with_pool(bytes=make.measured(60 * GIB)), [("PoolGrew", "kv.pool_bytes", "memory")]),
    (
        "as many bytes, fewer requests",
        make.with_pool(max_concurrency=make.measured(20)),
        [("ConcurrencyMoved", "kv.max_concurrency", "memory")],
    ),
    (
        "a ledger line",
        make.with_term("activation peak", make.measured(6 * GIB)),
        [("MemoryMoved", "memory.activation_peak", "memory")],
    ),
    ("a ledger line, within repeats", make.with_term("activation peak", make.measured(4.05 * GIB)), []),
    ("a ledger line that is not known", make.with_term("activation peak", UNKNOWN), []),
    (
        "a default",
        make.with_setting("scheduler.max_num_batched_tokens", make.setting(16384)),
        [("DefaultMoved", "scheduler.max_num_batched_tokens", "scheduling")],
    ),
    (
        "derived",
        make.with_setting("scheduler.async_scheduling", make.setting(value=False, origin="derived")),
        [("DerivedMoved", "scheduler.async_scheduling", "scheduling")],
    ),
    (
        "a default that is now derived",
        make.with_setting("scheduler.max_num_seqs", make.setting(128, "derived")),
        [("DerivedMoved", "scheduler.max_num_seqs", "scheduling")],
    ),
    (
        "forced",
        make.with_setting("model.max_model_len", make.setting(1024, "forced", asked=2048, word="--max-model-len")),
        [("PolicyForced", "model.max_model_len", "scheduling")],
    ),
    (
        "asked",
        make.both(ASKED, make.with_setting("scheduler.max_num_seqs", make.setting(64, "user", asked=64))),
        [("SettingChanged", "scheduler.max_num_seqs", "scheduling")],
    ),
    (
        "the default, written out and overruled",
        make.both(ASKED, make.with_setting("scheduler.max_num_seqs", make.setting(64, "forced", asked=256))),
        [("PolicyForced", "scheduler.max_num_seqs", "scheduling")],
    ),
    ("a setting that the new side does not know", make.unknown_setting("scheduler.max_num_seqs"), []),
    ("a setting that the new side does not have", make.without_setting("scheduler.max_num_seqs"), []),
    (
        "runner",
        make.with_runner(name=make.known("V1"), because=make.known("the model is sparse")),
        [("RunnerChanged", "runner.name", "scheduling")],
    ),
    ("died while it served", died_serving(), [("DiedServing", "start", "startup")]),
    (
        "a setting of a log",
        make.both(from_log, make.with_setting("scheduler.max_num_seqs", make.setting(64, None))),
        [("SettingMoved", "scheduler.max_num_seqs", "scheduling")],
    ),
    ("runner not known", make.with_runner(name=UNKNOWN), []),
    (
        "attention back end",
        make.with_runner(attention_backend=make.known("TRITON_ATTN")),
        [("BackendChanged", "kernels.attention_backend", "kernels")],
    ),
    (
        "admission",
        make.with_admission(rule=make.known("when the next piece fits")),
        [("AdmissionChanged", "admission.rule", "scheduling")],
    ),
    (
        "preemption",
        make.with_admission(preemption=make.known("swap")),
        [("AdmissionChanged", "admission.preemption", "scheduling")],
    ),
    (
        "processes",
        make.with_processes(
            Process(name="server", parent=None, threads=UNKNOWN, steps=("http", "execute")),
        ),
        [("ProcessesChanged", "processes", "cosmetic")],
    ),
    (
        "a helper process without a step",
        make.with_processes(
            *make.vllm_processes(), Process(name="tracker", parent="front end", threads=UNKNOWN, steps=())
        ),
        [],
    ),
    (
        "a native leaf",
        make.with_native("config.example_config.example_option", "new"),
        [("NativeMoved", "config.example_config.example_option", "cosmetic")],
    ),
    ("native noise", make.with_native("config.instance_id", "def"), []),
    ("empty is nothing", make.with_native("config.example_config.empty", []), []),
]

ON_THE_OLD_SIDE: list[tuple[str, Change, list[Key]]] = [
    ("start mended", make.failed(), [("StartMended", "start", "startup")]),
    (
        "gone",
        make.with_setting("kv.swap_space_gib", make.setting(4, "user", asked=4, word="--no-such-word")),
        [("SettingGone", "kv.swap_space_gib", "startup")],
    ),
    ("gone, but nobody had set it", make.with_setting("kv.swap_space_gib", make.setting(4)), []),
]


ON_BOTH_SIDES: list[tuple[str, Change, Change, list[Key]]] = [
    ("two failures", make.failed(), make.failed(), []),
    ("two failures of unknown cause", make.failed(None), make.failed(None), []),
    (
        "another cause",
        make.failed(),
        make.failed("the model is of no architecture that this version knows"),
        [("FailureChanged", "start", "startup")],
    ),
    (
        "other numbers",
        failed_with("it needs 45.79 GiB", needed_bytes=make.measured(45.79 * GIB)),
        failed_with("it needs 70.79 GiB", needed_bytes=make.measured(70.79 * GIB)),
        [("FailureMoved", "start.needed_bytes", "startup")],
    ),
    (
        "numbers within repeats",
        failed_with("10.01 GiB are free", available_bytes=make.measured(10.01 * GIB)),
        failed_with("10.02 GiB are free", available_bytes=make.measured(10.02 * GIB)),
        [],
    ),
    (
        "a number that one side does not say",
        failed_with("it needs too much", needed_bytes=make.measured(45.79 * GIB)),
        failed_with("it needs too much", needed_bytes=UNKNOWN),
        [],
    ),
]


@pytest.mark.parametrize(
    ("old", "new", "expected"), [case[1:] for case in ON_BOTH_SIDES], ids=[c[0] for c in ON_BOTH_SIDES]
)
def test_change_on_both_sides(old: Change, new: Change, expected: list[Key]) -> None:
    assert keys(diff(old(make.vllm()), new(make.vllm()))) == expected


@pytest.mark.parametrize(
    ("change", "expected"), [case[1:] for case in ON_THE_NEW_SIDE], ids=[c[0] for c in ON_THE_NEW_SIDE]
)
def test_change_on_the_new_side(change: Change, expected: list[Key]) -> None:
    assert keys(diff(make.vllm(), change(make.vllm()))) == expected


@pytest.mark.parametrize(
    ("change", "expected"), [case[1:] for case in ON_THE_OLD_SIDE], ids=[c[0] for c in ON_THE_OLD_SIDE]
)
def test_change_on_the_old_side(change: Change, expected: list[Key]) -> None:
    assert keys(diff(change(make.vllm()), make.vllm())) == expected


def test_every_kind_has_a_row() -> None:
    cases = [expected for _, _, expected in ON_THE_NEW_SIDE + ON_THE_OLD_SIDE] + [case[3] for case in ON_BOTH_SIDES]
    rows = {kind for expected in cases for kind, _, _ in expected}
    kinds = {cls for cls in vars(findings).values() if isinstance(cls, type) and cls.__base__ is Found}
    assert rows == {cls.__name__ for cls in kinds - {findings.Apart}}


def test_a_failure_hides_what_was_never_resolved() -> None:
    new = make.both(make.failed(), make.with_setting("scheduler.max_num_seqs", make.setting(64)))(make.vllm())
    found = diff(make.vllm(), new)
    assert keys(found) == [("StartRefused", "start", "startup")]
    assert found.findings[0].headline == "vllm 0.32.0 does not start: out of memory: the KV cache does not fit"
    assert found.findings[0].evidence == ("ValueError: no memory for the cache",)
    assert found.findings[0].pin.because == "ask for less: --max-model-len 1024"
    assert [n.what for n in found.not_compared] == ["native configuration"]
    assert not found.new.started


def test_a_failure_still_shows_what_was_asked_for() -> None:
    asked = make.with_setting("scheduler.max_num_seqs", make.setting(64, "user", asked=64))
    found = diff(make.vllm(), make.both(ASKED, asked, make.failed())(make.vllm()))
    assert [(f.kind, f.asked) for f in found.findings] == [("StartRefused", False), ("SettingChanged", True)]


def test_a_failure_without_a_known_cause_says_how_it_ended() -> None:
    assert diff(make.vllm(), make.failed(None)(make.vllm())).findings[0].headline.endswith("does not start: code 1")


def test_a_refusal_says_its_numbers_and_what_would_have_fitted() -> None:
    numbers: dict[str, Value] = {
        "needed_bytes": make.measured(16 * GIB),
        "available_bytes": make.measured(8 * GIB),
        "blocks": UNKNOWN,
    }
    new = failed_with(
        "the cache holds no request of 131,072 tokens",
        stage="size the KV cache",
        would_fit="about 65,536 tokens would fit",
        **numbers,
    )
    (finding,) = diff(make.vllm(), new(make.vllm())).findings
    assert finding.headline == "vllm 0.32.0 does not start: the cache holds no request of 131,072 tokens"
    assert finding.why == (
        "Nothing is served: it stopped at the stage “size the KV cache”. Needed 16 GiB, available 8 GiB. "
        "About 65,536 tokens would fit."
    )


def test_two_failures_with_other_numbers_say_both() -> None:
    old = failed_with("one request needs 45.79 GiB", needed_bytes=make.measured(45.79 * GIB))
    new = failed_with(
        "one request needs 70.79 GiB", needed_bytes=make.measured(70.79 * GIB), would_fit="about 9,000 tokens would fit"
    )
    (finding,) = diff(old(make.vllm("0.25.1")), new(make.vllm("0.26.0"))).findings
    assert finding.headline == "vllm 0.26.0 still does not start; needed moved: 45.79 GiB → 70.79 GiB (+54.6 %)"
    assert finding.why == "One request needs 70.79 GiB. About 9,000 tokens would fit."
    assert finding.pin.because == "ask for less: --max-model-len 1024"


def test_a_failure_that_follows_from_what_was_asked_was_asked_for() -> None:
    def side(length: int, needed: float) -> Capture:
        return make.both(
            make.with_launch(arguments=("--max-model-len", str(length))),
            make.with_setting("model.max_model_len", make.setting(length, "user", asked=length)),
            failed_with("too long", needed_bytes=make.measured(needed * GIB), max_model_len=make.measured(length)),
        )(make.vllm())

    found = diff(side(2048, 16), side(4096, 32)).findings
    assert [(f.key, f.asked, f.follows_from) for f in found] == [
        ("start.needed_bytes", True, ("model.max_model_len",)),
        ("model.max_model_len", True, ()),
    ]


@pytest.mark.parametrize("side", ["old", "new"])
def test_unknown_is_told_and_never_moved(side: str) -> None:
    unknown = make.unknown_setting("scheduler.max_num_seqs", "the probe was too late")(make.vllm())
    found = diff(unknown, make.vllm()) if side == "old" else diff(make.vllm(), unknown)
    assert found.findings == ()
    assert [(n.what, n.because) for n in found.not_compared] == [
        ("scheduler.max_num_seqs", f"unknown on the {side} side: the probe was too late")
    ]


def test_headlines_are_sentences() -> None:
    changes = make.both(
        make.with_setting("scheduler.max_num_batched_tokens", make.setting(16384)),
        make.with_setting("model.max_model_len", make.setting(1024, "forced", asked=2048)),
        make.with_term("activation peak", make.measured(6 * GIB)),
        make.with_runner(name=make.known("V1")),
    )
    assert {f.key: f.headline for f in diff(make.vllm(), changes(make.vllm())).findings} == {
        "memory.activation_peak": "memory for activation peak: 4 GiB → 6 GiB (+50.0 %)",
        "model.max_model_len": "model.max_model_len is overruled: 2,048 tokens → 1,024 tokens (÷2)",
        "runner.name": "another model runner: V2 → V1",
        "scheduler.max_num_batched_tokens": (
            "the default of scheduler.max_num_batched_tokens moved: 8,192 tokens → 16,384 tokens (×2)"
        ),
    }


def test_a_small_ledger_line_is_none() -> None:
    old = make.with_term("activation peak", make.known(MIB))(make.vllm())
    assert diff(old, make.with_term("activation peak", make.known(MIB + MIB // 2))(make.vllm())).findings == ()


def test_a_back_end_that_is_a_setting_is_told_once() -> None:
    def side(name: str) -> Capture:
        return make.both(
            make.with_setting("kernels.attention_backend", make.setting(name, "derived")),
            make.with_runner(attention_backend=make.known(name)),
        )(make.vllm())

    assert [f.key for f in diff(side("FLASH_ATTN"), side("TRITON_ATTN")).findings] == ["kernels.attention_backend"]
