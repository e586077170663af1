"""SGLang simulated: who answers for which release, how it is run, and what a capture of it holds and leaves unknown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from engdiff.engines.contract import Observed, Scenario, SimulationPlan, SimulationRequest
from engdiff.engines.sglang.simulation import NEWEST_LIBRARIES, SGLangSimulation
from engdiff.errors import UsageError
from engdiff.knowledge.gpus import pretended
from engdiff.machine import look
from engdiff.schema.capture import Capture
from engdiff.schema.values import Unknown, plain
from engdiff.sources.base import read_capture

SIMULATION = SGLangSimulation()


@pytest.mark.parametrize(
    ("version", "libraries"),
    [
        ("0.4.6", "0.4.6"),
        ("0.4.9", "0.4.6"),
        ("0.5.6.post2", "0.5.9"),
        ("0.5.12.post1", "0.5.12"),
        ("0.5.22", NEWEST_LIBRARIES),
        ("0.9.0", NEWEST_LIBRARIES),
    ],
)
def test_libraries_of_its_age_answer_for_a_release(version: str, libraries: str) -> None:
    found = SIMULATION.answering(version, pretended("h100"), look())
    assert (found.recipe.distribution, found.recipe.version) == ("sglang", libraries)
    assert found.wheel == (None if libraries == version else ("sglang", version))


def test_this_machine_is_answered_for_by_the_release_itself() -> None:
    found = SIMULATION.answering("0.5.20", None, look())
    assert (found.recipe.version, found.wheel) == ("0.5.20", None)


@pytest.mark.parametrize(("version", "gpu", "why"), [("0.4.5", "h100", "0.4.6"), ("0.5.23", "mi300x", "MI300X")])
def test_what_is_not_simulated_is_refused(version: str, gpu: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        SIMULATION.answering(version, pretended(gpu), look())


def planned(tmp_path: Path, version: str, gpu: str | None) -> tuple[SimulationPlan, list[str]]:
    request = SimulationRequest(
        version=version,
        interpreter=Path("python"),
        sources=tmp_path / "tree" if gpu else None,
        device=pretended(gpu) if gpu else None,
        scenarios=(Scenario("asked", "llama", ("--chunked-prefill-size", "4096")),),
        variables={"SGLANG_ENABLE_SPEC_V2": "1", "PYTHONPATH": "mine"},
        folder=tmp_path,
        output=tmp_path / "output",
    )
    plan = SIMULATION.plan(request)
    order = json.loads(Path(plan.argv[-1]).read_text(encoding="utf-8"))
    return plan, order["scenarios"][0]["arguments"]


def test_a_gpu_gets_the_users_words_alone_and_the_releases_own_files_first(tmp_path: Path) -> None:
    plan, words = planned(tmp_path, "0.5.22", "h100:8")
    assert plan.environ["PYTHONPATH"].split(":")[0] == str(tmp_path / "tree")
    assert "SGLANG_USE_CPU_ENGINE" not in plan.environ
    assert words == ["--chunked-prefill-size", "4096"]
    assert (plan.added, plan.read_variables) == ({}, {"SGLANG_ENABLE_SPEC_V2": "1"})


@pytest.mark.parametrize(("version", "flags"), [("0.5.23", 1), ("0.4.6", 4)])
def test_this_machine_gets_what_a_launch_adds_and_says_why(tmp_path: Path, version: str, flags: int) -> None:
    plan, words = planned(tmp_path, version, None)
    assert plan.environ["SGLANG_USE_CPU_ENGINE"] == "1"
    assert words[:4] == ["--chunked-prefill-size", "4096", "--device", "cpu"]
    assert len([word for word in words if word.startswith("--")]) == 1 + flags
    assert set(plan.added) >= {"SGLANG_USE_CPU_ENGINE", "--device cpu"}


ARGUMENTS: dict[str, Any] = {
    "explicit": {"chunked_prefill_size": 4096},
    "flags": {"chunked_prefill_size": {"dest": "chunked_prefill_size", "names": ["--chunked-prefill-size"]}},
    "declared": {"mem_fraction_static": None, "attention_backend": None},
    "resolved": {
        "chunked_prefill_size": 4096,
        "mem_fraction_static": 0.88,
        "attention_backend": None,
        "cuda_graph_bs": None,
        "disable_cuda_graph": False,
        "random_seed": 521652627,
    },
    "rules": [{"rule": "_handle_gpu_memory_settings", "fields": ["mem_fraction_static"]}],
}
LATER: dict[str, Any] = {
    "model": {"context_len": 131072, "dtype": "bfloat16"},
    "server_args": {"attention_backend": "fa3"},
    "not_adjusted": None,
    "capture_bs": [1, 2, 4, 8],
}
SAID = ["INFO [model_runner.py:1] Attention backend not set.", "WARNING [server_args.py:9] DP attention is on."]
SAID += ["WARNING [registry.py:1] Ignore import error: cutlass.x is a stand-in: nothing can run on a device."]


def simulated(later: Any, version: str = "0.4.6") -> Capture:
    files: Any = {"arguments": ARGUMENTS, "simulation": {"later": later, "said": SAID, "variables": {"SGLANG_X": 1}}}
    observed = Observed.by_probe(files, version, "sglang", model="m", arguments=("--chunked-prefill-size", "4096"))
    return SIMULATION.capture(observed, read_capture("sglang", "log", "-"))


def test_what_the_configuration_decides_is_known_with_its_rule() -> None:
    made = simulated(LATER)
    assert made.settings["scheduler.max_num_batched_tokens"].origin == "user"
    share = made.settings["kv.gpu_memory_utilization"]
    assert (plain(share.final), share.because) == (0.88, "set by _handle_gpu_memory_settings")
    assert [warning.text for warning in made.warnings] == ["DP attention is on."]
    drawn = {"random_seed": 521652627}
    assert made.native["server_args"] == {k: v for k, v in ARGUMENTS["resolved"].items() if k not in drawn}


def test_what_the_model_runner_would_change_is_effective() -> None:
    made = simulated(LATER)
    (rank,) = made.instances[0].ranks
    assert plain(made.runner.attention_backend) == "fa3"
    assert plain(rank.graphs.sizes) == [1, 2, 4, 8]
    assert plain(made.settings["model.max_model_len"].final) == 131072


def test_what_a_device_would_have_to_measure_is_unknown() -> None:
    (rank,) = simulated(LATER).instances[0].ranks
    for value in (rank.graphs.bytes, rank.graphs.captured):
        assert isinstance(value, Unknown)
        assert "device" in value.because


@pytest.mark.parametrize(
    ("later", "said"),
    [
        ({"unreadable": "KeyError: 'x'"}, "what the model runner would change: KeyError: 'x'"),
        ({**LATER, "capture_bs": {"unreadable": "no"}}, "which graph sizes it would capture: no"),
    ],
)
def test_what_could_not_be_asked_is_said(later: Any, said: str) -> None:
    assert any(said in note for note in simulated(later).notes)
