"""What wrappers put around an engine's line comes off; nothing else does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engdiff.logs.unwrap import CONTROLS, clean, unwrap

LINE = "INFO 01-01 00:00:01 [gpu_worker.py:298] Available KV cache memory: 1.71 GiB"


@pytest.mark.parametrize(
    ("prefix", "source"),
    [
        ("", ""),
        ("vllm-1  | ", "vllm-1"),
        ("qwen3-1 | ", "qwen3-1"),
        ("[pod/llm-7d9f/vllm] ", "llm-7d9f/vllm"),
        ("2025-01-01T00:00:00.123456789Z stdout F ", ""),
        ("2025-01-01T00:00:00.123456789+02:00 stderr F ", ""),
        ("2025-01-01T00:00:00.123456789Z ", ""),
        ("Jan 01 00:00:01 host ollama[1001]: ", "ollama"),
        ("Jan  1 00:00:01 host vllm: ", "vllm"),
        ("<30>Jan 01 00:00:01 host vllm[3]: ", "vllm"),
        ("<34>1 2025-01-01T00:00:00.000Z host vllm 12 - - ", "vllm"),
        ("2025-01-01T00:00:00+0000 host vllm.service[12]: ", "vllm.service"),
        ("2025-01-01T00:00:01,000 [INFO ] W-9000-model_1.0-stdout MODEL_LOG - ", "W-9000-model_1.0"),
        ("[2025-01-01 00:00:01][DEBUG] ", ""),
        ("Jan 01 00:00:01 ", ""),
        ("│ ", ""),
        (">> ", ""),
        ("\x1b[0;36m", ""),
        ("^[[0;36m", ""),
        ("vllm-1  | 2025-01-01T00:00:00.1Z ", "vllm-1"),
    ],
)
def test_prefixes(prefix: str, source: str) -> None:
    assert unwrap(prefix + LINE) == (LINE, source)


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        (LINE + " " * 90, LINE),
        (LINE + "          │", LINE),
        ('{"log":"' + LINE + '\\n","stream":"stdout","time":"2025-01-01T00:00:00Z"}', LINE),
        ('{"log":"half', '{"log":"half'),
        ("memory: **46.80** GiB", "memory: 46.80 GiB"),
        ("**INFO a", "INFO a"),
        ("core = Proc(*args, **kwargs) of '/home/***/m'", "core = Proc(*args, **kwargs) of '/home/***/m'"),
        ('<font color="#2AA1B3"><b>(Worker pid=1)</b></font> INFO a', "(Worker pid=1) INFO a"),
        ("\x1b]0;title\x07text\x1b[2K", "text"),
        ("a\u202eb\x00c\x07d", "abcd"),
    ],
)
def test_padding_boxes_and_marks(line: str, wanted: str) -> None:
    assert unwrap(line)[0] == wanted


@pytest.mark.parametrize(
    "line",
    [
        "[2025-01-01 00:00:01 TP2] KV Cache is allocated. #tokens: 5, K size: 8.23 GB, V size: 8.23 GB",
        "[00:00:01 TP7] Load weight end.",
        "(Worker_TP0 pid=1002) INFO 01-01 00:00:01 [gpu_worker.py:460] Available KV cache memory: 10.55 GiB",
        "0.02.295.224 I load_tensors: offloaded 62/62 layers to GPU",
        "[46431] print_info: n_layer = 40",
        "[TensorRT-LLM][INFO] Number of tokens per block: 32.",
        "2025-01-01 00:00:01,125 vllm.attention.selector 1001 INFO     Using XFormers backend.",
        "requested budget (`gpu_memory_utilization=0.95`) | 29.81 GiB per worker",
    ],
)
def test_an_engine_s_own_prefix_stays(line: str) -> None:
    assert unwrap(line) == (line, "")


@given(st.text(max_size=300))
def test_property_nothing_that_moves_a_terminal_is_left(text: str) -> None:
    for cleaned in (clean(text), unwrap(text)[0]):
        assert not CONTROLS.search(cleaned)
        assert "\x1b" not in cleaned
