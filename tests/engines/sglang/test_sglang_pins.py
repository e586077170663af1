"""What restores an old value, in the new version's own words: by its parser where it was asked, else by the table."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from engdiff.engines.contract import PinStyle
from engdiff.engines.sglang import pins
from engdiff.schema.capture import Capture
from engdiff.schema.values import Unknown
from tests import factories as make
from tests.diff import other_engines as other

HISTORY: dict[str, Any] = json.loads((Path(__file__).parent / "data" / "history.json").read_text(encoding="utf-8"))
RELEASES: list[str] = HISTORY["releases"]

SIZES: list[JsonValue] = [1, 2, 4]


def there(kind: str, name: str, release: str) -> bool:
    """Whether a release has this field or flag."""
    at = RELEASES.index(release)
    return any(RELEASES.index(run[0]) <= at <= RELEASES.index(run[1]) for run in HISTORY[kind].get(name, ()))


def fields(release: str) -> dict[str, JsonValue]:
    """The arguments of a release, each of them as empty as it may be."""
    found: dict[str, JsonValue] = {name: None for name in HISTORY["fields"] if there("fields", name, release)}
    if "cuda_graph_config" in found:
        parts: dict[str, JsonValue] = dict.fromkeys(("backend", "max_bs", "bs"))
        found["cuda_graph_config"] = {"decode": {**parts}, "prefill": {**parts}}
    return found


def flags(*rows: tuple[str, str], choices: Mapping[str, list[str]] | None = None) -> dict[str, JsonValue]:
    """Flags by their field, as the probe lists them; of each its name and what it takes."""
    return {
        name.removeprefix("--").replace("-", "_"): {
            "names": [name, f"--no-{name.removeprefix('--')}"] if takes == "switch" else [name],
            "takes": takes,
            "default": None,
            "choices": list((choices or {}).get(name, ())),
        }
        for name, takes in rows
    }


def old(key: str, value: JsonValue, **native: JsonValue) -> Capture:
    capture = make.with_setting(key, make.setting(value))(other.sglang("0.5.2"))
    return capture.model_copy(update={"native": {"server_args": native}})


def read(version: str) -> Capture:
    """A new side that was read from its log: nobody asked its parser."""
    capture = other.sglang(version)
    return capture.model_copy(update={"native": {"server_args": fields(version)}})


def asked(version: str, known: dict[str, JsonValue]) -> Capture:
    """A new side that was launched: its parser told its flags."""
    return read(version).model_copy(update={"native": {"server_args": fields(version), "flags": known}})


def text(key: str, before: Capture, after: Capture, style: PinStyle = "flags") -> str | None:
    made = pins.pin(key, before, after, style)
    if made and made.style == "flags":
        assert tuple(shlex.split(made.text())) == made.words
    return made.text() if made else None


@pytest.mark.parametrize(
    ("key", "value", "version", "expected"),
    [
        ("scheduler.max_num_batched_tokens", 8192, "0.5.23", "--chunked-prefill-size 8192"),
        ("kv.gpu_memory_utilization", 0.83, "0.4.6", "--mem-fraction-static 0.83"),
        ("kv.prefix_caching", False, "0.5.23", "--disable-radix-cache"),
        ("kv.prefix_caching", True, "0.5.23", None),
        ("scheduler.async_scheduling", False, "0.5.23", "--disable-overlap-schedule"),
        ("scheduler.async_scheduling", True, "0.5.23", None),
        ("load.warmup", False, "0.5.23", "--skip-server-warmup"),
        ("load.warmup", False, "0.4.6", None),
        ("scheduler.chunked_prefill", False, "0.5.23", "--chunked-prefill-size -1"),
        ("scheduler.chunked_prefill", True, "0.5.23", "--chunked-prefill-size 8192"),
        ("graphs.mode", "none", "0.5.12", "--disable-cuda-graph"),
        ("graphs.mode", "full", "0.5.12", None),
        ("graphs.mode", "none", "0.5.14", "--cuda-graph-backend-decode disabled"),
        ("graphs.mode", "full", "0.5.23", "--cuda-graph-backend-decode full"),
        ("graphs.capture_sizes", SIZES, "0.5.12", "--cuda-graph-bs 1 2 4"),
        ("graphs.capture_sizes", SIZES, "0.5.23", "--cuda-graph-bs-decode 1 2 4"),
        ("graphs.capture_sizes", [], "0.5.23", None),
        ("graphs.max_capture_size", 160, "0.5.12.post1", "--cuda-graph-max-bs 160"),
        ("graphs.max_capture_size", 160, "0.5.14", "--cuda-graph-max-bs-decode 160"),
        ("kernels.flashinfer_autotune", True, "0.5.6", "--enable-flashinfer-autotune"),
        ("kernels.flashinfer_autotune", False, "0.5.6", None),
        ("kernels.flashinfer_autotune", False, "0.5.7", "--disable-flashinfer-autotune"),
        ("kernels.flashinfer_autotune", True, "0.5.7", None),
        ("compile.fuse_allreduce_rms", False, "0.5.9", None),
        ("compile.fuse_allreduce_rms", False, "0.5.10", "--enforce-disable-flashinfer-allreduce-fusion"),
        ("compile.fuse_allreduce_rms", True, "0.5.23", None),
        ("kernels.attention_backend", "fa3", "0.5.23", "--attention-backend fa3"),
        ("kernels.attention_backend", "decode flashinfer, prefill fa3", "0.5.23",
         "--decode-attention-backend flashinfer --prefill-attention-backend fa3"),
        ("kv.dtype", "float8_e4m3fn", "0.5.23", "--kv-cache-dtype fp8_e4m3"),
        ("kv.dtype", "auto", "0.5.23", "--kv-cache-dtype auto"),
        ("kv.offload_bytes", 20 * 10**9, "0.5.23", "--hicache-size 20"),
        ("kv.offload_bytes", 20 * 10**9 + 1, "0.5.23", None),
        ("lora.enabled", True, "0.5.23", "--enable-lora"),
        ("lora.enabled", False, "0.5.23", None),
        ("lora.backend", "triton", "0.5.23", "--lora-backend triton"),
        ("scheduler.max_num_seqs", 256, "0.5.23", "--max-running-requests 256"),
        ("kernels.mamba_backend", "triton", "0.5.8", None),
        ("model.quantization", None, "0.5.23", None),
        ("no.such.key", 1, "0.5.23", None),
    ],
)  # fmt: skip
def test_by_the_table(key: str, value: JsonValue, version: str, expected: str | None) -> None:
    assert text(key, old(key, value), read(version)) == expected
    assert text(key, old(key, value), read(version), "env") is None


def test_a_log_that_does_not_name_its_version_is_known_by_its_fields() -> None:
    nameless = make.with_identity(version=Unknown(because="a log does not say it"))
    for release, expected in (("0.5.12", "--cuda-graph-bs 1 2 4"), ("0.5.23", "--cuda-graph-bs-decode 1 2 4")):
        assert text("graphs.capture_sizes", old("graphs.capture_sizes", SIZES), nameless(read(release))) == expected


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        (flags(("--lora-backend", "value")), "--lora-backend triton"),
        (flags(("--lora-backend", "value"), choices={"--lora-backend": ["triton"]}), "--lora-backend triton"),
        (flags(("--lora-backend", "value"), choices={"--lora-backend": ["csgmv"]}), None),
        (flags(("--other", "value")), None),
        ({}, None),
    ],
)
def test_by_the_new_versions_own_parser(known: dict[str, JsonValue], expected: str | None) -> None:
    assert text("lora.backend", old("lora.backend", "triton"), asked("0.5.23", known)) == expected


def test_an_older_name_of_a_flag_stands_for_its_field() -> None:
    """A parser with both lists the later of the two under the field."""
    alias: dict[str, JsonValue] = {"cuda_graph_bs_decode": {"names": ["--cuda-graph-bs"], "takes": "list"}}
    before = old("graphs.capture_sizes", SIZES)
    assert text("graphs.capture_sizes", before, asked("0.5.15", alias)) == "--cuda-graph-bs-decode 1 2 4"


@pytest.mark.parametrize(
    ("value", "mode", "expected"),
    [
        ("mooncake", "nixl", "--disaggregation-transfer-backend mooncake"),
        ("mooncake", None, None),
        (None, "nixl", None),
    ],
)
def test_a_connector_is_pinned_where_there_is_one(value: JsonValue, mode: JsonValue, expected: str | None) -> None:
    after = make.with_setting("kv.connector", make.setting(mode))(read("0.5.23"))
    assert text("kv.connector", old("kv.connector", value), after) == expected


@pytest.mark.parametrize(("value", "size", "expected"), [(True, 8, "--ep-size 8"), (False, 1, "--ep-size 1")])
def test_experts_are_spread_by_a_size(value: bool, size: int, expected: str) -> None:
    assert text("parallel.ep", old("parallel.ep", value, ep_size=size), read("0.5.23")) == expected


def test_experts_of_an_unknown_size_have_no_pin() -> None:
    assert text("parallel.ep", old("parallel.ep", value=True), read("0.5.23")) is None


def test_requests_of_several_ranks_have_no_pin() -> None:
    """The flag counts all ranks, a scheduler its own."""
    ranks = make.with_setting("parallel.dp", make.setting(8))
    key = "scheduler.max_num_seqs"
    assert text(key, ranks(old(key, 256)), ranks(read("0.5.23"))) is None


@pytest.mark.parametrize(("before", "after", "expected"), [(1000, 4000, "--max-total-tokens 1000"), (4000, 1000, None)])
def test_a_larger_pool_can_be_capped(before: int, after: int, expected: str | None) -> None:
    left, right = (make.with_pool(tokens=make.known(size))(read("0.5.23")) for size in (before, after))
    assert text("kv.pool_bytes", left, right) == expected


def test_a_pool_of_unknown_size_has_no_pin() -> None:
    unknown = make.with_pool(tokens=Unknown(because="not said"))(read("0.5.23"))
    assert text("kv.pool_bytes", unknown, read("0.5.23")) is None


@pytest.mark.parametrize(
    ("path", "value", "version", "expected"),
    [
        ("hicache_mem_layout", "layer_first", "0.5.23", "--hicache-mem-layout layer_first"),
        ("fp8_gemm_runner_backend", "auto", "0.5.23", "--fp8-gemm-backend auto"),
        ("enable_mixed_chunk", True, "0.5.23", "--enable-mixed-chunk"),
        ("enable_mixed_chunk", False, "0.5.23", None),
        ("mm_process_config", {"image": {"a": 1}}, "0.5.23", """--mm-process-config '{"image": {"a": 1}}'"""),
        ("lora_target_modules", ["q", "k"], "0.5.23", "--lora-target-modules q k"),
        ("lora_target_modules", [], "0.5.23", None),
        ("uses_mamba_radix_cache", True, "0.5.23", None),
        ("_radix_eviction_policy_explicitly_set", True, "0.5.23", None),
        ("cuda_graph_config.prefill.backend", "disabled", "0.5.23", "--cuda-graph-backend-prefill disabled"),
        ("cuda_graph_config.prefill.max_bs", 2048, "0.5.23", "--cuda-graph-max-bs-prefill 2048"),
        ("cuda_graph_config.prefill.max_context_size", 1, "0.5.23", "--cuda-graph-prefill-max-context 1"),
        ("cuda_graph_config.prefill.tc_compiler", "eager", "0.5.23", None),
        ("model_loader_extra_config", None, "0.5.23", None),
    ],
)
def test_leaves_without_a_canonical_key(path: str, value: JsonValue, version: str, expected: str | None) -> None:
    before = make.with_native(f"server_args.{path}", value)(other.sglang("0.5.2"))
    assert text(f"server_args.{path}", before, read(version)) == expected


@pytest.mark.parametrize(
    ("field", "value", "known", "expected"),
    [
        ("enable_tf32_matmul", False, flags(("--enable-tf32-matmul", "switch")), "--no-enable-tf32-matmul"),
        ("enable_tf32_matmul", True, flags(("--enable-tf32-matmul", "switch")), "--enable-tf32-matmul"),
        ("enable_mixed_chunk", False, flags(("--enable-mixed-chunk", "flag")), None),
        ("attn_dp_size", 2, {"attn_dp_size": {"names": ["--attention-data-parallel-size"], "takes": "value"}},
         "--attention-data-parallel-size 2"),
        ("attn_dp_size", 2, flags(("--other", "value")), None),
        ("load_balance_method", "shortest_queue",
         flags(("--load-balance-method", "value"), choices={"--load-balance-method": ["auto"]}), None),
    ],
)  # fmt: skip
def test_leaves_by_the_new_versions_own_parser(
    field: str, value: JsonValue, known: dict[str, JsonValue], expected: str | None
) -> None:
    before = make.with_native(f"server_args.{field}", value)(other.sglang("0.5.2"))
    assert text(f"server_args.{field}", before, asked("0.5.23", known)) == expected


@pytest.mark.parametrize("style", ["flags", "env"])
@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (False, True, "SGLANG_A=0"),
        ("python", "rust", "SGLANG_A=python"),
        (None, True, None),
        (False, None, "SGLANG_A=0"),
    ],
)
def test_variables(before: JsonValue, after: JsonValue, expected: str | None, style: PinStyle) -> None:
    left, right = (make.with_native("variables.SGLANG_A", value)(read("0.5.23")) for value in (before, after))
    assert text("variables.SGLANG_A", left, right, style) == expected


def test_a_variable_that_went_restores_nothing() -> None:
    before = make.with_native("variables.SGLANG_ENABLE_SPEC_V2", value=False)(read("0.5.13"))
    assert text("variables.SGLANG_ENABLE_SPEC_V2", before, read("0.5.14")) is None


@pytest.mark.parametrize("release", RELEASES)
def test_every_field_has_the_flag_of_its_name(release: str) -> None:
    """The rule by which a leaf is pinned where nobody asked the parser."""
    new = read(release)
    made = {field: pins._flag_of(field, new) for field in fields(release)}
    assert {flag for flag in made.values() if flag and not there("flags", flag, release)} == set()
    assert {field for field, flag in made.items() if flag is None and not pins.NO_FLAG.fullmatch(field)} == set()


TEXTS = st.text(st.characters(blacklist_categories=("Cs", "Cc")), min_size=1, max_size=20)


@given(st.sampled_from(["hicache_mem_layout", "load_format", "chat_template"]), TEXTS)
def test_property_any_text_stays_one_word(field: str, value: str) -> None:
    before = make.with_native(f"server_args.{field}", value)(other.sglang("0.5.2"))
    made = pins.pin(f"server_args.{field}", before, read("0.5.23"), "flags")
    assert made is not None
    assert made.words[1:] == (value,)
    assert tuple(shlex.split(made.text())) == made.words
