"""What holds for every pair of captures."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from engdiff.diff.compare import compare
from engdiff.schema.capture import Capture, Origin
from engdiff.schema.diff import Diff
from tests import factories as make
from tests.factories import GIB

KEYS = (
    "kv.block_size",
    "kv.prefix_caching",
    "kernels.ir_op_priority",
    "model.dtype",
    "scheduler.max_num_batched_tokens",
    "scheduler.max_num_seqs",
)
PLAIN = st.none() | st.booleans() | st.integers(0, 2**40) | st.floats(0, 1) | st.text(max_size=8)
ORIGINS: st.SearchStrategy[Origin | None] = st.sampled_from(["default", "derived"])
TREES = st.recursive(PLAIN, lambda inner: st.dictionaries(st.text("abc", min_size=1, max_size=2), inner, max_size=4))


@st.composite
def vllm_captures(draw: st.DrawFn) -> Capture:
    changes = [
        make.with_setting(key, make.setting(draw(PLAIN), draw(ORIGINS)))
        for key in draw(st.lists(st.sampled_from(KEYS), unique=True))
    ]
    if draw(st.booleans()):
        changes.append(make.with_rank(make.vllm_rank(weights=draw(st.integers(0, 60 * GIB)))))
    if draw(st.booleans()):
        changes.append(make.with_native("config.example_config.tree", draw(TREES)))
    if draw(st.booleans()):
        changes.append(make.unknown_setting(draw(st.sampled_from(KEYS))))
    if draw(st.booleans()):
        changes.append(make.with_runner(name=make.known(draw(st.text(max_size=3)))))
    return make.both(*changes)(make.vllm())


@st.composite
def llamacpp_captures(draw: st.DrawFn) -> Capture:
    sizes = [draw(st.integers(1, 2**12)) for _ in range(3)]
    return make.llamacpp(slots=sizes[0], cells=sizes[1], per_token=sizes[2])


CAPTURES = vllm_captures() | llamacpp_captures()


def diff(old: Capture, new: Capture) -> Diff:
    return compare(old, new, old_label="old.json", new_label="new.json")


@given(CAPTURES)
def test_nothing_moves_between_a_capture_and_itself_property(capture: Capture) -> None:
    found = diff(capture, capture)
    assert (found.findings, found.waterfalls, found.native_only, found.machine, found.packages) == ((),) * 5
    assert (found.pinned_command, found.prove_command) == (None, None)


@given(CAPTURES, CAPTURES)
def test_the_same_two_give_the_same_diff_property(old: Capture, new: Capture) -> None:
    again = Capture.model_validate_json(old.model_dump_json())
    assert diff(old, new) == diff(again, Capture.model_validate_json(new.model_dump_json()))


@given(vllm_captures(), vllm_captures())
def test_what_moved_moved_both_ways_property(old: Capture, new: Capture) -> None:
    there, back = diff(old, new), diff(new, old)
    assert sorted(f.key for f in there.findings) == sorted(f.key for f in back.findings)
    assert {n.what for n in there.not_compared} == {n.what for n in back.not_compared}


@given(CAPTURES, CAPTURES)
def test_a_diff_survives_being_written_property(old: Capture, new: Capture) -> None:
    found = diff(old, new)
    assert Diff.model_validate_json(found.model_dump_json()) == found


@given(CAPTURES, CAPTURES)
def test_every_finding_has_a_pin_or_a_reason_property(old: Capture, new: Capture) -> None:
    found = diff(old, new)
    assert all(f.pin.text or f.pin.because for f in found.findings)
    assert all(f.headline and f.why for f in found.findings)
