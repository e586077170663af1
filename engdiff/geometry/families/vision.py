"""Vision towers of multimodal models (transformers 4.57, models/siglip, models/llama4)."""

from __future__ import annotations

from typing import Any

from engdiff.geometry.config import Config
from engdiff.geometry.families import parts
from engdiff.geometry.families.parts import Tensors
from engdiff.geometry.tensors import Split, Tensor


def siglip(config: Config) -> Tensors:
    """SigLIP with Gemma's projector; nothing for a model without a tower."""
    part = config.whole.get("vision_config")
    if not part:
        return ()
    tower = vision(config)
    size, inner = tower.integer("hidden_size"), tower.integer("intermediate_size")
    patch = tower.integer("patch_size")
    places = (tower.integer("image_size") // patch) ** 2
    text = config.integer("hidden_size")
    return (
        Tensor("patch_embedding.weight", (size, 3, patch, patch)),
        Tensor("patch_embedding.bias", (size,)),
        Tensor("position_embedding.weight", (places, size)),
        *(block(size, inner) * tower.integer("num_hidden_layers")),
        *both("post_layernorm", size),
        Tensor("mm_input_projection_weight", (size, text)),
        parts.norm("mm_soft_emb_norm.weight", size),
    )


def llama4(config: Config) -> Tensors:
    """Llama 4's tower with the projector that shuffles pixels."""
    part = config.whole.get("vision_config")
    if not part:
        return ()
    tower = vision(config)
    size, inner = tower.integer("hidden_size"), tower.integer("intermediate_size")
    patch, image = tower.integer("patch_size"), tower.integer("image_size")
    out = tower.integer("vision_output_dim")
    wide, middle = tower.integer("projector_input_dim"), tower.integer("projector_output_dim")
    shuffled = round(size / tower.number("pixel_shuffle_ratio", 0.5) ** 2)
    return (
        *parts.linear("patch_embedding.linear", size, 3 * patch * patch, Split.EVEN),
        Tensor("class_embedding", (size,)),
        Tensor("positional_embedding_vlm", ((image // patch) ** 2 + 1, size)),
        *both("layernorm_pre", size),
        *(block(size, inner) * tower.integer("num_hidden_layers")),
        *both("layernorm_post", size),
        *parts.linear("vision_adapter.mlp.fc1", wide, shuffled, Split.EVEN),
        *parts.back("vision_adapter.mlp.fc2", middle, wide),
        *parts.linear("multi_modal_projector.linear_1", config.integer("hidden_size"), out, Split.EVEN),
    )


def vision(config: Config) -> Config:
    """The tower's own part of the configuration."""
    part: dict[str, Any] = dict(config.whole["vision_config"])
    return Config(part, config.architecture, part)


def block(size: int, inner: int) -> Tensors:
    """A layer of an encoder: attention of all heads and a feed-forward block, all with biases and whole norms."""
    return (
        *both("layer_norm1", size),
        *(tensor for name in "qkv" for tensor in parts.linear(f"{name}_proj", size, size, Split.EVEN, bias=True)),
        *parts.back("out_proj", size, size, bias=True),
        *both("layer_norm2", size),
        *parts.linear("fc1", inner, size, Split.EVEN, bias=True),
        *parts.back("fc2", size, inner, bias=True),
    )


def both(name: str, size: int) -> Tensors:
    """A norm with weights and a bias."""
    return parts.norm(f"{name}.weight", size), parts.norm(f"{name}.bias", size)
