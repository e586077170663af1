"""GGUF: written here, read back by a small reader that follows the format's description, not our writer."""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

import pytest

from engdiff.models import gguf
from engdiff.models.tensors import Tensor, ones
from engdiff.models.tiny import SHAPE, TinyModel, make_tiny
from engdiff.models.vocabulary import CHAT_TEMPLATE, learn_vocabulary

SCALARS = {4: "<I", 5: "<i", 6: "<f", 7: "<?"}
ITEM_BYTES = {0: 4, 1: 2}  # F32, F16


@dataclass(frozen=True)
class Read:
    metadata: Mapping[str, Any]
    tensors: Mapping[str, tuple[tuple[int, ...], int, bytes]]  # innermost dimension first, ggml type, bytes
    offsets: tuple[int, ...]  # from the start of the file
    end: int


def unpack(file: BinaryIO, code: str) -> Any:
    return struct.unpack(code, file.read(struct.calcsize(code)))[0]


def read_value(file: BinaryIO, kind: int) -> Any:
    if kind == 8:
        return file.read(unpack(file, "<Q")).decode()
    if kind == 9:
        item, count = unpack(file, "<I"), unpack(file, "<Q")
        return [read_value(file, item) for _ in range(count)]
    return unpack(file, SCALARS[kind])


def read_record(file: BinaryIO) -> tuple[str, tuple[int, ...], int, int]:
    name = read_value(file, 8)
    dimensions = tuple(unpack(file, "<Q") for _ in range(unpack(file, "<I")))
    return name, dimensions, unpack(file, "<I"), unpack(file, "<Q")


def read(data: bytes) -> Read:
    file = io.BytesIO(data)
    assert file.read(4) == b"GGUF"
    assert unpack(file, "<I") == 3
    tensors, values = unpack(file, "<Q"), unpack(file, "<Q")
    metadata = {read_value(file, 8): read_value(file, unpack(file, "<I")) for _ in range(values)}
    records = [read_record(file) for _ in range(tensors)]
    start = -(-file.tell() // 32) * 32
    content = {}
    for name, dimensions, kind, offset in records:
        size = ITEM_BYTES[kind]
        for dimension in dimensions:
            size *= dimension
        content[name] = (dimensions, kind, data[start + offset : start + offset + size])
    return Read(metadata, content, tuple(start + record[3] for record in records), len(data))


def test_values_come_back() -> None:
    metadata = {
        "a": gguf.uint32(2**32 - 1),
        "b": gguf.float32(0.5),
        "c": gguf.boolean(True),
        "d": gguf.string("Ġnaïve 東"),
        "e": gguf.strings(["", "x", "é"]),
        "f": gguf.int32s([-1, 0, 3]),
        "g": gguf.int32s([]),
    }
    expected = {"a": 2**32 - 1, "b": 0.5, "c": True, "d": "Ġnaïve 東", "e": ["", "x", "é"], "f": [-1, 0, 3], "g": []}
    assert read(gguf.dump(metadata, [])).metadata == expected


def test_tensors_come_back_aligned_with_the_innermost_dimension_first() -> None:
    odd = Tensor("odd", (3, 5), "F16", bytes(range(30)))
    one = ones("one", 3, "F32")
    back = read(gguf.dump({}, [odd, one, odd]))
    assert back.tensors["odd"] == ((5, 3), 1, odd.data)
    assert back.tensors["one"] == ((3,), 0, struct.pack("<3f", 1, 1, 1))
    assert all(offset % gguf.ALIGNMENT == 0 for offset in (*back.offsets, back.end))


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> TinyModel:
    return make_tiny(tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="module")
def tiny(model: TinyModel) -> Read:
    return read(model.gguf.read_bytes())


def test_the_tiny_model_says_what_llama_cpp_asks_for(tiny: Read) -> None:
    metadata = tiny.metadata
    assert next(iter(metadata)) == "general.architecture"
    assert metadata["llama.context_length"] == SHAPE.context
    assert metadata["llama.attention.head_count_kv"] == SHAPE.kv_heads
    assert metadata["llama.rope.dimension_count"] == SHAPE.head_size
    assert metadata["tokenizer.chat_template"] == CHAT_TEMPLATE
    vocabulary = learn_vocabulary(SHAPE.vocabulary)
    assert metadata["tokenizer.ggml.tokens"] == vocabulary.tokens
    assert metadata["tokenizer.ggml.merges"] == vocabulary.merges
    assert metadata["tokenizer.ggml.token_type"] == [1] * 637 + [3] * 3
    assert metadata["tokenizer.ggml.tokens"][metadata["tokenizer.ggml.eos_token_id"]] == "<|im_end|>"


def test_the_tiny_model_has_every_tensor(tiny: Read) -> None:
    assert len(tiny.tensors) == 3 + 9 * SHAPE.layers
    assert tiny.tensors["output.weight"][0] == (SHAPE.hidden, SHAPE.vocabulary)
    assert tiny.tensors["blk.3.attn_k.weight"][0] == (SHAPE.hidden, SHAPE.kv_heads * SHAPE.head_size)
    assert tiny.tensors["blk.0.ffn_down.weight"][0] == (SHAPE.feed_forward, SHAPE.hidden)


def test_the_tiny_model_can_only_say_words(tiny: Read) -> None:
    data, row = tiny.tensors["output.weight"][2], SHAPE.hidden * 2
    spoken = [number for number in range(SHAPE.vocabulary) if any(data[number * row : (number + 1) * row])]
    assert spoken == learn_vocabulary(SHAPE.vocabulary).speakable_ids()


def hugging_face_rows(model: TinyModel, name: str) -> list[bytes]:
    data = (model.hf / "model.safetensors").read_bytes()
    (length,) = struct.unpack_from("<Q", data)
    entry = json.loads(data[8 : 8 + length])[name]
    start, end = entry["data_offsets"]
    return rows(data[8 + length :][start:end], entry["shape"][-1])


def rows(data: bytes, columns: int) -> list[bytes]:
    return [data[start : start + 2 * columns] for start in range(0, len(data), 2 * columns)]


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("token_embd", "model.embed_tokens"),
        ("output", "lm_head"),
        ("blk.0.attn_v", "model.layers.0.self_attn.v_proj"),
        ("blk.1.attn_output", "model.layers.1.self_attn.o_proj"),
        ("blk.2.ffn_gate", "model.layers.2.mlp.gate_proj"),
        ("blk.2.ffn_up", "model.layers.2.mlp.up_proj"),
        ("blk.3.ffn_down", "model.layers.3.mlp.down_proj"),
    ],
)
def test_both_forms_hold_the_same_weights(model: TinyModel, tiny: Read, ours: str, theirs: str) -> None:
    (columns, _), _, data = tiny.tensors[ours + ".weight"]
    assert rows(data, columns) == hugging_face_rows(model, theirs + ".weight")


@pytest.mark.parametrize(("part", "heads"), [("q", SHAPE.heads), ("k", SHAPE.kv_heads)])
def test_rotary_pairs_are_the_same_pairs(model: TinyModel, tiny: Read, part: str, heads: int) -> None:
    ours = rows(tiny.tensors[f"blk.1.attn_{part}.weight"][2], SHAPE.hidden)
    theirs = hugging_face_rows(model, f"model.layers.1.self_attn.{part}_proj.weight")
    for first in range(0, heads * 32, 32):
        for pair in range(16):
            assert ours[first + 2 * pair] == theirs[first + pair]
            assert ours[first + 2 * pair + 1] == theirs[first + pair + 16]
