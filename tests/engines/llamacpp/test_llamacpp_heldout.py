"""Public log fragments that no pattern was written from: what their lines hold is read, and nothing beside it.

Times, hosts, paths and ids are replaced; where a line breaks off it is as found.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engdiff.schema.capture import Capture
from engdiff.schema.values import Known, plain
from engdiff.sources.log import read_log
from engdiff.units import GIB, MIB
from tests.logs.cited import invented

LINES = (Path(__file__).parent / "heldout.jsonl").read_text(encoding="utf-8").splitlines()
FRAGMENTS: dict[str, str] = {record["id"]: record["log_excerpt"] for record in map(json.loads, LINES)}

SHORT = {
    "context": "model.context_total",
    "slot": "model.max_model_len",
    "slots": "scheduler.max_num_seqs",
    "batch": "scheduler.max_num_batched_tokens",
    "step": "scheduler.micro_batch",
    "unified": "kv.unified",
    "k": "kv.dtype",
    "v": "kv.dtype_values",
    "flash": "kernels.flash_attention",
    "layers": "kernels.gpu_layers",
    "threads": "kernels.threads",
    "http": "server.http_threads",
    "quantization": "model.quantization",
}

FACTS: dict[str, dict[str, Any]] = {
    "compose-refused-while-serving": {
        "notes": ["memory was refused while it served: 9866.00 MiB on device 1 (line 11; 2 such)"],
    },
    "refused-then-tried-again": {"slots": 1, "slot": 50176, "unified": False},
    "cpu-kv-cache-refused": {
        "context": 1048576,
        "batch": 2048,
        "step": 512,
        "flash": "disabled",
        "cause": "out of memory: the KV cache did not fit: 137438953504 bytes in one piece",
        "stage": "size the KV cache",
        "needed": 137438953504,
    },
    "kv-cache-of-no-device": {
        "k": "f16",
        "v": "f16",
        "uses": {("host", "output buffer"): 0.49, ("device not stated", "KV cache"): 5120},
        "cause": "out of memory: the compute buffer of the largest step did not fit: 144.00 MiB on device 4",
        "stage": "profile memory",
        "needed": 144 * MIB,
        "notes": [],
    },
    "ollama-engine-weights": {
        "layers": 41,
        "quantization": "Q8_0",
        "uses": {
            ("CUDA1", "weights (CUDA1)"): 11.9 * GIB / MIB,
            ("CUDA0", "weights (CUDA0)"): 11.5 * GIB / MIB,
            ("host", "weights (CPU)"): 680,
        },
    },
    "ollama-runner-docker-desktop": {
        "model": "/models/sha256-00000000",
        "asked": {"context": 8192, "batch": 512, "layers": 25, "threads": 10, "slots": 1},
    },
    "router-child-projector": {
        "slots": 1,
        "uses": {("Vulkan0", "projector's compute buffer"): 248.1, ("host", "projector's compute buffer"): 24.93},
    },
    "llama-box-arguments": {
        "version": "b4598",
        "commit": "27d135c9",
        "model": "/models/DeepSeek-R1-Distill-Qwen-32B-Q6_K_L.gguf",
        "threads": 12,
        "asked": {"context": 8192, "slots": 4, "layers": 999},
    },
    "vulkan-command-above": {
        "version": "b5061",
        "commit": "916c83bf",
        "devices": ["AMD Radeon RX 6600M"],
        "model": "nomic-embed-text-v1.5.Q8_0.gguf",
        "threads": 8,
        "http": 15,
        "asked": {"context": 8192, "batch": 8192, "step": 8192, "layers": 99},
    },
    "llama-2023": {
        "model": "/models/ggml-model-q4_1.bin",
        "context": 512,
        "uses": {("device not stated", "KV cache"): 1560},
    },
    "quantised-v-cache": {
        "model": "/models/chatglm4-9B.guff",
        "cause": "a quantised V cache needs flash attention, and it is off",
        "stage": "size the KV cache",
    },
    "lm-studio-indented": {
        "k": "f16",
        "v": "f16",
        "uses": {
            ("CUDA0", "KV cache"): 144,
            ("CUDA0", "compute buffer"): 300.75,
            ("host", "output buffer"): 0.58,
            ("host", "compute buffer"): 12.01,
        },
    },
    "iswa-without-sequences": {
        "context": 49152,
        "slot": 3072,
        "slots": 16,
        "batch": 2048,
        "step": 128,
        "flash": "enabled",
        "k": "f16",
        "v": "f16",
        "pools": [(3840 * MIB, 49152), (7488 * MIB, 18432)],
        "uses": {("CUDA0", "weights (CUDA0)"): 15773.7, ("host", "weights (CPU_Mapped)"): 1102.5},
    },
    "llama-box-dated": {
        "context": 32768,
        "slots": 4,
        "batch": 32768,
        "step": 512,
        "flash": "disabled",
        "devices": ["Apple M1 Pro"],
    },
    "json-commit-like-a-number": {
        "version": "b1696",
        "commit": "708e179",
        "devices": ["Tesla V100S-PCIE-32GB", "Tesla P40"],
        "model": "/models/llama2-70b-q6_K.bin",
        "threads": 1,
    },
}


@pytest.fixture(name="read")
def _read(tmp_path: Path) -> Any:
    def read(text: str) -> Capture:
        path = tmp_path / "server.log"
        path.write_text(text, encoding="utf-8")
        return read_log([path])

    return read


def terms(capture: Capture) -> dict[tuple[str, str], Any]:
    ranks = [rank for instance in capture.instances for rank in instance.ranks]
    return {(r.device, t.name): plain(t.bytes) for r in ranks for t in r.ledger if t.kind == "use"}


def pools(capture: Capture) -> list[tuple[Any, Any]]:
    ranks = [rank for instance in capture.instances for rank in instance.ranks]
    return [(plain(p.bytes), plain(p.tokens)) for r in ranks for p in r.pools]


def asked(capture: Capture, name: str) -> Any:
    configured = capture.settings[SHORT[name]].configured
    return configured.value if isinstance(configured, Known) else None


def found(capture: Capture, expected: dict[str, Any]) -> dict[str, Any]:
    """The same facts as ``expected``, as the capture has them."""
    whole: dict[str, Callable[[], Any]] = {
        "version": lambda: plain(capture.identity.version),
        "commit": lambda: plain(capture.identity.commit),
        "devices": lambda: [device.name for device in capture.identity.devices],
        "model": lambda: capture.launch.model,
        "cause": lambda: capture.failure and capture.failure.cause,
        "stage": lambda: capture.failure and capture.failure.stage,
        "needed": lambda: capture.failure and plain(capture.failure.numbers["needed_bytes"]),
        "notes": lambda: [note for note in capture.notes if "refused" in note],
        "pools": lambda: pools(capture),
        "uses": lambda: {key: terms(capture).get(key) for key in expected["uses"]},
        "asked": lambda: {name: asked(capture, name) for name in expected["asked"]},
    }
    return {
        name: whole[name]() if name in whole else plain(capture.settings[SHORT[name]].effective) for name in expected
    }


@pytest.mark.parametrize("name", FRAGMENTS)
def test_every_fact_of_a_fragment_is_read(name: str, read: Any) -> None:
    capture = read(FRAGMENTS[name])
    expected = dict(FACTS[name])
    if "uses" in expected:
        expected["uses"] = {key: round(size * MIB) for key, size in expected["uses"].items()}
    assert capture.identity.engine == "llamacpp"
    assert found(capture, expected) == expected
    assert (capture.failure is not None) == ("cause" in expected)


@pytest.mark.parametrize("name", FRAGMENTS)
def test_nothing_is_invented(name: str, read: Any) -> None:
    assert invented(read(FRAGMENTS[name]), FRAGMENTS[name]) == []


def test_every_fragment_has_a_row() -> None:
    assert FRAGMENTS.keys() == FACTS.keys()


def test_a_refusal_that_nothing_follows_is_the_cause(read: Any) -> None:
    first_two = "\n".join(FRAGMENTS["refused-then-tried-again"].splitlines()[:2])
    text = f"{first_two}\n1.06.520.086 E srv  load_model: failed to load model, '/models/a.gguf'\n"
    assert read(text).failure.cause.startswith("out of memory")


def test_a_request_that_runs_means_that_the_server_is_up(read: Any) -> None:
    text = "slot launch_slot_: id  0 | task 7 | processing task\nCUDA error: out of memory\n"
    assert read(text).failure.stage == "serving"


def test_a_command_goes_on_over_several_lines(read: Any) -> None:
    text = "./llama-server -m a.gguf \\\n  -c 4096 \\\n -np 2\nmain: build = 2000 (abcdef0)\n"
    assert read(text).launch.command == ("./llama-server", "-m", "a.gguf", "-c", "4096", "-np", "2")


def test_a_command_of_which_only_the_beginning_is_there_is_none(read: Any) -> None:
    text = "./llama-server -m a.gguf \\\nmain: build = 2000 (abcdef0)\n"
    assert not read(text).launch.command
