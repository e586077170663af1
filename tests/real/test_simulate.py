"""Simulated and real agree: an engine's configuration code alone, and a server that was started with the same words."""

from __future__ import annotations

import pytest

from engdiff.diff.tolerance import moved
from engdiff.errors import EngineFailed
from engdiff.knowledge.gpus import gpus
from engdiff.references import HERE, parse
from engdiff.schema.capture import Capture
from engdiff.schema.values import Known, Unknown, number, plain
from engdiff.sources.acquire import Wishes, acquire
from tests.real.real_helpers import SMALL_POOL, CaptureOf, loaded

pytestmark = pytest.mark.real

NEWEST = "0.32.0"


def simulated(reference: str, model: str, words: tuple[str, ...] = (), **variables: str) -> Capture:
    wishes = Wishes(model=model, arguments=words, variables=variables)
    outcome = acquire(parse(reference), wishes, lambda text: None)
    assert outcome.error is None
    return outcome.capture


VLLM_WORKERS = {
    "kv.block_size": "the platform settles it in the worker, once the attention backends are known",
    "kv.layout": "the engine core settles it from what its workers report",
    "kv.gpu_memory_utilization": "the worker's share of its NUMA node is resolved when it starts",
}
"""Settings that a boot of vLLM changes after the configuration was resolved."""


@pytest.mark.parametrize(
    ("engine", "words", "variables", "decided_later"),
    [
        (f"vllm@{NEWEST}", ("--max-model-len", "2048"), SMALL_POOL, VLLM_WORKERS),
        ("sglang@0.5.23", ("--max-total-tokens", "16384", "--chunked-prefill-size", "1024"), {}, {}),
        ("sglang@0.4.6", ("--max-total-tokens", "16384", "--chunked-prefill-size", "1024"), {}, {}),
    ],
)
def test_this_machine_simulated_decides_as_a_launch_does(
    capture_of: CaptureOf,
    engine: str,
    words: tuple[str, ...],
    variables: dict[str, str],
    decided_later: dict[str, str],
) -> None:
    real = loaded(capture_of(engine, *words))
    alone = simulated(f"{engine}/{HERE}", "tiny", words, **variables)
    assert alone.settings.keys() <= real.settings.keys()
    both = {key: (one.resolved, real.settings[key].resolved) for key, one in alone.settings.items()}
    differ = {k for k, (a, b) in both.items() if isinstance(a, Known) and isinstance(b, Known) and moved(a, b)}
    assert differ - {"model.path"} <= decided_later.keys()
    undecided = [key for key in both if isinstance(real.settings[key].effective, Unknown)]
    origins = {key for key in undecided if alone.settings[key].origin != real.settings[key].origin}
    assert origins - {"model.path"} <= decided_later.keys()


@pytest.mark.parametrize(("version", "sizes", "runner", "share"), [(NEWEST, 51, "V2", 0.92)])
def test_a_pretended_h100(version: str, sizes: int, runner: str, share: float) -> None:
    """The figures of a run of the engine's own code on sources of the same release (see docs/simulate.md)."""
    made = simulated(f"vllm@{version}/h100-80gb", "llama-3.1-8b")
    (rank,) = made.instances[0].ranks
    assert number(rank.ledger[0].bytes) == 16_094_077_440
    assert number(rank.pools[0].groups[0].bytes_per_block) == 131_072 * 16
    held = plain(rank.graphs.sizes)
    assert isinstance(held, list)
    assert len(held) == sizes
    assert plain(made.runner.name) == runner
    assert plain(made.settings["kv.gpu_memory_utilization"].final) == share
    assert plain(made.runner.candidates) == "FLASH_ATTN, FLASHINFER, TRITON_ATTN, FLEX_ATTENTION"
    assert made.simulated is not None
    assert made.simulated.sha256
    assert gpus()["h100-80gb"].name == made.identity.devices[0].name


@pytest.mark.parametrize(("gpu", "name"), [("mi300x", "AMD Instinct MI300X"), ("mi355x", "AMD Instinct MI355X")])
def test_a_pretended_gpu_of_amd(gpu: str, name: str) -> None:
    """The candidates are those of a public log of 0.23.0 on an MI300X (see docs/simulate.md)."""
    made = simulated(f"vllm@{NEWEST}/{gpu}", "llama-3.1-8b")
    (rank,) = made.instances[0].ranks
    held = plain(rank.graphs.sizes)
    assert isinstance(held, list)
    assert (len(held), plain(rank.graphs.mode)) == (51, "FULL_AND_PIECEWISE")
    assert number(rank.ledger[0].bytes) == 16_094_077_440
    assert number(rank.pools[0].groups[0].bytes_per_block) == 131_072 * 16
    assert plain(made.runner.name) == "V2"
    assert plain(made.runner.attention_backend) == "ROCM_ATTN"
    assert plain(made.runner.candidates) == "ROCM_ATTN, ROCM_AITER_UNIFIED_ATTN, TRITON_ATTN"
    assert plain(made.settings["scheduler.max_num_batched_tokens"].final) == 16384
    assert made.identity.devices[0].name == name
    assert made.simulated is not None
    assert any(note.startswith("aiter and flash_attn: to be found") for note in made.simulated.stand_ins)
    assert made.simulated.libraries["torch"].asked == ""


@pytest.mark.parametrize(
    ("gpu", "share", "sizes", "backend"), [("h100-80gb", 0.83, 36, "fa3"), ("b200", 0.854, 52, "trtllm_mha")]
)
def test_a_pretended_gpu_of_sglang(gpu: str, share: float, sizes: int, backend: str) -> None:
    """The figures of a run of the engine's own code by another program (see docs/simulate.md)."""
    made = simulated(f"sglang@0.5.23/{gpu}", "llama-3.1-8b")
    (rank,) = made.instances[0].ranks
    held = plain(rank.graphs.sizes)
    assert isinstance(held, list)
    assert len(held) == sizes
    assert plain(made.settings["kv.gpu_memory_utilization"].final) == share
    assert plain(made.runner.attention_backend) == backend
    assert plain(made.settings["kernels.sampling_backend"].final) == "flashinfer"


def test_a_refused_command_line_is_told_in_the_engines_words() -> None:
    with pytest.raises(EngineFailed, match="refused"):
        simulated(f"vllm@{NEWEST}/h100-80gb", "llama-3.1-8b", ("--tensor-parallel-size", "3"))
