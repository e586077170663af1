"""What the last words of a failed start mean, and what is said when there are none."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engdiff import engines
from engdiff.engines.last_words import LOWEST_CAUSE, SIGNALS, TAIL_LINES, explain
from engdiff.knowledge.tables import FailurePattern

CORE = "(EngineCore_DP0 pid=4242) ERROR 12-02 15:00:00 [core.py:842] "
TRACEBACK = CORE + "Traceback (most recent call last):\n" + CORE + "  File core.py, line 833, in run_engine_core\n"
AFTERMATH = """
Traceback (most recent call last):
  File "<frozen runpy>", line 198, in _run_module_as_main
RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {'EngineCore_DP0': 1}
"""

VLLM = (
    ("ValueError: To serve at least one request with the model's max seq len (131072), (16.0 GiB KV cache is needed, "
     "which is larger than the available KV cache memory (1.2 GiB). Based on the available memory, the estimated "
     "maximum model length is 9824.",
     "One request of 131072 tokens needs 16.0 GiB of KV cache and only 1.2 GiB are left"),
    ("ValueError: To serve at least one request with the models's max seq len (4096), (0.12 GiB KV cache is needed, "
     "which is larger than the available KV cache memory (0.01 GiB).", "needs 0.12 GiB of KV cache and only 0.01 GiB"),
    ("ValueError: To serve at least one request with the models's max seq len (116160), (4.43 GB KV cache is needed, "
     "which is larger than the available KV cache memory (3.48 GB). Try increasing", "needs 4.43 GiB of KV cache"),
    ("ValueError: To serve at least one request with the model's max seq len (1048576),\n9.8 GiB KV cache is needed, "
     "which is larger than the available KV cache memory (4.81 GiB).", "1048576 tokens needs 9.8 GiB"),
    ("ValueError: The model's max seq len (163840) is larger than the maximum number of tokens that can be stored in "
     "KV cache (13360). Try increasing", "163840 tokens does not fit in the KV cache of 13360 tokens"),
    ("INFO Available KV cache memory: -2.14 GiB", "-2.14 GiB are left"),
    ("ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization`.",
     "nothing is left for the KV cache"),
    ("ValueError: Free memory on device cuda:0 (10.5/79.1 GiB) on startup is less than desired GPU memory utilization "
     "(0.92, 72.8 GiB). Decrease GPU memory utilization.", "Only 10.5 of 79.1 GiB are free"),
    ("ValueError: Available memory on node 0 (3.1/15.0 GiB) on startup is less than desired CPU memory utilization "
     "(0.92, 13.8 GiB).", "Memory node 0 has 3.1 of 15.0 GiB"),
    ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has a total capacity of 79.1 GiB",
     "ran out of memory (the failed allocation: 2.50 GiB)"),
    ("RuntimeError: [enforce fail at alloc_cpu.cpp:121] DefaultCPUAllocator: can't allocate memory", "The host ran"),
    ("api_server.py: error: unrecognized arguments: --disable-log-requests", "does not know --disable-log-requests"),
    ("api_server.py: error: argument --dtype: invalid choice: 'f16' (choose from 'auto', 'half')",
     "--dtype does not accept 'f16' in this version; it accepts 'auto', 'half'"),
    ("pydantic_core._pydantic_core.ValidationError: 1 validation error for SchedulerConfig", "SchedulerConfig"),
    ("1 validation error for CompilationConfig\nlevel\n  Unexpected keyword argument [type=unexpected_keyword]",
     "CompilationConfig has no field level"),
    ("Value error, User-specified max_model_len (999999) is greater than the derived max_model_len "
     "(max_position_embeddings=4096 or model_max_length=None in model's config.json).", "--max-model-len 999999"),
    ("ValueError: max_num_batched_tokens (512) is smaller than max_model_len (4096).", "(512) must hold a whole"),
    ("ValueError: Total number of attention heads (8) must be divisible by tensor parallel size (3).", "8 attention"),
    ("ValueError: World size (4) is larger than the number of available GPUs (1) in this node.", "4 devices"),
    ("OSError: [Errno 98] Address already in use", "The port is taken"),
    ("ValueError: Invalid repository ID or local directory specified: '/models/none'.", "under /models/none"),
    ("huggingface_hub.errors.LocalEntryNotFoundError: Cannot find an appropriate cached snapshot folder",
     "hub cannot be reached"),
    ("ValueError: Model architectures ['TeapotForCausalLM'] are not supported for now.", "['TeapotForCausalLM']"),
    ("ValueError: Tokenizer class TokenizersBackend does not exist or is not currently imported.", "TokenizersBackend"),
    ("ModuleNotFoundError: No module named 'flash_attn'", "flash_attn"),
    ("RuntimeError: libtcmalloc is not found in LD_PRELOAD", "libtcmalloc"),
    ("ImportError: libcudart.so.12: cannot open shared object file: No such file or directory", "libcudart.so.12"),
    ("/lib/libc.so.6: version `GLIBC_2.38' not found (required by _C.so)", "GLIBC_2.38"),
    ("RuntimeError: operator torchvision::nms does not exist", "torchvision"),
    ("OSError: [Errno 28] No space left on device", "A disk is full"),
)  # fmt: skip

LLAMACPP = (
    ("ggml_backend_cpu_buffer_type_alloc_buffer: failed to allocate buffer of size 70368744177664", "out of memory"),
    ("ggml_backend_cuda_buffer_type_alloc_buffer: allocating 20480.00 MiB on device 0: cudaMalloc failed", "out of"),
    ("0.00.012.345 E llama_init_from_model: failed to initialize the context: failed to allocate buffer for kv cache",
     "the KV cache did not fit"),
    ("0.00.012.345 E srv          init: couldn't bind HTTP server socket, hostname: 127.0.0.1, port: 8080",
     "port 8080 is taken"),
    ("gguf_init_from_file: failed to open GGUF file 'none.gguf' (No such file or directory)", "opened: none.gguf"),
    ("gguf_init_from_file_impl: invalid magic characters: '{\"do', expected 'GGUF'", "not a GGUF file (it begins with"),
    ("llama_model_load: error loading model: unknown model architecture: 'teapot'", "architecture `teapot`"),
    ("0.00.012.345 E llama_init_from_model: V cache quantization requires flash_attn", "flash attention"),
    ("srv    load_model: failed to load model, 'x.gguf'", "could not be loaded"),
)  # fmt: skip


@pytest.mark.parametrize(
    ("engine", "line", "fragment"),
    [("vllm", *case) for case in VLLM] + [("llamacpp", *case) for case in LLAMACPP],
)
def test_last_words(engine: str, line: str, fragment: str) -> None:
    cause = engines.get(engine).cause(f"INFO starting\n{line}\n", "exit code 1")
    assert cause is not None
    assert fragment in cause.sentence
    assert cause.advice
    assert not cause.sentence.endswith(".")
    assert "{" not in re.sub(r"\{(?:'|\\?\"do)", "", cause.sentence + cause.advice)


@pytest.mark.parametrize(("line", "fragment"), VLLM)
def test_the_root_cause_wins_over_what_it_brought_about(line: str, fragment: str) -> None:
    prefixed = "\n".join(CORE + part for part in line.splitlines()) if "\n" not in line else line
    cause = engines.get("vllm").cause(TRACEBACK + prefixed + AFTERMATH, "exit code 1")
    assert cause is not None
    assert fragment in cause.sentence


@pytest.mark.parametrize("engine", ["vllm", "llamacpp"])
@pytest.mark.parametrize(
    ("exit_status", "fragment"),
    [
        ("killed by SIGILL", "illegal instruction"),
        ("killed by SIGKILL", "killed from outside"),
        ("killed by SIGSEGV", "segmentation fault"),
        ("killed by SIGBUS", "bus error"),
    ],
)
def test_signals(engine: str, exit_status: str, fragment: str) -> None:
    cause = engines.get(engine).cause("INFO loading\n", exit_status)
    assert cause is not None
    assert fragment in cause.sentence
    assert cause.advice
    assert cause == next(c for name, c in SIGNALS.items() if name in exit_status)


@pytest.mark.parametrize("engine", ["vllm", "llamacpp"])
@pytest.mark.parametrize("log", ["", "\n", "INFO 12-02 15:00:00 [api_server.py:10] vLLM API server version 0.32.0\n"])
def test_nothing_is_made_up(engine: str, log: str) -> None:
    assert engines.get(engine).cause(log, "exit code 1") is None


def pattern(text: str, **changes: object) -> FailurePattern:
    fields: dict[str, object] = {"pattern": re.compile(text), "cause": f"{text}.", "advice": "do", **changes}
    return FailurePattern(**fields)  # type: ignore[arg-type]


def test_order_of_patterns_and_lines() -> None:
    patterns = [pattern("first"), pattern("second")]
    cause = explain(patterns, "second\nfirst\n", "")
    assert cause is not None
    assert cause.sentence == "first"
    last = explain([pattern(r"code (?P<n>\d+)", cause="code {n}", advice="see {n}")], "code 1\ncode 2\nend", "")
    assert last is not None
    assert (last.sentence, last.advice) == ("code 2", "see 2")


def test_unless_multiline_and_notes() -> None:
    unless = pattern("oom", unless=re.compile("warning"))
    assert explain([unless], "oom\n", "") is not None
    assert explain([unless], "warning: oom\n", "") is None
    assert explain([unless], "oom\nwarning: oom\n", "") is not None
    assert explain([pattern(r"a\nb")], "a\nb\n", "") is None
    assert explain([pattern(r"a\nb", multiline=True)], "a\nb\n", "") is not None
    assert explain([pattern("note", priority=LOWEST_CAUSE - 1)], "note\n", "") is None


def test_only_the_end_of_a_log_counts() -> None:
    assert explain([pattern("oom")], "oom\n" + "x\n" * TAIL_LINES, "") is None
    assert explain([pattern("oom")], "oom\n" + "x\n" * (TAIL_LINES - 1), "") is not None


def test_a_pattern_wins_over_a_signal() -> None:
    cause = explain([pattern("oom")], "oom\n", "killed by SIGKILL")
    assert cause is not None
    assert cause.sentence == "oom"


FRAGMENTS = [line for line, _ in (*VLLM, *LLAMACPP)]


@given(
    st.sampled_from(["vllm", "llamacpp"]),
    st.lists(st.sampled_from(FRAGMENTS) | st.text(max_size=30), max_size=5).map("\n".join),
    st.integers(0, 400),
    st.text(max_size=12),
)
def test_property_any_log_has_a_cause_or_none(engine: str, log: str, cut: int, exit_status: str) -> None:
    cause = engines.get(engine).cause(log[cut:], exit_status)
    assert cause is None or (cause.sentence and cause.advice)


def test_what_would_have_fitted_and_the_numbers_with_their_line() -> None:
    line = (
        "ERROR To serve at least one request with the model's max seq len (4096), (16.0 GiB KV cache is needed, which "
        "is larger than the available KV cache memory (1.2 GiB). Based on the available memory, the estimated maximum "
        "model length is 984."
    )
    cause = engines.get("vllm").cause(f"one\n{line} Try\nlast", "")
    assert cause is not None
    assert cause.numbers == {
        "max_model_len": "4096",
        "needed_gib": "16.0",
        "available_gib": "1.2",
        "estimate_tokens": "984",
    }
    assert (cause.stage, cause.fits, cause.line) == ("size the KV cache", "about 984 tokens would fit", f"{line} Try")
    without = engines.get("vllm").cause(line.partition(" Based")[0], "")
    assert without is not None
    assert (without.fits, "estimate_tokens" in without.numbers) == (None, False)


def test_only_numbers_are_numbers_and_a_match_over_lines_is_cited_whole() -> None:
    named = pattern(
        r"(?P<what>\w+) (?P<size_gib>\d+)\n(?P<utilization>[\d.]+) of (?P<seqs>\d+)?(?P<kv_tokens>\d+)?", multiline=True
    )
    cause = explain([named], "first\nx pool 3\n0.9 of \nlast", "")
    assert cause is not None
    assert cause.numbers == {"size_gib": "3", "utilization": "0.9"}
    assert cause.line == "x pool 3\n0.9 of "
    assert (cause.stage, cause.fits) == (None, None)
    last = explain([pattern(r"(?P<n>\d)\nend", multiline=True, cause="{n}")], "1\nend\n2\nend\n", "")
    assert last is not None
    assert last.sentence == "2"
