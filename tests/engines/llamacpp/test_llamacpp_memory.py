"""How llama.cpp's log becomes a ledger and a pool."""

from __future__ import annotations

from pathlib import Path

import pytest

from engdiff.engines.llamacpp import memory
from engdiff.engines.llamacpp.facts import parse
from engdiff.schema.capture import Pool
from engdiff.schema.values import Known, Unknown, number
from engdiff.units import MIB

DATA = Path(__file__).parent / "data"

ON_GPU = """\
load_tensors: loading model tensors, this can take a while... (mmap = true)
load_tensors:        CUDA0 model buffer size =   100.00 MiB
load_tensors:   CPU_Mapped model buffer size =    10.00 MiB
llama_context: constructing llama_context
llama_context: n_ctx         = 4096
llama_context:  CUDA_Host  output buffer size =     0.50 MiB
llama_kv_cache:      CUDA0 KV buffer size =    16.00 MiB
llama_kv_cache: size =   16.00 MiB (  4096 cells,   4 layers,  4/1 seqs), K (q8_0):    8.00 MiB, V (f16):    8.00 MiB
llama_context:      CUDA0 compute buffer size =     8.00 MiB
llama_context:  CUDA_Host compute buffer size =     1.00 MiB
"""
SPLIT = ON_GPU.replace(
    "llama_kv_cache:      CUDA0 KV buffer size =    16.00 MiB",
    "llama_kv_cache:      CUDA0 KV buffer size =    12.00 MiB\n"
    "llama_kv_cache:        CPU KV buffer size =     4.00 MiB",
)
SLIDING = ON_GPU.replace(
    "llama_kv_cache: size",
    "llama_kv_cache_unified: size =    4.00 MiB (   512 cells,   8 layers,  4/4 seqs), K (f16):    2.00 MiB, "
    "V (f16):    2.00 MiB\nllama_kv_cache: size",
)


def bare(pool: Pool) -> dict[str, object]:
    return {
        name: number(getattr(pool, name)) for name in ("bytes", "tokens", "max_concurrency", "concurrency_at_tokens")
    }


@pytest.mark.parametrize(
    ("version", "mib", "tokens", "slot"),
    [
        ("0.2.7", 4, 4096, 1024),
        ("2026.4.8672.1", 4, 4096, 1024),
        ("2026.8.10229", 4, 4096, 1024),
        ("2026.9.11063", 16, 16384, 4096),
        ("2026.10.11549", 16, 16384, 4096),
    ],
)
def test_the_pool_of_real_builds(version: str, mib: int, tokens: int, slot: int) -> None:
    found = parse((DATA / f"{version}.log").read_text(encoding="utf-8"))
    assert memory.devices(found) == ("host",)
    (pool,) = memory.pools("host", found)
    assert bare(pool) == {
        "bytes": mib * MIB,
        "tokens": tokens,
        "max_concurrency": 4,
        "concurrency_at_tokens": slot,
    }
    assert [(f.name, number(f.value)) for f in pool.factors] == [
        ("buffers", 4),
        ("tokens in each", slot),
        ("bytes per token", 1024),
    ]
    assert isinstance(pool.blocks, Unknown)
    assert pool.groups[0].detail == {"k": "f16", "v": "f16"}
    ledger = memory.ledger("host", found)
    assert [term.name for term in ledger] == [
        "memory",
        "weights (CPU_Mapped)",
        "output buffer",
        "KV cache",
        "compute buffer",
    ]
    total = number(ledger[0].bytes)
    assert total == (24105 * MIB if version.startswith(("2026.8", "2026.9", "2026.10")) else None)
    assert {term.draws_on for term in ledger[1:]} == {"memory"}


@pytest.mark.parametrize("text", [ON_GPU, SLIDING])
def test_factors_multiply_to_the_bytes(text: str) -> None:
    found = parse(text)
    for device in memory.devices(found):
        for pool in memory.pools(device, found):
            product = 1.0
            for factor in pool.factors:
                product *= number(factor.value) or 0
            assert isinstance(pool.bytes, Known)
            assert pool.bytes.low is not None
            assert pool.bytes.high is not None
            assert pool.bytes.low <= product <= pool.bytes.high


def test_each_buffer_is_on_the_side_whose_memory_it_takes() -> None:
    found = parse(ON_GPU)
    assert memory.devices(found) == ("CUDA0", "host")
    uses = {device: [(t.name, number(t.bytes)) for t in memory.ledger(device, found)] for device in ("CUDA0", "host")}
    assert uses == {
        "CUDA0": [
            ("memory", None),
            ("weights (CUDA0)", 100 * MIB),
            ("KV cache", 16 * MIB),
            ("compute buffer", 8 * MIB),
        ],
        "host": [
            ("memory", None),
            ("weights (CPU_Mapped)", 10 * MIB),
            ("output buffer", MIB // 2),
            ("compute buffer", MIB),
        ],
    }
    assert memory.pools("host", found) == ()
    (pool,) = memory.pools("CUDA0", found)
    assert bare(pool) == {
        "bytes": 16 * MIB,
        "tokens": 4096,
        "max_concurrency": 4,
        "concurrency_at_tokens": 4096,
    }
    assert pool.factors[0].name == "shared buffer"
    assert pool.groups[0].detail == {"k": "q8_0", "v": "f16"}


def test_a_cache_over_two_devices_gives_each_its_share() -> None:
    """It is split by layers: each device holds all tokens of its own."""
    found = parse(SPLIT)
    for device, mib in (("CUDA0", 12), ("host", 4)):
        (pool,) = memory.pools(device, found)
        assert number(pool.bytes) == mib * MIB
        assert number(pool.tokens) == 4096
        assert pool.factors == ()


def test_two_caches_are_two_pools() -> None:
    pools = memory.pools("CUDA0", parse(SLIDING))
    assert [pool.name for pool in pools] == ["KV cache 1 of 2", "KV cache 2 of 2"]
    assert [pool.groups[0].kind for pool in pools] == ["other", "other"]


@pytest.mark.parametrize("text", ["", "nothing of interest\n", "llama_context: constructing llama_context\n"])
def test_a_log_that_says_nothing(text: str) -> None:
    found = parse(text)
    assert memory.devices(found) == ("host",)
    assert memory.pools("host", found) == ()
    (memory_term,) = memory.ledger("host", found)
    assert isinstance(memory_term.bytes, Unknown)


def test_printed_sizes_carry_the_bounds_of_their_rounding() -> None:
    (_, fact), *_ = parse(ON_GPU).model_buffers
    size = memory.mib(fact)
    assert (size.value, size.low, size.high) == (100 * MIB, 99.995 * MIB, 100.005 * MIB)
    assert size.evidence is not None
    assert size.evidence.line == 2


@pytest.mark.parametrize(
    ("device", "side"),
    [
        ("CPU", "host"),
        ("CPU_Mapped", "host"),
        ("CPU_REPACK", "host"),
        ("CUDA_Host", "host"),
        ("CUDA0", "CUDA0"),
        ("Metal", "Metal"),
    ],
)
def test_sides(device: str, side: str) -> None:
    assert memory.side(device) == side


@pytest.mark.parametrize(("kind", "bits"), [("f16", 16), ("bf16", 16), ("q8_0", 34 * 8 / 32), ("q4_0", 18 * 8 / 32)])
def test_bits_of_cache_types(kind: str, bits: float) -> None:
    assert memory.GGML_BITS[kind] == bits
