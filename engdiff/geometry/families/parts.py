"""What decoders are put together from: embeddings, attention, feed-forward blocks and experts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from engdiff.geometry.cache import TokenCache
from engdiff.geometry.config import Config
from engdiff.geometry.model import Geometry, Layer
from engdiff.geometry.tensors import Split, Tensor

Tensors = tuple[Tensor, ...]


def norm(name: str, size: int) -> Tensor:
    """The weights of a normalisation."""
    return Tensor(name, (size,))


def linear(name: str, out: int, into: int, split: Split, *, heads: int = 0, bias: bool = False) -> Tensors:
    """A linear layer whose output is divided: its matrix, and its bias where it has one."""
    matrix = Tensor(f"{name}.weight", (out, into), split, heads=heads, linear=True)
    return (matrix, Tensor(f"{name}.bias", (out,), split, heads=heads)) if bias else (matrix,)


def back(name: str, out: int, into: int, *, bias: bool = False) -> Tensors:
    """A linear layer whose input is divided, so that ranks add up what comes out: each has the whole bias."""
    matrix = Tensor(f"{name}.weight", (out, into), Split.EVEN, axis=1, linear=True)
    return (matrix, Tensor(f"{name}.bias", (out,))) if bias else (matrix,)


def decoder(
    config: Config, layers: Sequence[Layer], *, tower: Tensors = (), not_counted: Iterable[str] = ()
) -> Geometry:
    """Embeddings, layers, a final norm and a head; no head where it is tied to the embeddings.

    ``tower``: what turns images into tokens, in front of it all.
    """
    size = config.integer("hidden_size")
    table = (config.integer("vocab_size"), size)
    tied = config.flag("tie_word_embeddings", default=False)
    head = () if tied else (Tensor("lm_head.weight", table, Split.VOCABULARY),)
    return Geometry(
        config=config,
        layers=tuple(layers),
        before=(
            *tower,
            Tensor("embed_tokens.weight", table, Split.VOCABULARY),
        ),
        after=(norm("norm.weight", size), *head),
        not_counted=tuple(not_counted),
    )


def attention(config: Config, *, bias: bool = False, output_bias: bool | None = None, gated: bool = False) -> Tensors:
    """Grouped-query attention: queries, keys, values and the output. ``gated``: queries come with a gate."""
    size, heads, kv, dim = (
        config.integer("hidden_size"),
        config.integer("num_attention_heads"),
        config.kv_heads,
        config.head_dim,
    )
    return (
        *linear("q_proj", heads * dim * (2 if gated else 1), size, Split.EVEN, bias=bias),
        *linear("k_proj", kv * dim, size, Split.KV_HEADS, heads=kv, bias=bias),
        *linear("v_proj", kv * dim, size, Split.KV_HEADS, heads=kv, bias=bias),
        *back("o_proj", size, heads * dim, bias=bias if output_bias is None else output_bias),
    )


def head_norms(config: Config) -> Tensors:
    """Norms of queries and keys, head by head."""
    return norm("q_norm.weight", config.head_dim), norm("k_norm.weight", config.head_dim)


def keys_and_values(config: Config, *, window: int | None = None, chunk: int | None = None) -> TokenCache:
    """The cache of a layer of grouped-query attention."""
    kind = "sliding window" if window else "chunked" if chunk else "full"
    return TokenCache(kind, config.kv_heads, config.head_dim, config.head_dim, window or chunk)  # type: ignore[arg-type]


def mlp(size: int, inner: int, *, prefix: str = "", gated: bool = True, bias: bool = False) -> Tensors:
    """A feed-forward block; ``gated``: with a gate beside its way up."""
    gate = linear(f"{prefix}gate_proj", inner, size, Split.EVEN, bias=bias) if gated else ()
    return (
        *gate,
        *linear(f"{prefix}up_proj", inner, size, Split.EVEN, bias=bias),
        *back(f"{prefix}down_proj", size, inner, bias=bias),
    )


def experts(count: int, size: int, inner: int, *, bias: bool = False) -> Tensors:
    """The experts that a router chooses from, each a gated feed-forward block."""
    up, down = (count, 2 * inner, size), (count, size, inner)
    weights = (
        Tensor("experts.gate_up_proj.weight", up, Split.EXPERTS, axis=1, linear=True),
        Tensor("experts.down_proj.weight", down, Split.EXPERTS, axis=2, linear=True),
    )
    if not bias:
        return weights
    return (
        *weights,
        Tensor("experts.gate_up_proj.bias", up[:2], Split.EXPERTS, axis=1),
        Tensor("experts.down_proj.bias", down[:2]),
    )


def router(count: int, size: int, *, element: str | None = None) -> Tensor:
    """The router: every rank scores every expert."""
    return Tensor("gate.weight", (count, size), element=element)


def around(config: Config, *inner: Tensors) -> Tensors:
    """A layer's tensors between the two norms that most decoders have."""
    size = config.integer("hidden_size")
    flat = tuple(tensor for group in inner for tensor in group)
    return (norm("input_layernorm.weight", size), *flat, norm("post_attention_layernorm.weight", size))


def count(config: Config) -> int:
    """Layers of the decoder."""
    return config.integer("num_hidden_layers")


AHEAD = "layers that predict several tokens ahead ({count})"


def predicts_ahead(config: Config) -> tuple[str, ...]:
    """Layers for speculative decoding that a checkpoint holds and a plain start does not load."""
    ahead = config.optional("num_nextn_predict_layers", "num_mtp_modules") or 0
    return (AHEAD.format(count=ahead),) if ahead else ()
