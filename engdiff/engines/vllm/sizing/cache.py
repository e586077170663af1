"""How vLLM divides the memory of its KV cache: pages, groups of layers, blocks, and what one request takes of them.

vllm/v1/core/kv_cache_utils.py (kv_cache_planning.py from 0.33) and vllm/v1/kv_cache_interface.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import lcm

from engdiff.engines.sizing import Deployment
from engdiff.engines.vllm.sizing.weights import dtype, stage_layers
from engdiff.errors import UsageError
from engdiff.geometry.cache import StateCache, TokenCache
from engdiff.geometry.quantization import element_bytes
from engdiff.knowledge.versions import holds

ALIGNMENT = 16
"""Tokens: the smallest block of the default attention kernels, to a multiple of which hybrid models' blocks grow."""

CHUNKS_SINCE = "0.33.0"
"""From here on blocks are multiples of a chunk of the gated delta rule as well, where states are kept at block
boundaries (``get_mamba_prefill_checkpoint_alignment``, vllm/platforms/interface.py)."""

CHUNK_TOKENS = 64
"""Of the kernels for the gated delta rule (vllm/v1/attention/backends/gdn_attn.py)."""

PADDED_SINCE = "0.18.0"
"""From here on groups grow to the largest when it is less than half as large again, before a quarter
(``max_num_layers < min_num_layers * 1.5``; 1.25 up to 0.17.1)."""

IN_FLIGHT_SINCE = "0.26.0"
"""From here on layers with a window keep room for every batch in flight (``max_in_flight_tokens``)."""

MAMBA_CHECKPOINTS_SINCE, DELTA_CHECKPOINTS_SINCE = "0.32.0", "0.33.0"
"""From here on a request with aligned states keeps one more, written inside its prompt
(``num_prefill_checkpoint_blocks``; vllm/model_executor/layers/mamba/mamba_mixer2.py,
vllm/v1/attention/backends/gdn_attn.py)."""

FLOAT32_STATES = {"NemotronHForCausalLM": "0.13.0"}
"""Families whose recurrence is kept in float32 where the file says nothing, and since when
(vllm/model_executor/models/config.py, DEFAULT_MAMBA_SSM_CACHE_DTYPE)."""

KV_BYTES: Mapping[str, int] = {"fp8": 1, "fp8_e4m3": 1, "fp8_e5m2": 1, "fp8_inc": 1}
"""Bytes of an element by ``--kv-cache-dtype``; another name is that of an element type."""


@dataclass(frozen=True)
class Spec:
    """What one layer asks of the cache (``KVCacheSpec``)."""

    kind: str
    block_tokens: int
    page_bytes: int
    window: int | None = None
    of_all_layers: bool = False
    """Whether the page is that of all layers of its group together."""


@dataclass(frozen=True)
class CacheGroup:
    """Layers that share a table of blocks."""

    spec: Spec
    layers: int

    @property
    def block_bytes(self) -> int:
        """A block of all its layers."""
        return self.spec.page_bytes if self.spec.of_all_layers else self.spec.page_bytes * self.layers


@dataclass(frozen=True)
class Plan:
    """The groups of a rank and what a block of all of them takes."""

    groups: tuple[CacheGroup, ...]
    block_bytes: int

    def blocks(self, available_bytes: int) -> int:
        """Whole blocks in this much memory."""
        return max(0, available_bytes // self.block_bytes)


def plan(deployment: Deployment) -> Plan:
    """Groups as the engine core makes them for the fullest stage of the pipeline."""
    found = specs(deployment)
    kinds: dict[Spec, int] = {}
    for spec in found:
        kinds[spec] = kinds.get(spec, 0) + 1
    if not kinds:
        raise UsageError("this model keeps no cache", "there is no budget of a cache to make")
    if len(kinds) == 1:
        ((spec, layers),) = kinds.items()
        return Plan((CacheGroup(spec, layers),), spec.page_bytes * layers)
    if len({spec.page_bytes for spec in kinds}) > 1:
        return several_sizes(kinds)
    size = group_size(list(kinds.values()), deployment.version)
    groups = tuple(CacheGroup(spec, count) for spec, layers in kinds.items() for count in split(layers, size))
    page = next(iter(kinds)).page_bytes
    return Plan(groups, page * max(group.layers for group in groups))


def several_sizes(kinds: Mapping[Spec, int]) -> Plan:
    """Layers of one kind whose pages differ in size are one group, with a page of each (UniformTypeKVCacheSpecs)."""
    blocks = {spec.block_tokens for spec in kinds}
    if len(blocks) > 1 or any(spec.window for spec in kinds):
        raise UsageError(
            "layers of several kinds have pages of several sizes, and how this release packs them is not understood",
            "simulate it: engdiff capture vllm@VERSION --simulate GPU --model MODEL -- --kv-cache-memory-bytes SIZE",
        )
    page = sum(spec.page_bytes * layers for spec, layers in kinds.items())
    whole = Spec("mla", blocks.pop(), page, of_all_layers=True)
    return Plan((CacheGroup(whole, sum(kinds.values())),), page)


def group_size(layers: Sequence[int], version: str) -> int:
    """Layers of a group: those of the rarest kind, or of the commonest when there are hardly more."""
    least, most = min(layers), max(layers)
    play = 1.5 if holds(version, since=PADDED_SINCE) else 1.25
    return most if most < least * play else least


def split(layers: int, size: int) -> Iterable[int]:
    """Layers of one kind over as many groups as it takes, in turn."""
    groups = -(-layers // size)
    return (len(range(at, layers, groups)) for at in range(groups))


# --- pages ------------------------------------------------------------------------------------------------------


def specs(deployment: Deployment) -> list[Spec]:
    """What each layer of the fullest stage asks for, once pages are of one size."""
    stages = deployment.parallel.pipeline
    layers = max((stage_layers(deployment.geometry, stages, at) for at in range(stages)), key=len)
    caches = [cache for layer in layers for cache in layer.caches]
    tokens = [cache for cache in caches if isinstance(cache, TokenCache)]
    states = [cache for cache in caches if isinstance(cache, StateCache)]
    block = block_tokens(deployment, tokens, states)
    found = [attention_spec(deployment, cache, block) for cache in tokens]
    if not states:
        return found
    page = max((spec.page_bytes for spec in found), default=0)
    size = max(page, *(state_bytes(deployment, state) for state in states))
    return [*(Spec("state", block, size) for _ in states), *found]


def attention_spec(deployment: Deployment, cache: TokenCache, block: int) -> Spec:
    """A page of keys and values; what an index keeps of a token is bytes with a scale for each 128."""
    if cache.kind == "indexer":
        return Spec("mla", block, block * (cache.key_dim + 4 * -(-cache.key_dim // 128)))
    window = cache.window if deployment.settings.get("kv.hybrid_manager_disabled") is not True else None
    kind = cache.kind if window or cache.kind == "mla" else "full"
    return Spec(kind, block, block * token_bytes(deployment, cache), window)


def token_bytes(deployment: Deployment, cache: TokenCache) -> int:
    """Bytes that one rank keeps of a token in one layer."""
    return cache.elements(deployment.parallel.tensor) * kv_element_bytes(deployment)


def kv_element_bytes(deployment: Deployment) -> int:
    """Bytes of an element of the cache."""
    name = str(deployment.settings.get("kv.dtype") or "auto")
    if name == "auto":
        return element_bytes(model_dtype(deployment))
    return KV_BYTES.get(name) or element_bytes(name)


def model_dtype(deployment: Deployment) -> str:
    """Element type that the model runs in."""
    stated = str(deployment.settings.get("model.dtype") or "auto")
    return dtype(deployment.geometry.config) if stated == "auto" else stated


def state_bytes(deployment: Deployment, state: StateCache) -> int:
    """Bytes of the state of one layer on one rank: the convolution's and the recurrence's."""
    element = element_bytes(model_dtype(deployment))
    convolution, recurrence = state.sizes(deployment.parallel.tensor)
    return convolution * element + recurrence * (4 if float32_state(deployment) else element)


def float32_state(deployment: Deployment) -> bool:
    """Whether the recurrence is kept in float32: as the file states, else as the family's rule says."""
    config = deployment.geometry.config
    if stated := config.fields.get("mamba_ssm_cache_dtype"):
        return bool(stated == "float32")
    since = FLOAT32_STATES.get(config.architecture)
    return since is not None and holds(deployment.version, since=since)


def block_tokens(deployment: Deployment, tokens: Sequence[TokenCache], states: Sequence[StateCache]) -> int:
    """Tokens of a block: as configured, or grown until a page holds the state of a layer."""
    configured = deployment.whole("kv.block_size")
    if not states or not tokens:
        return configured
    align = lcm(configured, CHUNK_TOKENS) if in_chunks(deployment, states[0]) else configured
    page, state = token_bytes(deployment, tokens[0]), max(state_bytes(deployment, one) for one in states)
    return max(configured, align * -(-state // (align * page)))


def in_chunks(deployment: Deployment, state: StateCache) -> bool:
    """Whether blocks align with chunks of the recurrence."""
    aligned = deployment.settings.get("kv.mamba_cache_mode") == "align"
    return aligned and state.delta_rule and holds(deployment.version, since=CHUNKS_SINCE)


# --- what one request takes -------------------------------------------------------------------------------------


def blocks_of_request(deployment: Deployment, made: Plan, length: int) -> int:
    """Blocks of a request of ``length`` tokens, over all groups."""
    return sum(blocks_in_group(deployment, group, length) for group in made.groups)


def blocks_in_group(deployment: Deployment, group: CacheGroup, length: int) -> int:
    """One state, all tokens, or those that a window still needs with those in flight."""
    spec = group.spec
    if spec.kind == "state":
        return states_of_request(deployment)
    if spec.window is None:
        return -(-length // spec.block_tokens)
    flight = in_flight(deployment)
    if spec.kind == "chunked":
        return -(-min(spec.window + flight, length) // spec.block_tokens)
    return -(-min(spec.window - 1 + flight, length) // spec.block_tokens) + 1


def states_of_request(deployment: Deployment) -> int:
    """Blocks of a layer's state for one request; kept at block boundaries, the last one beside the running one."""
    if deployment.settings.get("kv.mamba_cache_mode") != "align":
        return 1
    delta = any(isinstance(kept, StateCache) and kept.delta_rule for kept in deployment.geometry.caches)
    since = DELTA_CHECKPOINTS_SINCE if delta else MAMBA_CHECKPOINTS_SINCE
    return 3 if holds(deployment.version, since=since) else 2


def in_flight(deployment: Deployment) -> int:
    """Tokens that are scheduled and not yet settled."""
    batch = deployment.whole("scheduler.max_num_batched_tokens")
    if not holds(deployment.version, since=IN_FLIGHT_SINCE):
        return batch
    overlapped = 2 if deployment.settings.get("scheduler.async_scheduling") else 1
    return batch * max(deployment.parallel.pipeline, overlapped)


def concurrency(deployment: Deployment, made: Plan, blocks: int, length: int) -> float:
    """Requests of ``length`` tokens that the pool holds at once, as the engine counts them."""
    return blocks / blocks_of_request(deployment, made, length)


def kept_of_token(deployment: Deployment) -> Mapping[str, int]:
    """Bytes that one rank keeps of a token, by kind of layer, over all its layers."""
    found: dict[str, int] = {}
    for kept in deployment.geometry.caches:
        if isinstance(kept, TokenCache):
            found[kept.kind] = found.get(kept.kind, 0) + attention_spec(deployment, kept, 1).page_bytes
    return found
