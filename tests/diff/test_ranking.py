"""The order of findings: what nobody asked for, what is explained, what is costly, what moved most."""

from __future__ import annotations

from engdiff.diff.compare import compare
from engdiff.knowledge.settings import AREAS
from engdiff.schema.capture import Capture
from engdiff.schema.diff import Diff
from tests import factories as make
from tests.factories import GIB


def diff(old: Capture, new: Capture) -> Diff:
    return compare(old, new, old_label="old.json", new_label="new.json")


MANY = make.both(
    make.with_launch(arguments=("--block-size", "32")),
    make.with_setting("kv.block_size", make.setting(32, "user", asked=32)),
    make.with_setting("scheduler.max_num_seqs", make.setting(128)),
    make.with_setting("scheduler.max_num_batched_tokens", make.setting(65536)),
    make.with_setting("model.max_model_len", make.setting(1024, "forced", asked=2048, word="--max-model-len")),
    make.with_setting("model.dtype", make.setting("float16", "derived")),
    make.with_pool(bytes=make.measured(40 * GIB)),
    make.with_term("weights", make.measured(20 * GIB)),
    make.with_runner(attention_backend=make.known("TRITON_ATTN")),
    make.with_native("config.example_config.example_option", "new"),
)


def test_order() -> None:
    old = make.vllm()
    assert [f.key for f in diff(old, MANY(old)).findings] == [
        "kv.pool_bytes",
        "memory.weights",
        "model.max_model_len",  # overruled goes before what moved more
        "scheduler.max_num_batched_tokens",  # ×8 before ÷2
        "scheduler.max_num_seqs",
        "kernels.attention_backend",
        "model.dtype",
        "config.example_config.example_option",  # without an account
        "kv.block_size",  # asked for
    ]


def test_areas_come_in_the_order_of_what_they_cost() -> None:
    found = [f for f in diff(make.vllm(), MANY(make.vllm())).findings if not f.asked and f.explained]
    places = [AREAS.index(f.area) for f in found]
    assert places == sorted(places)


def test_a_refused_start_is_first() -> None:
    old = make.vllm()
    new = make.both(
        make.with_launch(arguments=("--block-size", "32")),
        make.with_setting("kv.block_size", make.setting(32, "user", asked=32)),
        make.failed(),
    )(old)
    assert [f.kind for f in diff(old, new).findings] == ["StartRefused", "SettingChanged"]


def test_different_words_alone_are_no_finding() -> None:
    old = make.vllm()
    assert diff(old, make.with_launch(arguments=("--max-model-len=2048",))(old)).findings == ()


def test_the_same_words_never_count_as_asked() -> None:
    """The engine may write a value where it wrote none before, under the very same command."""
    old = make.vllm()
    new = make.with_setting("scheduler.max_num_seqs", make.setting(64, "user", asked=64))(old)
    assert [(f.kind, f.asked) for f in diff(old, new).findings] == [("DerivedMoved", False)]
