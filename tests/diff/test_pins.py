"""Pins: what a finding gets, what it inherits, and the two commands."""

from __future__ import annotations

import shlex

import pytest

from engdiff.diff.compare import compare
from engdiff.engines.contract import PinStyle
from engdiff.redact import REDACTED
from engdiff.schema.capture import Capture
from engdiff.schema.diff import Diff
from tests import factories as make
from tests.diff.fake_engine import use
from tests.factories import GIB, Change

SEQS = make.with_setting("scheduler.max_num_seqs", make.setting(128))


def diff(old: Capture, new: Capture, style: PinStyle = "flags", old_label: str = "old.json") -> Diff:
    return compare(old, new, old_label=old_label, new_label="new.json", style=style)


def pins(found: Diff) -> dict[str, str | None]:
    return {f.key: f.pin.text for f in found.findings}


def _same(capture: Capture) -> Capture:
    return capture


def test_flag() -> None:
    found = diff(make.vllm(), SEQS(make.vllm()))
    (finding,) = found.findings
    assert (finding.pin.text, finding.pin.style) == ("--max-num-seqs 256", "flags")
    assert found.pinned_command == "vllm serve /models/tiny --max-model-len 2048 --max-num-seqs 256"
    assert found.prove_command == (
        "engdiff diff old.json vllm@0.32.0 --model tiny -- --max-model-len 2048 --max-num-seqs 256"
    )


def test_words_with_spaces_and_quotes_survive(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, noise={"areas": {"example_config": "kernels"}})
    odd = """{"it's": "a b"}"""
    old = make.with_native("config.example_config.example_option", odd)(make.vllm())
    launch = make.with_launch(model="/my models/tiny", model_given="my tiny", variables={"VLLM_X": "a b"})
    found = diff(old, launch(make.vllm()), old_label="my old.json")
    (pin,) = pins(found).values()
    assert shlex.split(pin or "") == ["--example-option", odd]
    words = ["--max-model-len", "2048", "--example-option", odd]
    assert shlex.split(found.pinned_command or "") == ["VLLM_X=a b", "vllm", "serve", "/my models/tiny", *words]
    assert shlex.split(found.prove_command or "") == [
        "engdiff", "diff", "my old.json", "vllm@0.32.0", "--model", "my tiny", "--env", "VLLM_X=a b", "--", *words,
    ]  # fmt: skip


def test_a_variable_with_a_space_is_quoted(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, noise={"areas": {"variables": "kernels"}})
    found = diff(make.with_native("variables.VLLM_EXAMPLE", "a b")(make.vllm()), make.vllm())
    assert pins(found) == {"variables.VLLM_EXAMPLE": "VLLM_EXAMPLE='a b'"}
    assert (found.pinned_command or "").startswith("VLLM_EXAMPLE='a b' vllm serve ")


def test_a_redacted_variable_is_left_out() -> None:
    new = make.both(SEQS, make.with_launch(variables={"HF_TOKEN": REDACTED, "VLLM_X": "1"}))(make.vllm())
    found = diff(make.vllm(), new)
    assert (found.pinned_command or "").startswith("VLLM_X=1 vllm serve ")
    assert REDACTED not in f"{found.pinned_command} {found.prove_command}"


def test_an_engine_that_engdiff_did_not_install_is_named_by_its_interpreter() -> None:
    found = diff(make.vllm(), make.both(SEQS, make.with_environment(managed=False))(make.vllm()))
    assert " vllm --python /opt/engine/bin/python --model tiny " in (found.prove_command or "")


def test_an_engine_in_a_container_is_named_by_its_image() -> None:
    inside = make.both(SEQS, make.with_environment(managed=False), make.with_launch(image="vllm/vllm-openai:v0.33.0"))
    found = diff(make.vllm(), inside(make.vllm()))
    assert " vllm --container vllm/vllm-openai:v0.33.0 --model tiny " in (found.prove_command or "")


def test_what_came_from_standard_input_cannot_be_read_again() -> None:
    found = diff(make.vllm(), SEQS(make.vllm()), old_label="-")
    assert (found.pinned_command is None, found.prove_command) == (False, None)


def test_no_pin_no_command() -> None:
    found = diff(make.vllm(), make.with_admission(rule=make.known("another"))(make.vllm()))
    assert (found.pinned_command, found.prove_command) == (None, None)
    assert found.findings[0].pin.because


def test_the_variable_that_chooses_the_runner_pins_it() -> None:
    old = make.with_runner(name=make.known("V2"))(make.vllm())
    found = diff(old, make.with_runner(name=make.known("V1"))(make.vllm()))
    assert found.findings[0].pin.text == "VLLM_USE_V2_MODEL_RUNNER=1"


LEAF = "config.example_config.example_option"


@pytest.mark.parametrize(
    ("old", "new", "because"),
    [
        (_same, make.with_term("weights", make.measured(20 * GIB)), "no setting of its own"),
        (make.with_native(LEAF, None), make.with_native(LEAF, "new"), "unset before"),
        (make.with_native("config.no_flag", 1), make.with_native("config.no_flag", 2), "no flag of that name"),
        (_same, make.with_admission(rule=make.known("another")), "no flag or variable"),
    ],
)
def test_why_there_is_none(old: Change, new: Change, because: str) -> None:
    (finding,) = diff(old(make.vllm()), new(make.vllm())).findings
    assert finding.pin.text is None
    assert because in (finding.pin.because or "")


def test_cosmetic_pins_stay_out_of_the_command() -> None:
    found = diff(make.vllm(), make.with_native("config.example_config.example_option", "new")(make.vllm()))
    assert pins(found) == {"config.example_config.example_option": "--example-option old"}
    assert found.pinned_command is None


def test_asked_for_is_not_pinned_back() -> None:
    asked = make.both(
        make.with_launch(arguments=("--max-num-seqs", "64")),
        make.with_setting("scheduler.max_num_seqs", make.setting(64, "user", asked=64)),
    )
    found = diff(make.vllm(), asked(make.vllm()))
    assert (found.findings[0].asked, found.pinned_command) == (True, None)


# --- llama.cpp: both styles, and what follows from what -----------------------------------------------------------


def grown(slots: int = 4) -> Capture:
    return make.llamacpp(slots=slots, cells=4096)


def test_a_pool_takes_the_pin_of_the_factor_that_moved() -> None:
    found = diff(make.llamacpp(), grown())
    assert pins(found) == {
        "kv.pool_bytes": "-c 4096",
        "model.context_total": "-c 4096",
        "model.max_model_len": "-c 4096",
    }
    assert found.findings[0].follows_from == ("model.context_total",)
    assert found.findings[0].pin.because == "it follows from model.context_total"
    assert found.pinned_command == "llama-server -m /models/tiny.gguf -np 4 -c 4096"
    assert found.prove_command == "engdiff diff old.json llamacpp@2026.9.11063 --model tiny -- -np 4 -c 4096"


def test_as_a_variable() -> None:
    found = diff(make.llamacpp(), grown(), "env")
    assert set(pins(found).values()) == {"LLAMA_ARG_CTX_SIZE=4096"}
    assert found.findings[0].pin.style == "env"
    assert found.pinned_command == "LLAMA_ARG_CTX_SIZE=4096 llama-server -m /models/tiny.gguf -np 4"
    assert found.prove_command == (
        "engdiff diff old.json llamacpp@2026.9.11063 --model tiny --env LLAMA_ARG_CTX_SIZE=4096 -- -np 4"
    )


def test_where_only_a_flag_does_it() -> None:
    found = diff(make.vllm(), SEQS(make.vllm()), "env")
    assert (found.findings[0].pin.text, found.findings[0].pin.because) == (None, "only a flag restores it")


def test_two_causes_two_pins() -> None:
    new = make.both(
        make.with_setting("scheduler.max_num_seqs", make.setting(8, "derived")),
        make.with_launch(arguments=("-np", "4")),
    )(grown(slots=8))
    pool = diff(make.llamacpp(), new).findings[0]
    assert pool.follows_from == ("scheduler.max_num_seqs", "model.context_total")
    assert sorted(shlex.split(pool.pin.text or "")) == ["-c", "-np", "4", "4096"]


def test_what_follows_from_something_without_a_pin_says_so() -> None:
    """The new version has no flag for the type of the cache: the name of the type is not one that it takes."""
    old, new = make.llamacpp(), make.llamacpp(per_token=512)
    old = make.with_setting("kv.dtype", make.setting(["odd"]))(old)
    pool = next(
        f
        for f in diff(old, make.with_setting("kv.dtype", make.setting("q8_0"))(new)).findings
        if f.key == "kv.pool_bytes"
    )
    assert (pool.pin.text, pool.pin.because) == (None, "it follows from kv.dtype, which has none")
