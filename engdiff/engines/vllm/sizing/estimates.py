"""What only a device can measure, estimated from public measurements: each with its bounds and its basis."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from engdiff.engines.sizing import Parallel
from engdiff.geometry import Geometry
from engdiff.schema.values import Evidence, Known, Unknown, Value

MIB, GIB = 2**20, 2**30
FLOAT32 = 4
ACTIVATION_BYTES = 2
"""Of an element of a layer's own tensors, in 16 bits."""

WIDTHS_OF_HIDDEN = 4
"""Tensors of the hidden size that are alive at once: input, residual, norm, output."""

WIDTHS_OF_INNER = 3
"""Tensors of the inner size: gate, way up, and their product (vllm/model_executor/layers/activation.py)."""


@cache
def constants() -> Mapping[str, Any]:
    """Values, bounds and sources, as data."""
    return tomllib.loads(files("engdiff.engines.vllm").joinpath("knowledge/estimates.toml").read_text(encoding="utf-8"))


def estimates(geometry: Geometry, parallel: Parallel, settings: Mapping[str, Any]) -> dict[str, Value]:
    """By the name of the ledger line."""
    return {
        "activation peak": activation(geometry, parallel, settings),
        "outside torch": outside_torch(parallel),
        "graphs": graph_memory(settings),
    }


def activation(geometry: Geometry, parallel: Parallel, settings: Mapping[str, Any]) -> Value:
    """The larger of the layers' own tensors for a full batch and what sampling keeps of the logits."""
    batch, requests = settings.get("scheduler.max_num_batched_tokens"), settings.get("scheduler.max_num_seqs")
    if not isinstance(batch, int) or not isinstance(requests, int):
        return Unknown(because="the limits of a batch are not known")
    config = geometry.config
    inner = config.optional("intermediate_size", "moe_intermediate_size") or 0
    width = WIDTHS_OF_HIDDEN * config.integer("hidden_size") + WIDTHS_OF_INNER * inner // parallel.tensor
    layers = batch * width * ACTIVATION_BYTES
    logits = min(requests, batch) * config.integer("vocab_size") * FLOAT32 * constants()["activation"]["logits_copies"]
    return fitted(max(layers, logits), "activation")


def outside_torch(parallel: Parallel) -> Value:
    """The context of the driver, and buffers of communication where ranks talk."""
    alone = parallel.tensor * parallel.pipeline == 1
    return fitted(constants()["outside_torch"]["alone_gib" if alone else "in_group_gib"] * GIB, "outside_torch")


def graph_memory(settings: Mapping[str, Any]) -> Value:
    """By the number of sizes that are captured."""
    sizes = settings.get("graphs.capture_sizes")
    if not isinstance(sizes, list):
        return Unknown(because="the sizes of graphs are not known")
    return fitted(len(sizes) * constants()["graphs"]["per_size_mib"] * MIB, "graphs")


def fitted(size: float, name: str) -> Known:
    """An estimate with the bounds and the source of its constants."""
    told = constants()[name]
    return Known(
        value=round(size),
        low=size * told["low"],
        high=size * told["high"],
        basis="fitted",
        evidence=Evidence(source="rule", where=told["source"]),
    )
