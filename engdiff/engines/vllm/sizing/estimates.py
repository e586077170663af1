"""What only a device can measure, estimated from public measurements: each with its bounds and its basis."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from engdiff.engines.sizing import Parallel
from engdiff.geometry import Geometry
from engdiff.geometry.config import Config
from engdiff.knowledge.versions import holds
from engdiff.schema.values import Evidence, Known, Unknown, Value
from engdiff.units import GIB

FLOAT32 = 4
ACTIVATION_BYTES = 2
"""Of an element of a layer's own tensors, in 16 bits."""

WIDTHS_OF_HIDDEN = 4
"""Tensors of the hidden size that are alive at once: input, residual, norm, output."""

WIDTHS_OF_INNER = 3
"""Tensors of the inner size: gate, way up, and their product (vllm/model_executor/layers/activation.py)."""


@cache
def table() -> Mapping[str, Any]:
    """Constants, bounds and sources by name, each a list of ranges of releases."""
    return tomllib.loads(files("engdiff.engines.vllm").joinpath("knowledge/estimates.toml").read_text(encoding="utf-8"))


def constants(name: str, version: str) -> Mapping[str, Any]:
    """Those of this release."""
    return next(one for one in table()[name] if holds(version, one.get("since"), one.get("until")))


def estimates(version: str, geometry: Geometry, parallel: Parallel, settings: Mapping[str, Any]) -> dict[str, Value]:
    """By the name of the ledger line."""
    return {
        "activation peak": activation(constants("activation", version), geometry, parallel, settings),
        "outside torch": outside_torch(constants("outside_torch", version), parallel),
        "graphs": graph_memory(constants("graphs", version), geometry, settings),
    }


def activation(told: Mapping[str, Any], geometry: Geometry, parallel: Parallel, settings: Mapping[str, Any]) -> Value:
    """The larger of the layers' own tensors for a full batch and what sampling keeps of the logits."""
    batch, requests = settings.get("scheduler.max_num_batched_tokens"), settings.get("scheduler.max_num_seqs")
    if not isinstance(batch, int) or not isinstance(requests, int):
        return Unknown(because="the limits of a batch are not known")
    layers = batch * width(geometry.config, parallel) * ACTIVATION_BYTES
    logits = min(requests, batch) * geometry.config.integer("vocab_size") * FLOAT32 * told["logits_copies"]
    return fitted(max(layers, logits), told)


def width(config: Config, parallel: Parallel) -> int:
    """Elements that are alive for each token in the widest layer; each expert of a token has its own."""
    hidden = config.integer("hidden_size")
    experts = config.optional("num_experts_per_tok")
    if experts is None:
        inner = WIDTHS_OF_INNER * (config.optional("intermediate_size") or 0) // parallel.tensor
        return WIDTHS_OF_HIDDEN * hidden + inner
    inner = config.optional("moe_intermediate_size", "intermediate_size") or 0
    return WIDTHS_OF_HIDDEN * hidden + experts * (WIDTHS_OF_INNER * inner // parallel.tensor + hidden)


def outside_torch(told: Mapping[str, Any], parallel: Parallel) -> Value:
    """The context of the driver, and buffers of communication where ranks talk."""
    alone = parallel.tensor * parallel.pipeline == 1
    return fitted(told["alone_gib" if alone else "in_group_gib"] * GIB, told)


def graph_memory(told: Mapping[str, Any], geometry: Geometry, settings: Mapping[str, Any]) -> Value:
    """By the number of layers, in proportion to the sizes that are captured."""
    sizes = settings.get("graphs.capture_sizes")
    if not isinstance(sizes, list):
        return Unknown(because="the sizes of graphs are not known")
    of_all = told["base_gib"] + told["per_layer_gib"] * len(geometry.layers)
    return fitted(of_all * GIB * len(sizes) / told["sizes"], told)


def fitted(size: float, told: Mapping[str, Any]) -> Known:
    """An estimate with the bounds and the source of its constants."""
    return Known(
        value=round(size),
        low=size * told["low"],
        high=size * told["high"],
        basis="fitted",
        evidence=Evidence(source="rule", where=told["source"]),
    )
