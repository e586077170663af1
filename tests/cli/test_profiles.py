"""Verbs that read shipped profiles: no engine, no network."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engdiff.references import parse
from engdiff.sources.acquire import Wishes, acquire
from engdiff.sources.profiles import shipped
from tests.cli.conftest import Call

SIDES = ("vllm@0.24.0/h100-80gb", "vllm@0.33.0/h100-80gb")


def test_blame_tells_a_history(call: Call) -> None:
    ended = call("blame", "vllm", "graphs.capture_sizes")
    assert ended.code == 0
    assert "graphs.capture_sizes · vllm · h100-80gb · llama-3.1-8b" in ended.out


def test_blame_takes_a_flag_and_gives_json(call: Call) -> None:
    ended = call("blame", "trtllm", "--max_batch_size", "--json")
    told = json.loads(ended.out)
    assert (ended.code, told["document"], told["key"]) == (0, "history", "scheduler.max_num_seqs")
    assert "not verified on a live engine" in told["notes"][0]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("vllm", "no.such.setting"), "no setting, flag or decision"),
        (("vllm", "runner", "--gpu", "t4"), "no profile of t4"),
        (("vllm", "runner", "--gpu", "h100:8"), "no profile of h100-80gb:8"),
        (("nosuch", "runner"), "nosuch"),
        (("vllm", "runner", "--gpu", "nosuch"), "no GPU of this name"),
    ],
)
def test_blame_says_what_it_cannot(call: Call, words: tuple[str, ...], says: str) -> None:
    ended = call("blame", *words)
    assert ended.code == 2
    assert says in ended.err


def test_blame_takes_the_words_of_a_scenario(call: Call) -> None:
    ended = call(
        "blame", "vllm", "runner", "--gpu", "h100:8", "--model", "deepseek-v3", "--", "--tensor-parallel-size=8"
    )
    assert ended.code == 0
    assert "h100-80gb:8 · deepseek-v3 · --tensor-parallel-size 8" in ended.out


def test_explain_lists_and_tells(call: Call) -> None:
    assert "scheduler.max_num_seqs" in call("explain").out
    told = call("explain", "--max-num-seqs")
    assert told.code == 0
    for title in ("vLLM", "SGLang", "TensorRT-LLM", "llama.cpp"):
        assert title in told.out


def test_explain_tells_of_a_capture(call: Call, tmp_path: Path) -> None:
    held = tmp_path / "c.json"
    assert call("capture", SIDES[1], "--model", "llama-3.1-8b", "-o", str(held), "-q").code == 0
    told = call("explain", "runner", "--capture", str(held))
    assert "In this capture (vllm 0.33.0)" in told.out


def test_diff_reads_profiles(call: Call) -> None:
    ended = call("diff", *SIDES, "--model", "8b", "--json")
    told = json.loads(ended.out)
    assert ended.code == 1
    assert [told[side]["source"] for side in ("old", "new")] == ["profile", "profile"]
    assert told["behaviours"]


def test_a_variable_of_the_engine_means_that_no_profile_answers(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    monkeypatch.setattr("engdiff.sources.acquire.profile_of", lambda *words: asked.append(words))
    monkeypatch.setattr("engdiff.sources.acquire.simulate", lambda *words: asked.append("simulated"))
    monkeypatch.setenv("VLLM_USE_V1", "1")
    acquire(parse(SIDES[0]), Wishes(model="8b"), lambda text: None)
    assert asked == ["simulated"]


def test_profiles_list(call: Call) -> None:
    ended = call("profiles", "list", "vllm")
    assert ended.code == 0
    assert shipped.versions("vllm")[-1] in ended.out
    assert "h100-80gb llama-3.1-8b" in ended.out
    assert "phi-4" in call("profiles", "list", "--scenarios").out


def test_profiles_refresh_of_what_needs_no_engine(call: Call, tmp_path: Path) -> None:
    ended = call("profiles", "refresh", "trtllm@1.2.0", "--folder", str(tmp_path), "-q")
    assert ended.code == 0
    assert (tmp_path / "1.2.0.json.xz").is_file()
    same = call("profiles", "refresh", "trtllm@1.2.0", "--check", "-q")
    assert (same.code, "the same, byte for byte" in same.out) == (0, True)
