"""Logs of llama.cpp as its wrappers and its versions write them: starts, prefixes, devices, endings."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engdiff.engines.llamacpp.engine import ENGINE
from engdiff.engines.llamacpp.log import said, uptime
from engdiff.logs.reader import Reader
from engdiff.logs.starts import Start
from engdiff.schema.capture import Capture
from engdiff.schema.values import Known, Unknown, plain
from engdiff.sources.base import read_capture
from engdiff.sources.log import LogWishes, read_log
from engdiff.units import GIB, MIB

HERE = Path(__file__).parent
LOGS = {path.stem: path.read_text(encoding="utf-8") for path in sorted((HERE / "logs").glob("*.txt"))}
BOOTS = {path.stem: path.read_text(encoding="utf-8") for path in sorted((HERE / "data").glob("*.log"))}


def read(tmp_path: Path, text: str, **wishes: int | str | None) -> Capture:
    path = tmp_path / "server.log"
    path.write_text(text, encoding="utf-8")
    return read_log([path], LogWishes(engine="llamacpp", **wishes))  # type: ignore[arg-type]


def effective(capture: Capture) -> dict[str, object]:
    return {key: plain(setting.effective) for key, setting in capture.settings.items()}


def ledger(capture: Capture) -> dict[str, dict[str, object]]:
    """By device: names to bytes; of several terms of a name the sum."""
    found: dict[str, dict[str, object]] = {}
    for rank in capture.instances[0].ranks:
        sums: dict[str, object] = {}
        for term in rank.ledger:
            value = plain(term.bytes)
            sums[term.name] = value if value is None else int(str(sums.get(term.name, 0))) + int(str(value))
        found[rank.device] = sums
    return found


# --- whole logs -------------------------------------------------------------------------------------------------


def test_two_gpus_and_a_sliding_window(tmp_path: Path) -> None:
    capture = read(tmp_path, LOGS["cuda-iswa"])
    assert plain(capture.identity.version) == "b6105"
    assert plain(capture.identity.commit) == "d2c0ffee"
    assert [(d.name, d.detail["as"], d.detail["free_mib"]) for d in capture.identity.devices] == [
        ("NVIDIA GeForce RTX 3090", "CUDA0", 23887),
        ("NVIDIA GeForce RTX 3090", "CUDA1", 23887),
    ]
    assert all(isinstance(d.memory_bytes, Unknown) for d in capture.identity.devices)
    assert capture.launch.model == "/models/gemma-3-27b-it-Q4_K_M.gguf"
    sums = ledger(capture)
    assert sums["CUDA0"] == {
        "memory": None,
        "weights (CUDA0)": round(7843.41 * MIB),
        "KV cache": 802 * MIB,
        "compute buffer": round(519.62 * MIB),
    }
    assert sums["host"]["weights (CPU_Mapped)"] == round(1102.77 * MIB)
    for rank in capture.instances[0].ranks[:2]:
        full, window = rank.pools
        assert (full.groups[0].kind, window.groups[0].kind) == ("full", "sliding window")
        assert (plain(full.tokens), plain(window.tokens)) == (32768, 1536)
        assert plain(full.bytes) == 640 * MIB
        assert full.groups[0].detail["layers_of_all_devices"] == 10
    assert effective(capture)["kernels.gpu_layers"] == 63
    assert capture.failure is None
    assert "a sequence holds 32768 tokens, the model was trained for 131072" in " ".join(capture.notes)
    speeds = {name: value for name, value in capture.run_summary.items() if name.endswith("tokens_per_second")}
    assert {name: plain(value)["last"] for name, value in speeds.items()} == {  # type: ignore[index,call-overload]
        "prompt_eval.tokens_per_second": 172.7,
        "eval.tokens_per_second": 33.52,
    }
    assert plain(capture.run_summary["eval.tokens"])["lines"] == 1  # type: ignore[index,call-overload]


def test_a_dry_run_a_draft_model_and_a_recurrent_state(tmp_path: Path) -> None:
    capture = read(tmp_path, LOGS["fit-draft"])
    assert plain(capture.identity.version) == "b11549"
    assert len(capture.reading.starts) == 1  # type: ignore[union-attr]
    assert capture.launch.model == "/m/qwen3next.gguf"
    (device,) = capture.identity.devices
    assert plain(device.memory_bytes) == 32111 * MIB
    sums = ledger(capture)
    assert sums["CUDA0"]["memory"] == 32111 * MIB
    assert sums["CUDA0"]["KV cache"] == 768 * MIB
    assert sums["CUDA0"]["recurrent state"] == round(301.5 * MIB)
    assert sums["host"]["memory"] == 515628 * MIB
    cuda = capture.instances[0].ranks[0]
    assert [(p.name, p.groups[0].kind, plain(p.groups[0].layers)) for p in cuda.pools] == [
        ("KV cache", "full", 12),
        ("recurrent state", "state", 48),
    ]
    assert effective(capture)["speculative.model"] == "/m/draft.gguf"
    assert effective(capture)["kv.offload_bytes"] == 8 * GIB
    assert effective(capture)["kv.checkpoint_spacing"] == 8192
    assert {phase.name: plain(phase.seconds) for phase in capture.boot} == {
        "fit parameters to memory": 0.55,
        "start to listening": pytest.approx(2.051959),
    }


def test_ollama_with_two_models_of_which_one_fails(tmp_path: Path) -> None:
    capture = read(tmp_path, LOGS["ollama-runner"])
    assert [start.ended for start in capture.reading.starts] == ["ready", "failed"]  # type: ignore[union-attr]
    assert capture.reading.chosen == 0  # type: ignore[union-attr]
    assert isinstance(capture.identity.version, Unknown)
    assert "started by ollama 0.5.7 (line 1)" in capture.notes
    assert plain(capture.identity.driver) == "12.1"
    (device,) = capture.identity.devices
    assert (device.name, device.detail["as"], plain(device.memory_bytes)) == (
        "NVIDIA GeForce RTX 2080 Ti",
        "CUDA0",
        11 * GIB,
    )
    assert ledger(capture)["CUDA0"]["memory"] == 11 * GIB
    total = capture.settings["model.context_total"]
    assert (plain(total.configured), plain(total.effective), total.origin) == (8192, 8192, "user")
    assert capture.settings["kernels.gpu_layers"].origin == "user"
    assert capture.launch.arguments[0] == "--model"
    (pool,) = capture.instances[0].ranks[0].pools
    assert (plain(pool.tokens), plain(pool.bytes), plain(pool.groups[0].layers)) == (8192, 896 * MIB, 28)
    assert [(phase.name, plain(phase.seconds)) for phase in capture.boot] == [("start to healthy", 1.51)]

    failed = read(tmp_path, LOGS["ollama-runner"], start=2)
    assert failed.failure is not None
    assert failed.failure.stage == "load weights"
    assert "the weights did not fit: 4812.00 MiB on device 0" in str(failed.failure.cause)
    assert plain(failed.failure.numbers["needed_bytes"]) == 4812 * MIB
    assert failed.launch.model is not None
    assert failed.launch.model.endswith("sha256-bbb")


def test_the_engine_of_ollama(tmp_path: Path) -> None:
    capture = read(tmp_path, LOGS["ollama-engine"])
    assert effective(capture) == {
        "model.context_total": 4096,
        "scheduler.max_num_batched_tokens": 512,
        "scheduler.max_num_seqs": 1,
        "kernels.flash_attention": "enabled",
        "kernels.threads": 8,
        "kernels.gpu_layers": 37,
        "model.path": None,
    }
    assert ledger(capture) == {
        "CUDA0": {
            "memory": 16 * GIB,
            "weights (CUDA0)": round(4.4 * GIB),
            "KV cache": 576 * MIB,
            "compute buffer": 98 * MIB,
        },
        "host": {"memory": None, "weights (CPU)": round(315.3 * MIB), "compute buffer": 8 * MIB},
    }
    weights = capture.instances[0].ranks[0].ledger[1].bytes
    assert isinstance(weights, Known)
    assert weights.low == pytest.approx(4.35 * GIB)
    assert weights.high == pytest.approx(4.45 * GIB)


def test_the_server_of_2024(tmp_path: Path) -> None:
    capture = read(tmp_path, LOGS["rocm-2024"])
    assert plain(capture.identity.version) == "b2953"
    assert [(d.name, d.detail["as"]) for d in capture.identity.devices] == [("AMD Radeon RX 7900 XTX", "ROCm0")]
    stated = effective(capture)
    assert stated["scheduler.max_num_seqs"] == 2
    assert stated["model.max_model_len"] == 4096
    assert stated["model.context_total"] == 8192
    assert stated["server.http_threads"] == 15
    assert [warning.level for warning in capture.warnings] == ["warning"]
    assert plain(capture.run_summary["prompt_eval.tokens_per_second"])["last"] == 2116.38  # type: ignore[index,call-overload]


def test_a_router_of_two_children(tmp_path: Path) -> None:
    """The child that came up is read; the other is named."""
    capture = read(tmp_path, LOGS["router"])
    assert capture.launch.model == "/m/a.gguf"
    assert plain(capture.identity.version) == "b7400"
    assert capture.native["model"] == {"n_layer": 40}
    assert effective(capture)["model.context_total"] == 4096
    assert ledger(capture)["Vulkan0"]["KV cache"] == 80 * MIB
    assert "the model of the child 46431; the log also shows 46432" in capture.notes


@pytest.mark.parametrize("version", BOOTS)
def test_a_log_says_what_the_launch_said(version: str, tmp_path: Path) -> None:
    capture = read(tmp_path, BOOTS[version])
    assert capture.failure is None
    assert [start.ended for start in capture.reading.starts] == ["ready"]  # type: ignore[union-attr]
    (rank,) = capture.instances[0].ranks
    wide = version in ("2026.9.11063", "2026.10.11549")
    assert plain(rank.pools[0].bytes) == (16 if wide else 4) * MIB
    assert effective(capture)["model.max_model_len"] == (4096 if wide else 1024)
    if version == "0.2.7":
        assert plain(capture.identity.version) == "b7376"
    else:
        assert isinstance(capture.identity.version, Unknown)
        assert "does not know its own number" in capture.identity.version.because


def test_three_starts_in_one_file(tmp_path: Path) -> None:
    text = BOOTS["0.2.7"] + BOOTS["2026.4.8672.1"] + BOOTS["2026.9.11063"]
    capture = read(tmp_path, text)
    assert [start.ended for start in capture.reading.starts] == ["ready"] * 3  # type: ignore[union-attr]
    assert effective(capture)["model.max_model_len"] == 4096
    assert plain(read(tmp_path, text, start=1).identity.version) == "b7376"


# --- prefixes and wrappers --------------------------------------------------------------------------------------

CUT = "llama_kv_cache: size =   90.00\n"
KV = (
    "llama_kv_cache:      CUDA0 KV buffer size =   640.00 MiB\n"
    "llama_kv_cache: size =  640.00 MiB (  4096 cells,  40 layers,  1/1 seqs), "
    "K (f16):  320.00 MiB, V (f16):  320.00 MiB\n"
)


@pytest.mark.parametrize(
    ("raw", "text", "process", "level"),
    [
        ("0.01.968.556 I print_info: n_vocab = 1", "print_info: n_vocab = 1", "", "I"),
        ("[34m0.00.612.795[0m [32mI [0mprint_info: arch = x", "print_info: arch = x", "", "I"),
        ("[46431] print_info: n_head = 16", "print_info: n_head = 16", "46431", None),
        ("[46431] 0.01.061.060 W srv  init: careful", "srv  init: careful", "46431", "W"),
        ("W llama_context: careful", "llama_context: careful", "", "W"),
        ("I am no prefix", "I am no prefix", "", None),
        ('time=2025-01-01T00:00:00.000Z level=WARN source=a.go:1 msg="x y" z=1', 'msg="x y" z=1', "", "WARN"),
        ("2024/01/29 19:35:54 routes.go:950: INFO Listening on [::]:1", "Listening on [::]:1", "", "INFO"),
        ("INFO [                    init] new slot | n_ctx_slot=1", "new slot | n_ctx_slot=1", "", "INFO"),
        ("[llama Info]: llama_kv_cache: x", "llama_kv_cache: x", "", "INFO"),
        ("5:41PM DBG GRPC(m-127.0.0.1:3456): stderr llama_context: x", "llama_context: x", "m-127.0.0.1:3456", "DBG"),
        ('time="2025-04-01T10:00:00Z" level=info msg="llama_context: x" component=y', "llama_context: x", "", "INFO"),
    ],
)
def test_prefixes(raw: str, text: str, process: str, level: str | None) -> None:
    line = said(raw)
    assert (line.text, line.process, line.level) == (text, process, level)


def test_a_function_continues_no_line() -> None:
    assert said("llama_context: n_ctx = 1").prefixed
    assert said("       eval time =    3012.91 ms").prefixed
    assert not said("MiB").prefixed


@pytest.mark.parametrize(
    ("line", "seconds"),
    [("12.03.000.001 I x", 723.000001), ("[46431] 0.01.000.000 I x", 1.0), ("build: 1", None), ("", None)],
)
def test_uptime(line: str, seconds: float | None) -> None:
    assert uptime(line) == (None if seconds is None else pytest.approx(seconds))


WRAPPERS = {
    "journald": "Jan 01 00:00:01 host ollama[1001]: ",
    "docker compose": "llama-1  | ",
    "quotation": "> ",
    "LM Studio": "[2026-01-01 00:00:00][DEBUG] ",
    "llama-box": "0.01.968.556 I ",
    "router": "[46431] ",
    "colours without escapes": "[34m0.00.612.795[0m [32mI [0m",
}


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_a_cache_inside_a_wrapper(wrapper: str, tmp_path: Path) -> None:
    text = "".join(f"{WRAPPERS[wrapper]}{line}\n" for line in KV.splitlines())
    capture = read(tmp_path, text)
    (pool,) = capture.instances[0].ranks[0].pools
    assert (plain(pool.bytes), plain(pool.tokens)) == (640 * MIB, 4096)


def test_a_line_over_two_rows(tmp_path: Path) -> None:
    """LM Studio breaks a line where its window ends."""
    text = KV.replace("K (f16):  320.00 MiB,", "K (f16):  320.00\nMiB,").replace("size =   640.00", "size =\n640.00")
    (rank,) = read(tmp_path, text).instances[0].ranks
    (pool,) = rank.pools
    assert plain(pool.bytes) == 640 * MIB
    assert rank.device == "CUDA0"


def test_a_cut_number_counts_for_nothing(tmp_path: Path) -> None:
    capture = read(tmp_path, KV.splitlines()[0] + "\n" + CUT)
    (pool,) = capture.instances[0].ranks[0].pools
    assert plain(pool.bytes) == 640 * MIB
    assert isinstance(pool.tokens, Unknown)


@pytest.mark.parametrize(
    "line",
    [
        "srv  log_server_r: request: GET /v1/models?x=llama_context 127.0.0.1 200",
        "llama_model_loader: - kv  22: tokenizer.chat_template str = {{ llama_context: n_ctx = 7 }}",
        "load: token to piece cache size = 0.9311 MB",
        "llama_context: n_ctx = 40960 tokens were asked for = too many",
    ],
)
def test_lines_that_state_nothing(line: str, tmp_path: Path) -> None:
    before, after = read(tmp_path, KV), read(tmp_path, KV + line + "\n")
    assert effective(after) == effective(before)
    assert ledger(after) == ledger(before)


def test_json_lines_of_2023(tmp_path: Path) -> None:
    text = (
        '{"timestamp":1706462740,"level":"INFO","function":"main","line":2537,"message":"build info","build":2074,'
        '"commit":"098f6d73"}\n'
        "llama_new_context_with_model: n_ctx      = 512\n"
        '{"function":"initialize","level":"INFO","line":440,"msg":"initializing slots","n_slots":1,"tid":"1"}\n'
        '{"function":"initialize","level":"INFO","line":449,"msg":"new slot","n_ctx_slot":512,"slot_id":0}\n'
        '{"timestamp":1706462747,"level":"INFO","function":"main","line":2998,"message":"model loaded"}\n'
    )
    capture = read(tmp_path, text)
    assert plain(capture.identity.version) == "b2074"
    assert effective(capture)["model.max_model_len"] == 512
    assert [start.ended for start in capture.reading.starts] == ["ready"]  # type: ignore[union-attr]


# --- endings ----------------------------------------------------------------------------------------------------

LOADING = "build: 6105 (d2c0ffee) with cc for x\nsrv    load_model: loading model '/m/x.gguf'\n"
CUDA = "ggml_backend_cuda_buffer_type_alloc_buffer"
ENDINGS = {
    "kv": (
        "llama_context: constructing llama_context\nllama_context: n_ctx = 131072\n"
        f"{CUDA}: allocating 24576.00 MiB on device 0: cudaMalloc failed: out of memory\n"
        "alloc_tensor_range: failed to allocate CUDA0 buffer of size 25769803776\n"
        "llama_init_from_model: failed to initialize the context: failed to allocate buffer for kv cache\n"
        "common_init_from_params: failed to create context with model '/m/x.gguf'\n",
        "size the KV cache",
        "the KV cache did not fit: 24576.00 MiB on device 0",
    ),
    "compute": (
        "llama_context: n_ctx = 131072\n"
        f"{CUDA}: allocating 8470.00 MiB on device 1: cudaMalloc failed: out of memory\n"
        "ggml_gallocr_reserve_n: failed to allocate CUDA1 buffer of size 8881438720\n"
        "llama_init_from_model: failed to initialize the context: failed to allocate compute pp buffers\n",
        "profile memory",
        "the compute buffer of the largest step did not fit: 8470.00 MiB on device 1",
    ),
    "architecture": (
        "llama_model_load: error loading model: error loading model architecture: unknown model architecture: 'abc9'\n"
        "llama_model_load_from_file_impl: failed to load model\n",
        "load weights",
        "this version does not know the architecture `abc9`",
    ),
    "vulkan": (
        "ggml_vulkan: Device memory allocation of size 1073741824 failed.\n"
        "ggml_vulkan: vk::Device::allocateMemory: ErrorOutOfDeviceMemory\n"
        "llama_model_load: error loading model: unable to allocate Vulkan0 buffer\n",
        "load weights",
        "the weights did not fit (Vulkan0)",
    ),
    "argument": ("error: invalid argument: --no-such-flag\n", "configuration", "the argument `--no-such-flag`"),
    "port": (
        "main: couldn't bind HTTP server socket, hostname: 127.0.0.1, port: 8080\n",
        "configuration",
        "port 8080 is taken",
    ),
    "assertion": ("/src/ggml/src/ggml.c:100: GGML_ASSERT(a->ne[2] == b->ne[0]) failed\n", "load weights", "impossible"),
    "metadata": (
        "llama_model_load: error loading model: tensor 'blk.3.ffn_up.weight' data is not within the file bounds, "
        "model is corrupted or incomplete\n",
        "load weights",
        "cut short or damaged",
    ),
}


@pytest.mark.parametrize("name", ENDINGS)
def test_what_its_last_words_mean(name: str, tmp_path: Path) -> None:
    text, stage, cause = ENDINGS[name]
    capture = read(tmp_path, LOADING + text)
    assert capture.failure is not None
    assert capture.failure.stage == stage
    assert cause in str(capture.failure.cause)
    assert [start.ended for start in capture.reading.starts] == ["failed"]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "line",
    [
        "llama_params_fit: failed to fit params to free device memory: n_gpu_layers already set by user to 99, abort",
        "warning: failed to mlock 447733760-byte buffer (after previously locking 0 bytes): Cannot allocate memory",
        "srv  operator(): failed to load model metadata",
        "llama_context: compute buffer allocation failed, retrying without pipeline parallelism",
        "load_tensors: tensor 'output.weight' cannot be used with preferred buffer type CUDA_Host, using CPU",
    ],
)
def test_what_a_start_survives_is_no_failure(line: str, tmp_path: Path) -> None:
    assert read(tmp_path, LOADING + line + "\n").failure is None
    assert read(tmp_path, LOGS["cuda-iswa"] + line + "\n").failure is None


@pytest.mark.parametrize("name", [*LOGS, *BOOTS])
def test_no_healthy_log_has_a_cause(name: str) -> None:
    text = {**LOGS, **BOOTS}[name]
    if name != "ollama-runner":
        assert ENGINE.cause(text, "") is None


# --- any text ---------------------------------------------------------------------------------------------------

ALL_LINES = sorted({line for text in (*LOGS.values(), *BOOTS.values()) for line in text.splitlines()})
ODD = [
    "llama_kv_cache: size = 1.00 MiB (" + "9" * 5000 + " cells, 1 layers, 1/1 seqs), K (f16): 1 MiB, V (f16): 1 MiB",
    "x: CUDA0 KV buffer size = " + "9" * 500 + " MiB",
    'msg="kv cache" device=CUDA0 size="1.2.3 GiB"',
    "llama_context: n_ctx = nan",
    "llama_context: n_ctx = -7",
    "llama_kv_cache: size = 0.00 MiB ( 0 cells, 0 layers, 0/0 seqs), K (f16): 0.00 MiB, V (f16): 0.00 MiB",
    'time=x level=INFO source=y msg="starting runner" cmd="a \'b --model"',
    "print_info: file size = 1.2.3 GiB",
]


@given(st.lists(st.sampled_from([*ALL_LINES, *ODD]) | st.text(max_size=40), max_size=25))
def test_lines_in_any_order_fuzz(lines: list[str]) -> None:
    heard = Reader({"llamacpp": ENGINE.log.format}).hear(io.BytesIO("\n".join(lines).encode(errors="replace")))
    starts: list[Start] = [start for speech in heard.speeches.values() for start in speech.starts]
    for start in starts:
        ENGINE.log.stage(start)
        capture = ENGINE.log.capture(start, read_capture("llamacpp", "log", "a log does not state it"))
        Capture.model_validate(capture.model_dump(mode="json"))
