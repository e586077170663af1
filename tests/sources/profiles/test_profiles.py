"""Making, writing and reading profiles, with an engine that answers at once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from engdiff import engines
from engdiff.errors import EngdiffError, EngineFailed, UsageError
from engdiff.knowledge.gpus import pretended
from engdiff.schema.capture import CAPTURE_SCHEMA, Capture, Library, Setting, Simulated
from engdiff.schema.values import Evidence, Known, Unknown, plain
from engdiff.sources.base import read_capture
from engdiff.sources.profiles import grid, refresh, shipped
from engdiff.sources.profiles.packing import Tree, packed
from engdiff.sources.simulate import Ask

VLLM = engines.get("vllm")
KEY = "kv.gpu_memory_utilization"


def decided(scenario: grid.Shipped, share: float) -> Capture:
    """What a pretended engine says of a scenario, with the machine and the day in it."""
    known = Known(value=share, evidence=Evidence(source="simulation", where="CacheConfig"))
    base = read_capture("vllm", "log", "-")
    return base.model_copy(
        update={
            "identity": base.identity.model_copy(
                update={"source": "simulate", "version": Known(value="0.32.0"), "captured_at": "2026-12-03T07:00:00"}
            ),
            "settings": {KEY: Setting(resolved=known, effective=known, origin="default")},
            "native": {
                "config": {"instance_id": "17", "seed": 0},
                "variables": {"VLLM_CACHE_ROOT": "/home/me/.cache", "VLLM_USE_V1": True},
            },
            "simulated": Simulated(
                device=scenario.text,
                wheel="vllm.whl",
                sha256="ab",
                stand_ins=("torch.version.cuda: 13.0",),
                libraries={
                    "torch": Library(asked="==2.14.0", answered="2.13.0"),
                    "fastapi": Library(asked=">=0.1", answered="0.120"),
                },
            ),
        }
    )


def resolve(scenarios: Sequence[grid.Shipped]) -> list[refresh.Simulated]:
    """A100s are refused, everything else is decided."""
    refused = EngineFailed("refused: no", cause="no", advice="none", last_words=("ValueError: no",), log=None)
    return [
        refused if one.text.startswith("a100-80gb") else decided(one, 0.9 if one.text.startswith("l4") else 0.92)
        for one in scenarios
    ]


def profile(version: str = "0.32.0") -> Tree:
    return refresh.assembled(VLLM, version, grid.scenarios(), resolve)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An engine's folder with two profiles."""
    monkeypatch.setattr(shipped, "home", lambda engine: tmp_path / engine)
    shipped.read.cache_clear()
    for version in ("0.32.0", "0.9.1"):
        refresh.write(profile(version), tmp_path / "vllm")
    return tmp_path / "vllm"


def test_the_grid_holds_every_kind_of_model_on_every_main_gpu() -> None:
    keys = [one.key for one in grid.scenarios()]
    assert len(keys) == len(set(keys)) == len(grid.GPUS) * len(grid.MODELS)
    assert "h100-80gb llama-3.1-8b" in keys
    assert "b200:8 deepseek-v3 --tensor-parallel-size 8" in keys


def test_releases_are_ordered_as_releases(home: Path) -> None:
    assert shipped.versions("vllm") == ("0.9.1", "0.32.0")
    assert shipped.has("vllm", "0.9.1")
    assert not shipped.has("vllm", "0.10.0")


def test_a_scenario_comes_back_as_a_capture(home: Path) -> None:
    made = shipped.profile_of(VLLM, "0.32.0", Ask(pretended("h100"), "8b", ()))
    assert made is not None
    assert (made.identity.source, made.launch.model_given) == ("profile", "8b")
    assert plain(made.settings[KEY].final) == 0.92
    l4 = shipped.capture("vllm", "0.32.0", "l4 llama-3.1-8b")
    assert l4 is not None
    assert plain(l4.settings[KEY].final) == 0.9


def test_nothing_of_the_machine_or_the_day_is_kept(home: Path) -> None:
    tree = shipped.tree_of("vllm", "0.32.0", "h100-80gb llama-3.1-8b")
    assert tree is not None
    assert tree["identity"]["captured_at"] == ""
    assert isinstance(Capture.model_validate(tree).identity.environment, Unknown)
    assert tree["native"] == {"config": {"seed": 0}, "variables": {"VLLM_USE_V1": True}}
    assert list(tree["simulated"]["libraries"]) == ["torch"]


def test_a_refusal_is_told_as_the_engine_told_it(home: Path) -> None:
    with pytest.raises(EngineFailed, match="refused: no") as caught:
        shipped.capture("vllm", "0.32.0", "a100-80gb llama-3.1-8b")
    assert caught.value.last_words == ("ValueError: no",)
    assert shipped.newest_capture("vllm", "a100-80gb llama-3.1-8b") is None


@pytest.mark.parametrize(
    ("device", "model", "words"),
    [
        ("h100", "8b", ("--max-num-seqs", "8")),
        ("h100:2", "8b", ()),
        ("t4", "8b", ()),
        ("h100", "phi-4", ()),
        ("h100", "/some/folder", ()),
    ],
)
def test_what_is_not_shipped_is_none(home: Path, device: str, model: str, words: tuple[str, ...]) -> None:
    assert shipped.profile_of(VLLM, "0.32.0", Ask(pretended(device), model, words)) is None


def test_words_are_the_same_with_and_without_an_equals_sign(home: Path) -> None:
    for words in (("--tensor-parallel-size", "8"), ("--tensor-parallel-size=8",)):
        assert shipped.profile_of(VLLM, "0.32.0", Ask(pretended("h100:8"), "deepseek-v3", words)) is not None


def test_this_machine_and_releases_without_a_profile_have_none(home: Path) -> None:
    assert shipped.profile_of(VLLM, "0.32.0", Ask(None, "8b", ())) is None
    assert shipped.profile_of(VLLM, "0.31.0", Ask(pretended("h100"), "8b", ())) is None


def test_a_scenario_that_is_not_shipped_names_those_that_are(home: Path) -> None:
    with pytest.raises(UsageError, match=r"no profile of t4 llama-3\.1-8b") as caught:
        shipped.scenario(VLLM, pretended("t4"), "8b", ())
    assert "h100-80gb llama-3.1-8b" in caught.value.advice
    with pytest.raises(UsageError, match="no profiles are shipped"):
        shipped.scenario(engines.get("sglang"), pretended("t4"), "8b", ())


@pytest.mark.parametrize("data", [b"broken", packed({"schema": CAPTURE_SCHEMA + 1, "scenarios": {}})])
def test_a_file_that_is_no_profile_is_one_clear_error(home: Path, data: bytes) -> None:
    (home / "0.8.0.json.xz").write_bytes(data)
    with pytest.raises(EngdiffError, match=r"0\.8\.0\.json\.xz"):
        shipped.read("vllm", "0.8.0")


def test_the_same_answers_give_the_same_bytes() -> None:
    assert packed(profile()) == packed(profile())


@pytest.mark.parametrize(
    ("change", "says", "same"),
    [
        (None, "the same, byte for byte", True),
        (0.5, "differs from what is shipped in l4", False),
    ],
)
def test_refresh_compares(
    home: Path, monkeypatch: pytest.MonkeyPatch, change: float | None, says: str, same: bool
) -> None:
    def fresh(engine: object, version: str, progress: object) -> Tree:
        def answer(scenarios: Sequence[grid.Shipped]) -> list[Any]:
            made = resolve(scenarios)
            return [
                decided(s, change) if change and s.text.startswith("l4") else m
                for s, m in zip(scenarios, made, strict=True)
            ]

        return refresh.assembled(VLLM, version, grid.scenarios(), answer)

    monkeypatch.setattr(refresh, "profile", fresh)
    before = (home / "0.32.0.json.xz").read_bytes()
    done = refresh.refreshed("vllm@0.32.0", home, lambda text: None, check=True)
    assert says in done.says
    assert done.same is same
    assert (home / "0.32.0.json.xz").read_bytes() == before
    refresh.refreshed("vllm@0.32.0", home, lambda text: None)
    assert ((home / "0.32.0.json.xz").read_bytes() == before) is same


@pytest.mark.parametrize("text", ["vllm", "vllm@0.32.0/h100", "capture.json", "-"])
def test_refresh_wants_a_release(home: Path, text: str) -> None:
    with pytest.raises(UsageError, match="is no release"):
        refresh.refreshed(text, home, lambda text: None)
