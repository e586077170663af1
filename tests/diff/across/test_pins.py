"""What to type on the new engine: values are carried over where they mean the same there."""

from __future__ import annotations

import pytest

from engdiff import engines
from engdiff.diff.across.party import Party
from engdiff.diff.across.pins import Carrier
from engdiff.diff.compare import compare
from engdiff.diff.findings import SettingDiffers
from engdiff.engines.contract import PinStyle
from engdiff.schema.capture import Capture
from engdiff.schema.diff import Diff, Pin
from tests import factories as make
from tests.diff import other_engines as other
from tests.factories import GIB, Change

ONE_REPLICA = make.with_setting("parallel.dp", make.setting(1))
BYTES = make.with_native("flags.kv_cache_memory_bytes", {"names": ["--kv-cache-memory-bytes"], "takes": "value"})


def diff(old: Capture, new: Capture, style: PinStyle = "flags") -> Diff:
    return compare(old, new, old_label="old.json", new_label="new.json", style=style)


def pin(old: Capture, new: Capture, key: str, style: PinStyle = "flags") -> Pin:
    return next(f.pin for f in diff(old, new, style).findings if f.key == key)


VLLM = ONE_REPLICA(make.vllm())
SGLANG = other.sglang()

CASES: list[tuple[str, Capture, Capture, str, PinStyle, str | None, str | None]] = [
    ("a number", SGLANG, VLLM, "scheduler.max_num_seqs", "flags", "--max-num-seqs 512", None),
    (
        "a number that means another thing",
        SGLANG,
        VLLM,
        "kv.gpu_memory_utilization",
        "flags",
        None,
        "the two mean different things: this one is a share of all memory",
    ),
    ("as a variable", SGLANG, VLLM, "scheduler.max_num_seqs", "env", None, "only a flag sets it on vLLM"),
    (
        "a word, in the other engine's own",
        make.with_setting("kv.dtype", make.setting("bfloat16"))(make.vllm()),
        make.llamacpp(),
        "kv.dtype",
        "flags",
        "-ctk bf16",
        None,
    ),
    (
        "a word that the other engine has none for",
        make.with_setting("model.quantization", make.setting("modelopt", "user", asked="modelopt"))(SGLANG),
        make.with_setting("model.quantization", make.setting(None))(VLLM),
        "model.quantization",
        "flags",
        None,
        "engdiff knows no word of vLLM for modelopt",
    ),
    (
        "unset on the old engine",
        make.with_setting("kv.configured_bytes", make.setting(None))(VLLM),
        make.with_setting("kv.configured_bytes", make.setting(5, "user", asked=5))(other.trtllm()),
        "kv.configured_bytes",
        "flags",
        None,
        "it is unset on vLLM",
    ),
    (
        "off, in a word",
        make.with_setting("structured_outputs.backend", make.setting("none"))(SGLANG),
        make.with_setting("structured_outputs.backend", make.setting("auto"))(VLLM),
        "structured_outputs.backend",
        "flags",
        None,
        "it is unset on SGLang",
    ),
    (
        "what one flag alone cannot say",
        VLLM,
        make.llamacpp(),
        "model.max_model_len",
        "flags",
        None,
        "--ctx-size takes the context of all slots together: this length x --parallel",
    ),
    (
        "the cache, in bytes",
        SGLANG,
        BYTES(VLLM),
        "kv.pool_bytes",
        "flags",
        None,
        f"--kv-cache-memory-bytes {48 * GIB} asks for the same size, where the memory for it is there",
    ),
    (
        "the cache, in tokens",
        VLLM,
        SGLANG,
        "kv.pool_bytes",
        "flags",
        None,
        "--max-total-tokens 425984 asks for the same size, where the memory for it is there",
    ),
    (
        "the cache of an engine that takes no bytes",
        SGLANG,
        make.llamacpp(),
        "kv.pool_bytes",
        "flags",
        None,
        "llama.cpp takes no such size",
    ),
]


@pytest.mark.parametrize(
    ("old", "new", "key", "style", "text", "because"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_pins(old: Capture, new: Capture, key: str, style: PinStyle, text: str | None, because: str | None) -> None:
    found = pin(old, new, key, style)
    assert found.text == text
    assert (found.because or "").startswith(because or "")
    assert (found.because is None) is (because is None)


ASKED_SIZE = make.with_setting(
    "kv.configured_tokens", make.setting(393216, "user", asked=393216, word="--max-total-tokens")
)


def test_a_size_that_the_user_had_asked_for_is_asked_for_again() -> None:
    found = diff(ASKED_SIZE(SGLANG), BYTES(VLLM))
    assert pin(ASKED_SIZE(SGLANG), BYTES(VLLM), "kv.pool_bytes").text == f"--kv-cache-memory-bytes {48 * GIB}"
    assert f" --kv-cache-memory-bytes {48 * GIB}" in (found.pinned_command or "")
    assert found.across is not None
    (size,) = (one for one in found.across.one_sided if one.what == "kv.configured_tokens")
    assert size.counterpart == "--kv-cache-memory-bytes"


class Mute(type(engines.get("vllm"))):  # type: ignore[misc]
    """vLLM, if it had no pins."""

    def pin(self, *_: object) -> None:
        return None


@pytest.mark.parametrize(
    ("key", "style", "because"),
    [
        ("scheduler.max_num_seqs", "flags", "--max-num-seqs sets it on vLLM; engdiff does not know how"),
        ("scheduler.max_num_seqs", "env", "only a flag sets it on vLLM: --max-num-seqs"),
        ("model.runner_type", "flags", "--runner sets it on vLLM"),
        ("kv.layout", "flags", "vLLM takes it as cache_config.kv_cache_layout in its configuration, not as a flag"),
        ("kernels.threads", "flags", "nothing sets it on vLLM"),
    ],
)
def test_why_there_is_no_pin(key: str, style: PinStyle, because: str) -> None:
    old = make.with_setting(key, make.setting(512))(SGLANG)
    carrier = Carrier(Party(old, engines.get("sglang")), Party(VLLM, Mute()), style)
    found = SettingDiffers(
        key=key, name=key, old=make.known(512), new=make.known(1), area="scheduling", why="It counts."
    )
    pin = carrier.pin(found)
    assert pin.text is None
    assert (pin.because or "").startswith(because)


def test_all_pools_of_the_old_engine_are_asked_for_together() -> None:
    rank = SGLANG.instances[0].ranks[0]
    two = make.with_rank(rank.model_copy(update={"pools": (*rank.pools, *rank.pools)}))(SGLANG)
    because = pin(two, BYTES(VLLM), "kv.pool_bytes").because
    assert because == (f"--kv-cache-memory-bytes {96 * GIB} asks for the same size, where the memory for it is there")


def test_the_command_has_what_the_user_had_set_and_nothing_else() -> None:
    """The context that SGLang took from the model is no wish; 512 requests are."""
    found = diff(SGLANG, VLLM)
    assert {f.key for f in found.findings if f.pin.text} > {"scheduler.max_num_seqs"}
    assert found.pinned_command == "vllm serve /models/tiny --max-model-len 2048 --max-num-seqs 512"
    assert found.prove_command == (
        "engdiff diff old.json vllm@0.32.0 --model tiny -- --max-model-len 2048 --max-num-seqs 512"
    )


@pytest.mark.parametrize(
    "change",
    [make.with_launch(unknown_because="a log does not state it"), make.without_setting("scheduler.max_num_seqs")],
)
def test_no_command_where_there_is_nothing_to_type(change: Change) -> None:
    found = diff(SGLANG, change(VLLM))
    assert (found.pinned_command, found.prove_command) == (None, None)
