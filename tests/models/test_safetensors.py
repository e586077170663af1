"""safetensors: written here, read back by a small reader."""

from __future__ import annotations

import json
import struct
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from engdiff.models import safetensors
from engdiff.models.llama import random_weights
from engdiff.models.tensors import Tensor, ones
from engdiff.models.tiny import SHAPE


def read(data: bytes) -> tuple[dict[str, Any], dict[str, bytes]]:
    (length,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8 : 8 + length])
    body = data[8 + length :]
    tensors = {name: entry for name, entry in header.items() if name != "__metadata__"}
    ends = [0, *(entry["data_offsets"][1] for entry in tensors.values())]
    assert [entry["data_offsets"][0] for entry in tensors.values()] == ends[:-1], "no gaps"
    assert ends[-1] == len(body), "nothing after the last tensor"
    return header, {name: body[slice(*entry["data_offsets"])] for name, entry in tensors.items()}


def test_tensors_come_back() -> None:
    weight = Tensor("w", (2, 3), "F16", bytes(range(12)))
    header, content = read(safetensors.dump([weight, ones("n", 2, "F32")]))
    assert header["__metadata__"] == {"format": "pt"}
    assert header["w"] == {"dtype": "F16", "shape": [2, 3], "data_offsets": [0, 12]}
    assert content == {"w": weight.data, "n": struct.pack("<2f", 1, 1)}


@settings(deadline=None)
@given(st.dictionaries(st.text(min_size=1).filter(lambda name: name != "__metadata__"), st.integers(1, 9), max_size=5))
def test_any_names_and_sizes_come_back_aligned(sizes: dict[str, int]) -> None:
    tensors = [ones(name, size, "F16") for name, size in sizes.items()]
    data = safetensors.dump(tensors)
    assert struct.unpack_from("<Q", data)[0] % 8 == 0
    assert read(data)[1] == {tensor.name: tensor.data for tensor in tensors}


def test_the_tiny_model_has_the_names_and_shapes_that_transformers_expects() -> None:
    header, _ = read(safetensors.dump(random_weights(SHAPE, [1, 2], seed=7)))
    assert len(header) == 1 + 3 + 9 * SHAPE.layers
    assert {entry["dtype"] for name, entry in header.items() if name != "__metadata__"} == {"F16"}
    assert header["model.layers.0.self_attn.k_proj.weight"]["shape"] == [64, 256]
    assert header["model.layers.3.mlp.down_proj.weight"]["shape"] == [256, 512]
    assert header["lm_head.weight"]["shape"] == [640, 256]
