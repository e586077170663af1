"""Settings that both engines have: the same words for the same things, and what cannot be held against each other."""

from __future__ import annotations

import pytest

from engdiff.diff.compare import compare
from engdiff.schema.capture import Capture, Setting
from engdiff.schema.diff import Diff, Finding
from engdiff.schema.values import Unknown
from tests import factories as make
from tests.diff import other_engines as other
from tests.diff.parts_of_sides import from_log
from tests.factories import Change

FRACTION = "kv.gpu_memory_utilization"
BATCH = "scheduler.max_num_batched_tokens"
ONE_REPLICA = make.with_setting("parallel.dp", make.setting(1))


def diff(old: Capture, new: Capture) -> Diff:
    return compare(old, new, old_label="old.json", new_label="new.json")


def found(old: Capture, new: Capture, key: str) -> Finding | None:
    return next((f for f in diff(old, new).findings if f.key == key), None)


def set_by(value: object, word: str) -> Setting:
    return make.setting(value, "user", asked=value, word=word)  # type: ignore[arg-type]


def nothing(capture: Capture) -> Capture:
    return capture


AUTO, F16 = make.setting("auto"), make.setting("float16")
PLAIN = make.with_setting("model.quantization", make.setting(None))

CASES: list[tuple[str, str, Change, Change, str | None]] = [
    ("the same meaning and another value", "kv.block_size", nothing, nothing, "SettingDiffers"),
    (
        "the same meaning and the same value",
        "kv.block_size",
        nothing,
        make.with_setting("kv.block_size", make.setting(1)),
        None,
    ),
    ("the same number, and another meaning", BATCH, nothing, nothing, "MeaningDiffers"),
    (
        "unset on both, whatever it would mean",
        "kv.offload_bytes",
        make.with_setting("kv.offload_bytes", make.setting(None)),
        make.with_setting("kv.offload_bytes", make.setting(None)),
        None,
    ),
    ("set on the old side alone", FRACTION, nothing, nothing, "SettingNotCarried"),
    (
        "set on both",
        "scheduler.max_num_seqs",
        ONE_REPLICA,
        make.both(ONE_REPLICA, make.with_setting("scheduler.max_num_seqs", set_by(64, "--max-num-seqs"))),
        "SettingDiffers",
    ),
    (
        "set on both, and it means another thing",
        FRACTION,
        nothing,
        make.with_setting(FRACTION, set_by(0.9, "--gpu-memory-utilization")),
        "MeaningDiffers",
    ),
    (
        "two words for one thing",
        "kv.dtype",
        nothing,
        make.with_setting("kv.dtype", make.setting("bfloat16")),
        None,
    ),
    (
        "a word that takes the value of another setting",
        "kv.dtype",
        nothing,
        make.both(make.with_setting("kv.dtype", AUTO), make.with_setting("model.dtype", F16), PLAIN),
        "SettingDiffers",
    ),
    (
        "a word that does not, since something else decides",
        "kv.dtype",
        nothing,
        make.both(
            make.with_setting("kv.dtype", AUTO), make.with_setting("model.quantization", make.setting("modelopt"))
        ),
        None,
    ),
    (
        "off in two ways",
        "model.quantization",
        nothing,
        make.with_setting("model.quantization", make.setting("")),
        None,
    ),
    (
        "words that differ in their case alone",
        "kernels.moe_backend",
        make.with_setting("kernels.moe_backend", make.setting("TRITON")),
        make.with_setting("kernels.moe_backend", make.setting("triton")),
        None,
    ),
]


@pytest.mark.parametrize(("key", "left", "right", "kind"), [case[1:] for case in CASES], ids=[c[0] for c in CASES])
def test_kinds(key: str, left: Change, right: Change, kind: str | None) -> None:
    one = found(left(other.sglang()), right(make.vllm()), key)
    assert (one.kind if one else None) == kind


def test_a_finding_says_what_each_means_and_whether_they_compare() -> None:
    one = found(other.sglang(), make.vllm(), FRACTION)
    assert one is not None
    assert one.meanings is not None
    assert "free on the device before the weights are loaded" in one.meanings.old
    assert "all memory of the device" in one.meanings.new
    assert not one.meanings.comparable
    assert one.meanings.instead == "in bytes: SGLang 64 GiB, vLLM 72 GiB, each for what it says above"
    assert one.headline == (
        f"{FRACTION} is not carried over: set to 0.83 on SGLang, vLLM has 0.9, which means another thing"
    )


def test_bytes_are_left_out_where_a_ledger_does_not_state_them() -> None:
    silent = make.with_term("vLLM may use", Unknown(because="not said"))
    one = found(other.sglang(), silent(make.vllm()), FRACTION)
    assert one is not None
    assert one.meanings is not None
    assert one.meanings.instead is None


def test_the_same_meaning_compares() -> None:
    one = found(other.trtllm(), make.vllm(), BATCH)
    assert one is not None
    assert one.meanings is not None
    assert one.meanings.comparable
    assert one.headline == f"{BATCH}: TensorRT-LLM 4,096 tokens; vLLM 8,192 tokens"


def test_a_value_that_agrees_and_means_another_thing_is_a_word_not_a_finding() -> None:
    both = diff(make.with_setting("kv.prefix_caching", make.setting(value=True))(make.llamacpp()), make.vllm())
    assert "kv.prefix_caching" not in {f.key for f in both.findings}
    assert both.across is not None
    (word,) = (w for w in both.across.other_meanings if w.name == "kv.prefix_caching")
    assert word.meanings.old.startswith("a slot keeps the KV of its last request")


def test_what_both_set_is_told_apart_from_what_nobody_asked_for() -> None:
    left = make.both(ONE_REPLICA)(other.sglang())
    right = make.both(ONE_REPLICA, make.with_setting("scheduler.max_num_seqs", set_by(64, "--max-num-seqs")))
    asked = {f.key: f.asked for f in diff(left, right(make.vllm())).findings}
    assert asked["scheduler.max_num_seqs"]
    assert not asked[FRACTION]


def test_where_words_come_to_something_it_is_said() -> None:
    right = make.both(make.with_setting("kv.dtype", AUTO), make.with_setting("model.dtype", F16), PLAIN)
    one = found(other.sglang(), right(make.vllm()), "kv.dtype")
    assert one is not None
    assert one.why.endswith("On SGLang auto is bfloat16 here. On vLLM auto is float16 here.")


@pytest.mark.parametrize(
    ("old", "new", "lines"),
    [
        (other.sglang(), make.unknown_setting("kv.block_size", "no answer")(make.vllm()), ["kv.block_size"]),
        (
            from_log(make.without_setting("kv.block_size")(other.sglang())),
            make.vllm(),
            ["1 setting", "machine", "packages"],
        ),
    ],
)
def test_what_a_side_does_not_state(old: Capture, new: Capture, lines: list[str]) -> None:
    missing = diff(old, new).not_compared
    assert [m.what for m in missing] == ["native configuration", *lines]
    assert "old side" not in " ".join(m.because for m in missing)


def test_nothing_is_compared_where_one_side_did_not_resolve_it() -> None:
    both = diff(other.sglang(), make.failed()(make.vllm()))
    assert both.across is not None
    assert (both.across.compared, [f.key for f in both.findings]) == (0, ["start"])


def test_counts() -> None:
    across = diff(other.sglang(), make.vllm()).across
    assert across is not None
    assert (across.old_title, across.new_title) == ("SGLang", "vLLM")
    assert (across.compared, across.same) == (8, 3)


NONE, SIZES = make.with_setting("graphs.mode", make.setting("none")), make.setting([1, 2, 4], "derived")
CAPTURED = make.both(NONE, make.with_setting("graphs.capture_sizes", SIZES))
NO_SIZES = make.both(NONE, make.with_setting("graphs.capture_sizes", make.setting([])))


@pytest.mark.parametrize(
    ("key", "left", "right", "why"),
    [
        (
            "graphs.capture_sizes",
            CAPTURED,
            NO_SIZES,
            "No effect here: on SGLang no graphs are captured for decode steps; on vLLM graphs.mode is off",
        ),
        (
            "kv.offload_backend",
            make.with_setting("kv.offload_backend", make.setting(None)),
            make.both(
                make.with_setting("kv.offload_backend", make.setting("native")),
                make.with_setting("kv.offload_bytes", make.setting(None)),
            ),
            "No effect here: on SGLang the hierarchical cache is off: --enable-hierarchical-cache is not set; "
            "on vLLM no KV cache is offloaded: --kv-offloading-size is not set",
        ),
    ],
)
def test_what_does_nothing_on_either_side_is_cosmetic(key: str, left: Change, right: Change, why: str) -> None:
    one = found(left(other.sglang()), right(make.vllm()), key)
    assert one is not None
    assert (one.area, one.why, one.pin.because) == ("cosmetic", why, "it has no effect here")


def test_what_acts_on_one_side_is_not_cosmetic() -> None:
    graphs = make.both(
        make.with_setting("graphs.mode", make.setting("full")), make.with_setting("graphs.capture_sizes", SIZES)
    )
    one = found(graphs(other.sglang()), NO_SIZES(make.vllm()), "graphs.capture_sizes")
    assert one is not None
    assert one.area == "kernels"


def test_each_counts_in_its_own_unit() -> None:
    sizes = make.with_setting("graphs.max_capture_size", make.setting(32))
    one = found(sizes(other.sglang()), sizes(make.vllm()), "graphs.max_capture_size")
    assert one is not None
    assert one.headline == "graphs.max_capture_size means another thing on each: SGLang 32 requests; vLLM 32 tokens"
