"""A small Llama with random weights, in Hugging Face's names and row order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from engdiff.models.tensors import Tensor, keep_rows, ones, uniform

# Standard deviation of a logit. At this size the likeliest token leads by enough that even sampling at temperature 1
# hardly ever picks one of the tokens whose logit is zero.
_LOGIT_DEVIATION = 8.0


@dataclass(frozen=True)
class LlamaShape:
    """Sizes of a Llama; ``context`` in tokens."""

    vocabulary: int
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    feed_forward: int
    context: int
    norm_epsilon: float
    rope_base: float

    @property
    def head_size(self) -> int:
        """Elements in one head."""
        return self.hidden // self.heads

    def kv_bytes_per_token(self, element_bytes: int = 2) -> int:
        """Bytes of keys and values that one token of context takes in all layers together."""
        return 2 * self.layers * self.kv_heads * self.head_size * element_bytes


def random_weights(shape: LlamaShape, speakable: Iterable[int], seed: int) -> list[Tensor]:
    """Draw all weights, in F16; the output row of every token id that is not ``speakable`` is zero."""

    def matrix(name: str, rows: int, columns: int, deviation: float = 1.0) -> Tensor:
        """Shape ``(rows, columns)``: each output has ``deviation`` when the inputs have standard deviation 1."""
        return uniform(name, (rows, columns), deviation * columns**-0.5, seed)

    hidden, feed_forward = shape.hidden, shape.feed_forward
    kv_size = shape.kv_heads * shape.head_size
    tensors = [uniform("model.embed_tokens.weight", (shape.vocabulary, hidden), 1.0, seed)]
    for layer in range(shape.layers):
        prefix = f"model.layers.{layer}."
        tensors += [
            ones(prefix + "input_layernorm.weight", hidden, "F16"),
            matrix(prefix + "self_attn.q_proj.weight", hidden, hidden),
            matrix(prefix + "self_attn.k_proj.weight", kv_size, hidden),
            matrix(prefix + "self_attn.v_proj.weight", kv_size, hidden),
            matrix(prefix + "self_attn.o_proj.weight", hidden, hidden),
            ones(prefix + "post_attention_layernorm.weight", hidden, "F16"),
            matrix(prefix + "mlp.gate_proj.weight", feed_forward, hidden),
            matrix(prefix + "mlp.up_proj.weight", feed_forward, hidden),
            matrix(prefix + "mlp.down_proj.weight", hidden, feed_forward),
        ]
    output = matrix("lm_head.weight", shape.vocabulary, hidden, _LOGIT_DEVIATION)
    return [*tensors, ones("model.norm.weight", hidden, "F16"), keep_rows(output, speakable)]
