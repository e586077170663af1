"""One key over releases: spans, moves, and what is known of them."""

from __future__ import annotations

from typing import Any

import pytest

from engdiff import engines
from engdiff.diff.explaining import explanation
from engdiff.diff.history import Asked, Release, history
from engdiff.diff.keys import key_of
from engdiff.errors import UsageError
from engdiff.schema.capture import Capture, Setting
from engdiff.schema.history import History
from engdiff.schema.values import Known, Unknown, plain
from tests import factories as make
from tests.diff.fake_engine import change, use

KEY = "scheduler.max_num_seqs"
ASKED = Asked(KEY, "h100-80gb", "llama-3.1-8b")


def release(version: str, value: int | None) -> Release:
    """A release in which the key had this default; ``None``: the capture does not hold it."""
    base = make.vllm(version)
    settings = {name: one for name, one in base.settings.items() if name != KEY}
    if value is not None:
        settings[KEY] = Setting(resolved=Known(value=value), effective=Known(value=value), origin="default")
    return Release(version, base.model_copy(update={"settings": settings}))


def told(*releases: Release) -> History:
    return history(engines.get("vllm"), ASKED, releases)


def test_neighbours_with_one_value_are_one_span() -> None:
    made = told(release("0.30.0", 256), release("0.31.0", 256), release("0.32.0", 1024))
    assert [(s.first, s.last, s.releases, plain(s.value)) for s in made.spans] == [
        ("0.30.0", "0.31.0", 2, 256),
        ("0.32.0", "0.32.0", 1, 1024),
    ]
    (move,) = made.moves
    assert (move.before, move.since) == ("0.31.0", "0.32.0")
    assert "256" in move.headline
    assert move.pin.text == "--max-num-seqs 256"


def test_a_key_that_comes_later_moves_from_not_there() -> None:
    made = told(release("0.30.0", None), release("0.31.0", 256))
    assert isinstance(made.spans[0].value, Unknown)
    assert [move.since for move in made.moves] == ["0.31.0"]


def test_a_release_that_refused_is_said_and_bridged() -> None:
    refused = Release("0.31.0", Unknown(because="no such model"))
    made = told(release("0.30.0", 256), refused, release("0.32.0", 256))
    assert [(s.first, s.last, s.releases) for s in made.spans] == [("0.30.0", "0.32.0", 2)]
    assert [(left.version, left.because) for left in made.without] == [("0.31.0", "no such model")]


def test_changes_go_with_their_move_and_the_rest_is_told_beside(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [change(KEY, since="0.31.0"), change(KEY, since="0.29.0"), change(KEY, since="0.31.0", platform="cpu")]
    use(monkeypatch, changes={"change": rows})
    made = told(release("0.30.0", 256), release("0.31.0", 1024))
    assert [account.since for account in made.moves[0].accounts] == ["0.31.0"]
    assert [account.since for account in made.accounts] == ["0.29.0"]


def test_nothing_known_is_an_empty_history() -> None:
    made = told()
    assert (made.spans, made.moves) == ((), ())


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("scheduler.max_num_seqs", KEY),
        ("--max-num-seqs", KEY),
        ("max_num_seqs", KEY),
        ("runner", "runner.name"),
        ("attention", "kernels.attention_backend"),
        ("VLLM_CPU_KVCACHE_SPACE", "kv.configured_bytes"),
    ],
)
def test_a_user_may_call_it_so(text: str, key: str) -> None:
    assert key_of(text, (engines.get("vllm"),), None) == key


def test_a_path_of_the_engines_own_configuration_is_a_key() -> None:
    held = make.vllm().model_copy(update={"native": {"config": {"model_config": {"seed": 0}}}})
    assert key_of("model_config.seed", (engines.get("vllm"),), held) == "config.model_config.seed"


def test_what_nobody_knows_names_what_is_near() -> None:
    with pytest.raises(UsageError, match="max_num_sequences") as caught:
        key_of("max_num_sequences", (engines.get("vllm"),), None)
    assert KEY in caught.value.advice


def explained(key: str, capture: Capture | None = None, **histories: History) -> Any:
    return explanation(key, [engines.get(name) for name in engines.names()], histories, capture)


def test_a_setting_is_explained_with_its_flags_on_every_engine() -> None:
    made = explained(KEY, vllm=told(release("0.30.0", 256)))
    flags = {one.engine: one.spellings[0].flag for one in made.engines if one.spellings}
    assert flags["vllm"] == "--max-num-seqs"
    assert flags["sglang"] == "--max-running-requests"
    assert made.effects["memory"]
    assert {one.engine: len(one.defaults) for one in made.engines}["vllm"] == 1


def test_a_flag_that_was_renamed_has_two_spellings() -> None:
    (sglang,) = (one for one in explained("graphs.capture_sizes").engines if one.engine == "sglang")
    spelt = [(one.first, one.last, one.flag) for one in sglang.spellings]
    assert spelt == [("0.5.14", "0.5.23", "--cuda-graph-bs-decode"), ("0.4.6", "0.5.13.post1", "--cuda-graph-bs")]


def test_the_runners_reasons_are_the_engines_in_its_order() -> None:
    because = Known(value="pooling model, prompt embeds")
    base = make.vllm()
    held = base.model_copy(
        update={"runner": base.runner.model_copy(update={"name": Known(value="V1"), "because": because})}
    )
    made = explained("runner.name", held)
    assert plain(made.here.value) == "V1"
    assert made.here.because == ("pooling model", "prompt embeds")


def test_what_a_capture_does_not_hold_says_why() -> None:
    made = explained("lora.max_loras", make.vllm())
    assert made.here.unknown_because


def test_a_path_without_words_is_told_as_such() -> None:
    assert "no words" in explained("config.model_config.seed").meaning
