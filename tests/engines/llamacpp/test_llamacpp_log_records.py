"""Real public log excerpts: every fact that their lines hold is in the capture, and nothing that they do not hold."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engdiff.schema.capture import Capture, Pool
from engdiff.schema.values import Unknown, plain
from engdiff.sources.log import LogWishes, read_log
from engdiff.units import GIB, MIB
from tests.engines.known import every_known

RECORDS = [
    json.loads(line) for line in (Path(__file__).parent / "records.jsonl").read_text(encoding="utf-8").splitlines()
]
EXCERPTS = {record["id"]: record["log_excerpt"] for record in RECORDS}

Reading = Callable[[Capture], Any]


def setting(key: str) -> Reading:
    return lambda c: plain(c.settings[key].effective)


def native(*path: str) -> Reading:
    def read(capture: Capture) -> Any:
        at: Any = capture.native
        for name in path:
            at = at[name]
        return at

    return read


def term(device: str, name: str) -> Reading:
    """All terms of a name on a device, in bytes."""
    return lambda c: [
        plain(t.bytes) for i in c.instances for r in i.ranks if r.device == device for t in r.ledger if t.name == name
    ]


def pool(index: int, read: Callable[[Pool], Any]) -> Reading:
    return lambda c: read([p for i in c.instances for r in i.ranks for p in r.pools][index])


def mib(*sizes: float) -> list[int]:
    return [round(size * MIB) for size in sizes]


FACTS: dict[str, list[tuple[Reading, Any]]] = {
    "log-028": [
        (setting("model.context_total"), 262144),
        (setting("model.max_model_len"), 131072),
        (setting("scheduler.max_num_seqs"), 2),
        (setting("scheduler.max_num_batched_tokens"), 1024),
        (setting("scheduler.micro_batch"), 1024),
        (setting("kernels.flash_attention"), "enabled"),
        (setting("kv.unified"), False),
        (setting("kv.dtype"), "f16"),
        (term("ROCm0", "KV cache"), mib(9216, 90)),
        (pool(0, lambda p: plain(p.bytes)), 9216 * MIB),
        (pool(0, lambda p: plain(p.tokens)), 262144),
        (pool(0, lambda p: plain(p.concurrency_at_tokens)), 131072),
        (pool(0, lambda p: plain(p.max_concurrency)), 2),
        (pool(0, lambda p: (p.groups[0].kind, plain(p.groups[0].layers))), ("full", 18)),
        (pool(1, lambda p: plain(p.bytes)), 90 * MIB),
        (pool(1, lambda p: plain(p.concurrency_at_tokens)), 1280),
        (pool(1, lambda p: isinstance(p.tokens, Unknown)), True),
        (pool(1, lambda p: p.groups[0].kind), "sliding window"),
    ],
    "log-053": [
        (term("CUDA0", "KV cache"), mib(1166.65)),
        (term("CUDA0", "compute buffer"), mib(8470)),
        (term("host", "compute buffer"), mib(78.01)),
        (term("host", "output buffer"), mib(0.99)),
        (pool(0, lambda p: plain(p.bytes)), round(1166.62 * MIB)),
        (pool(0, lambda p: (p.groups[0].kind, plain(p.groups[0].layers))), ("mla", 61)),
        (pool(0, lambda p: p.groups[0].detail["kv_lora_rank"]), 512),
        (pool(0, lambda p: plain(p.tokens)), 32768),
        (setting("kv.dtype"), "q8_0"),
        (setting("model.max_model_len"), 32768),
        (setting("model.context_total"), 32768),
        (setting("scheduler.max_num_seqs"), 1),
        (native("log", "graph_nodes", "graph_nodes"), "3548"),
        (native("log", "graph_splits", "graph_splits"), "118"),
    ],
    "log-084": [
        (native("model", "n_layer"), 40),
        (native("model", "n_head"), 16),
        (native("model", "n_head_kv"), 2),
        (native("model", "n_embd_head_k"), 256),
        (native("model", "n_embd_head_v"), 256),
        (native("model", "n_ctx_train"), 262144),
        (native("model", "n_expert"), 256),
        (native("model", "n_expert_used"), 8),
        (lambda c: [note for note in c.notes if "46431" in note], ["the model of the child 46431"]),
    ],
    "log-086": [
        (native("model", "n_vocab"), 129280),
        (native("model", "n_ff_exp"), 2048),
        (native("model", "n_expert_shared"), 1),
        (setting("kernels.gpu_layers"), 62),
        (native("log", "offloaded", "layers_total"), "62"),
    ],
    "log-111": [
        (setting("model.context_total"), 163840),
        (setting("scheduler.max_num_batched_tokens"), 2048),
        (setting("scheduler.micro_batch"), 1024),
        (setting("kernels.flash_attention"), "disabled"),
        (native("context", "flash_attn"), 0),
        (native("context", "mla_attn"), 2),
        (native("context", "fused_moe"), 1),
        (term("CUDA14", "weights (CUDA14)"), mib(12698.93)),
        (native("log", "kv_layer", "kv_lora_rank"), "512"),
    ],
    "log-114": [
        (lambda c: c.instances[0].ranks[0].ledger[-1].name, "model file"),
        (term("device not stated", "model file"), [round(37.22 * GIB)]),
        (native("model", "model size"), "37.22 GiB (4.53 BPW)"),
        (native("model", "model params"), "70.55 B"),
        (native("model", "n_ctx_orig_yarn"), 131072),
        (setting("model.quantization"), "Q4_0"),
    ],
    "log-116": [
        (term("device not stated", "model file"), [round(18.81 * GIB)]),
        (native("model", "file size"), "18.81 GiB (4.93 BPW)"),
        (native("model", "n_ctx_train"), 40960),
        (native("tensor_types"), {"f32": 257, "f16": 64, "q4_K": 353, "q6_K": 33}),
    ],
    "log-117": [
        (lambda c: list(native("kv_layers")(c)), ["29", "35", "41", "47", "53", "59"]),
        (native("kv_layers", "59"), "CUDA1"),
    ],
}

NOT_IN_THE_LINES = {
    "log-086": ["error: the load failed, says the thread; the excerpt breaks off before"],
    "log-028": ["swa size line: it breaks off within its number, which therefore counts for nothing"],
}
"""Facts that a record states and its excerpt does not."""


def read(tmp_path: Path, text: str) -> Capture:
    path = tmp_path / "server.log"
    path.write_text(text, encoding="utf-8")
    return read_log([path])


@pytest.mark.parametrize("name", EXCERPTS)
def test_every_fact_of_a_record_is_read(name: str, tmp_path: Path) -> None:
    capture = read(tmp_path, EXCERPTS[name])
    assert capture.identity.engine == "llamacpp"
    assert [reading(capture) for reading, _ in FACTS[name]] == [expected for _, expected in FACTS[name]]


def test_every_record_has_a_row() -> None:
    assert EXCERPTS.keys() == FACTS.keys()
    assert NOT_IN_THE_LINES.keys() <= FACTS.keys()


@pytest.mark.parametrize("name", EXCERPTS)
def test_a_record_states_no_version_and_no_failure(name: str, tmp_path: Path) -> None:
    capture = read(tmp_path, EXCERPTS[name])
    assert isinstance(capture.identity.version, Unknown)
    assert capture.failure is None
    assert capture.launch.unknown_because


@pytest.mark.parametrize("name", EXCERPTS)
def test_each_value_cites_the_line_in_which_it_stands(name: str, tmp_path: Path) -> None:
    lines = EXCERPTS[name].splitlines()
    capture = read(tmp_path, EXCERPTS[name])
    found = every_known(capture)
    for known in found:
        if known.evidence is None or known.evidence.source != "log":
            continue
        assert known.evidence.line is not None
        assert known.evidence.where in lines[known.evidence.line - 1]
    assert any(known.evidence and known.evidence.source == "log" for known in found) or name in ("log-084", "log-117")


def test_another_engine_can_be_named(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    path.write_text(EXCERPTS["log-111"], encoding="utf-8")
    assert read_log([path], LogWishes(engine="llamacpp")).identity.engine == "llamacpp"
