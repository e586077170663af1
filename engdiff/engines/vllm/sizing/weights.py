"""What vLLM's first rank holds of a model: its tensors as vLLM divides and pads them, rotary caches, and scales."""

from __future__ import annotations

from dataclasses import dataclass

from engdiff.engines.sizing import Parallel
from engdiff.geometry import Geometry
from engdiff.geometry.config import Config
from engdiff.geometry.model import Layer
from engdiff.geometry.quantization import Quantization, element_bytes, quantization, tensor_bytes
from engdiff.geometry.tensors import Split, Tensor

VOCABULARY_MULTIPLE = 64
"""Rows of embeddings and head are padded to it (vllm/model_executor/layers/vocab_parallel_embedding.py, 0.10-0.33)."""

MXFP4_EXPERTS_MULTIPLE = 64
"""To which the inner size of MXFP4 experts on one rank is padded by the default kernels on Hopper
(vllm/model_executor/layers/quantization/mxfp4.py; other kernels pad to 128 or 256)."""

FUSED_UNQUANTISED = "indexer.wk."
"""vLLM fuses this matrix with the one beside it, which is not quantised (vllm/model_executor/models/deepseek_v2.py)."""

SCALES_BYTES = 16
"""Of each layer of attention: scales of queries, keys, values and probabilities, in float32
(vllm/model_executor/layers/attention, counted on the meta device with 0.33.0)."""


@dataclass(frozen=True)
class Weights:
    """Bytes on one rank, by what they are."""

    tensors: int
    rotary: int
    scales: int

    @property
    def total(self) -> int:
        """All of them: what loading the model allocates."""
        return self.tensors + self.rotary + self.scales


def weights(geometry: Geometry, parallel: Parallel) -> Weights:
    """The rank that holds most: with pipeline parallelism the stages differ, and the pool is that of the fullest."""
    return max((of_stage(geometry, parallel, stage) for stage in range(parallel.pipeline)), key=lambda one: one.total)


def of_stage(geometry: Geometry, parallel: Parallel, stage: int) -> Weights:
    """One stage of the pipeline: embeddings are on the first, the head is on the last."""
    layers = stage_layers(geometry, parallel.pipeline, stage)
    tensors: list[Tensor] = [tensor for layer in layers for tensor in layer.tensors]
    tensors += geometry.before if stage == 0 else ()
    tensors += geometry.after if stage == parallel.pipeline - 1 else ()
    if stage == parallel.pipeline - 1 and stage > 0 and len(geometry.after) == 1:
        tensors += [tensor for tensor in geometry.before if tensor.split is Split.VOCABULARY]
    quantised = quantization(geometry.config.whole)
    element = element_bytes(dtype(geometry.config))
    return Weights(
        tensors=sum(on_rank(tensor, parallel, element, quantised) for tensor in tensors),
        rotary=rotary(geometry.config, layers),
        scales=SCALES_BYTES * sum(1 for layer in layers if any(cache.kind != "state" for cache in layer.caches)),
    )


def dtype(config: Config) -> str:
    """What ``--dtype auto`` makes of a checkpoint: silent ones and those in float32 are taken in bfloat16.

    vllm/config/model.py, _resolve_auto_dtype, 0.10-0.33.
    """
    stated = config.element
    return "bfloat16" if stated is None or stated == "float32" else stated


def stage_layers(geometry: Geometry, stages: int, stage: int) -> tuple[Layer, ...]:
    """Layers of a stage; what does not divide goes to the stages before the last.

    vllm/distributed/utils.py, get_pp_indices.
    """
    each, rest = divmod(len(geometry.layers), stages)
    sizes = [each] * stages
    for at in range(2, rest + 2):
        sizes[-at] += 1
    first = sum(sizes[:stage])
    return geometry.layers[first : first + sizes[stage]]


def on_rank(tensor: Tensor, parallel: Parallel, element: int, quantised: Quantization | None) -> int:
    """Bytes of a tensor on one rank."""
    shape = tensor.on_rank(parallel.tensor, rows_of=VOCABULARY_MULTIPLE, experts_whole=parallel.experts)
    if tensor.name.startswith(FUSED_UNQUANTISED):
        return tensor_bytes(tensor, shape, element, None)
    if quantised is not None and quantised.name == "mxfp4" and tensor.split is Split.EXPERTS:
        shape = padded(tensor, shape)
    return tensor_bytes(tensor, shape, element, quantised)


def padded(tensor: Tensor, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Experts in MXFP4 with the inner size that kernels want; gate and way up lie in one tensor, each padded."""
    parts = 2 if "gate_up" in tensor.name else 1
    inner = shape[tensor.axis] // parts
    wide = -(-inner // MXFP4_EXPERTS_MULTIPLE) * MXFP4_EXPERTS_MULTIPLE * parts
    return (*shape[: tensor.axis], wide, *shape[tensor.axis + 1 :])


# --- rotary caches: sines and cosines for every position, made once for all layers that rotate alike ------------


def rotary(config: Config, layers: tuple[Layer, ...]) -> int:
    """Bytes of the caches, by the scaling that the file states.

    vllm/model_executor/layers/rotary_embedding, 0.33.0.
    """
    if config.architecture == "NemotronHForCausalLM":
        return 0
    element = 4 if config.architecture == "GptOssForCausalLM" else element_bytes(dtype(config))
    whole = positions(config) * rotated(config) * element
    return whole + local(config, layers, element) + indexer(config, whole) + vision(config)


def rotated(config: Config) -> int:
    """Elements of a head that are rotated."""
    if stated := config.optional("qk_rope_head_dim", "rotary_dim"):
        return stated
    return int(config.head_dim * config.number("partial_rotary_factor", 1.0))


def positions(config: Config) -> int:
    """Positions in the cache: scaled ones start from the length that the model was trained with."""
    longest = config.integer("max_position_embeddings")
    scaling = config.fields.get("rope_scaling") or {}
    kind = scaling.get("rope_type") or scaling.get("type")
    factor = float(scaling.get("factor") or 1.0)
    if kind == "yarn":
        return int(int(scaling.get("original_max_position_embeddings") or longest) * factor)
    return int(longest * factor) if kind in ("linear", "dynamic") else longest


def local(config: Config, layers: tuple[Layer, ...], element: int) -> int:
    """Gemma 3 rotates the layers with a window by a base of their own, unscaled; Gemma keeps one number beside."""
    if not config.architecture.startswith("Gemma3"):
        return element if config.architecture.startswith("Gemma") else 0
    windows = any(cache.kind == "sliding window" for layer in layers for cache in layer.caches)
    return element + (config.integer("max_position_embeddings") * rotated(config) * element if windows else 0)


def indexer(config: Config, whole: int) -> int:
    """With sparse attention both caches are there in float32: one for the latent vector, one for its index."""
    return 3 * whole if config.optional("index_head_dim") else 0


def vision(config: Config) -> int:
    """Llama 4's tower keeps a complex frequency for each patch and half of a head, SigLIP's one number each."""
    tower = config.whole.get("vision_config") or {}
    if tower.get("model_type") != "llama4_vision_model":
        return 8 * (tower["image_size"] // tower["patch_size"]) ** 2 if "patch_size" in tower else 0
    patches = (tower["image_size"] // tower["patch_size"]) ** 2 + 1
    return int(8 * patches * tower["hidden_size"] // tower["num_attention_heads"] // 2)
