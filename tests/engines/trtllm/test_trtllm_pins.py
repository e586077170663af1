"""What restores an old value: a flag of ``trtllm-serve``, or a line of its YAML file, in the new version's words."""

from __future__ import annotations

import shlex

import pytest
import yaml
from pydantic import JsonValue

from engdiff.diff.compare import compare
from engdiff.engines.contract import PinStyle
from engdiff.engines.trtllm import pins
from engdiff.report.diff_github import diff_github
from engdiff.report.diff_markdown import diff_markdown
from engdiff.schema.capture import Capture, Launch, Setting
from engdiff.schema.values import Known, Unknown
from tests import factories as make
from tests.engines.conftest import Read
from tests.engines.trtllm import logs

NEWEST = "1.4.0rc4"


def side(version: str = NEWEST, settings: dict[str, Setting] | None = None, *arguments: str) -> Capture:
    """A capture of TensorRT-LLM with these settings, started by these words."""
    base = make.vllm()
    identity = base.identity.model_copy(update={"engine": "trtllm", "version": Known(value=version)})
    launch = base.launch.model_copy(update={"arguments": arguments})
    update = {"identity": identity, "settings": settings or {}, "native": {}, "launch": launch}
    return base.model_copy(update=update)


def one(key: str, value: JsonValue) -> dict[str, Setting]:
    return {key: Setting(resolved=Known(value=value), effective=Unknown(because="x"), origin="default")}


def pinned(key: str, old: Capture, new: Capture, style: PinStyle = "flags") -> str | None:
    made = pins.pin(key, old, new, style)
    return made.text() if made else None


@pytest.mark.parametrize(
    ("key", "value", "version", "text"),
    [
        ("scheduler.max_num_seqs", 256, NEWEST, "--max_batch_size 256"),
        ("scheduler.max_num_seqs", 256, "0.18.2", "--max_batch_size 256"),
        ("kv.gpu_memory_utilization", 0.85, "1.2.1", "--kv_cache_free_gpu_memory_fraction 0.85"),
        ("parallel.tp", 2, "1.2.1", "--tp_size 2"),
        ("kv.dtype", "fp8", NEWEST, "--kv_cache_dtype fp8"),
        ("kv.dtype", "fp8", "1.2.1", "kv_cache_config: {dtype: fp8}"),
        ("kv.prefix_caching", False, "1.2.1", "kv_cache_config: {enable_block_reuse: false}"),
        ("kv.prefix_caching", False, "0.20.0", "kv_cache_config: {enable_block_reuse: false}"),
        ("kv.prefix_caching", False, "0.18.2", None),
        ("kv.block_size", 64, "1.2.1", "kv_cache_config: {tokens_per_block: 64}"),
        ("kv.block_size", 64, "1.0.0", None),
        ("scheduler.chunked_prefill", True, NEWEST, "--enable_chunked_prefill"),
        ("scheduler.chunked_prefill", False, NEWEST, "enable_chunked_prefill: false"),
        ("scheduler.async_scheduling", False, NEWEST, "disable_overlap_scheduler: true"),
        ("scheduler.policy", "fcfs", "1.2.1", None),
        ("scheduler.policy", "fcfs", NEWEST, "scheduler_config: {waiting_queue_policy: fcfs}"),
        ("graphs.mode", "none", "1.0.0", "cuda_graph_config: null"),
        ("graphs.mode", "decode", "1.0.0", "cuda_graph_config: {}"),
        ("graphs.mode", "none", "0.21.0", None),
        ("graphs.capture_sizes", [1, 2, 4], NEWEST, "cuda_graph_config: {batch_sizes: [1, 2, 4]}"),
        ("kernels.attention_backend", "FLASHINFER", NEWEST, "attn_backend: FLASHINFER"),
        ("structured_outputs.backend", "yes", NEWEST, 'guided_decoding_backend: "yes"'),
        ("speculative.model", "a/b", NEWEST, "speculative_config: {speculative_model: a/b}"),
        ("speculative.model", "a/b", "1.0.0", "speculative_config: {speculative_model_dir: a/b}"),
        ("model.max_model_len", 4096, NEWEST, "--max_seq_len 4096"),
        ("model.max_model_len", None, NEWEST, None),
        ("parallel.ep", True, NEWEST, None),
        ("lora.enabled", True, NEWEST, None),
        ("no.such.key", 1, NEWEST, None),
    ],
)
def test_pins(key: str, value: JsonValue, version: str, text: str | None) -> None:
    assert pinned(key, side(settings=one(key, value)), side(version)) == text
    assert pinned(key, side(settings=one(key, value)), side(version), "env") is None
    if text and not text.startswith("-"):
        assert isinstance(yaml.safe_load(text), dict)


def test_the_longest_request_is_pinned_as_written_not_as_the_worker_grew_it() -> None:
    grown = Setting(resolved=Known(value=4096), effective=Known(value=4097), origin="user")
    assert pinned("model.max_model_len", side(settings={"model.max_model_len": grown}), side()) == "--max_seq_len 4096"
    guessed = grown.model_copy(update={"resolved": Known(value=None)})
    assert pinned("model.max_model_len", side(settings={"model.max_model_len": guessed}), side()) is None


@pytest.mark.parametrize("flag", ["--config", "--extra_llm_api_options"])
def test_where_a_file_is_used_the_line_goes_into_it(flag: str) -> None:
    old = side(settings=one("scheduler.max_num_seqs", 256))
    assert pinned("scheduler.max_num_seqs", old, side("1.2.1", None, flag, "x.yaml")) == "max_batch_size: 256"


@pytest.mark.parametrize(("version", "flag"), [("1.1.0", "--extra_llm_api_options"), ("1.2.0rc2", "--config")])
def test_the_flag_that_names_the_file(version: str, flag: str) -> None:
    made = pins.pin("kv.prefix_caching", side(settings=one("kv.prefix_caching", False)), side(version), "flags")
    assert made
    assert made.where() == f"a line of the file of {flag}"


def test_a_field_without_a_canonical_key() -> None:
    native: dict[str, JsonValue] = {"config": {"kv_cache_config": {"enable_partial_reuse": False}, "max_beam_width": 4}}
    old = side().model_copy(update={"native": native})
    assert (
        pinned("config.kv_cache_config.enable_partial_reuse", old, side())
        == "kv_cache_config: {enable_partial_reuse: false}"
    )
    assert pinned("config.max_beam_width", old, side()) == "max_beam_width: 4"
    assert pinned("config.kv_cache_config", old, side()) is None
    assert pinned("PyTorchConfig.moe_max_num_tokens", old, side()) is None


def test_the_pool_is_asked_for_in_bytes(read: Read) -> None:
    old = read("\n".join(logs.pytorch()))
    size = 60054380216
    assert pinned("kv.pool_bytes", old, side("1.2.1")) == f"kv_cache_config: {{max_gpu_total_bytes: {size}}}"
    assert pinned("kv.pool_bytes", old, side("1.0.0")) is None


# --- in a diff --------------------------------------------------------------------------------------------------


def _launched(version: str, *arguments: str, reuse: bool, seqs: int) -> Capture:
    base = side(version, {**one("kv.prefix_caching", reuse), **one("scheduler.max_num_seqs", seqs)})
    words = ("trtllm-serve", "org/m", *arguments)
    launch = Launch(
        model="org/m",
        model_given="org/m",
        arguments=arguments,
        command=words,
        native_command=words,
        variables={},
    )
    return base.model_copy(update={"launch": launch})


def test_the_command_says_that_a_line_goes_into_the_file() -> None:
    old, new = _launched("1.2.0", reuse=True, seqs=8), _launched("1.2.1", reuse=False, seqs=16)
    found = compare(old, new, old_label="a", new_label="b")
    texts = {f.key: (f.pin.style, f.pin.text, f.pin.because) for f in found.findings}
    line = "kv_cache_config: {enable_block_reuse: true}"
    assert texts["kv.prefix_caching"] == ("file", line, "a line of the file of --config")
    assert texts["scheduler.max_num_seqs"] == ("flags", "--max_batch_size 8", None)
    command = found.pinned_command or ""
    assert shlex.split(command, comments=True) == ["trtllm-serve", "org/m", "--max_batch_size", "8"]
    assert command.endswith(f"# and first, as a line of the file of --config: {line}")
    assert found.prove_command is None
    assert f"{line}` (a line of the file of --config)" in diff_markdown(found)
    assert "(a line of the file of --config)" in diff_github(found)
