"""Whole logs in the forms of several versions, with numbers of our own."""

from __future__ import annotations

STAMP = "[01/01/2025-00:00:01] [TRT-LLM] "

INFO = "[TensorRT-LLM][INFO] "
WARN = "[TensorRT-LLM][WARNING] "
PROFILING = "in memory usage profiling"

GRAPHS = (8, 4, 2, 1)


def _warm(prefix: str) -> list[str]:
    return [f"{prefix}Creating CUDA graph instances for {len(GRAPHS)} batch sizes."] + [
        f"{prefix}Run generation only CUDA graph warmup for batch size={n}, draft_len=0" for n in GRAPHS
    ]


def _cache(gib: str, tokens: int, blocks: int, window: int) -> list[str]:
    return [
        f"{INFO}Max KV cache blocks per sequence: {-(-window // 32)} [window size={window}], "
        f"tokens per block=32, primary blocks={blocks}, secondary blocks=0, max sequence length={window}",
        f"{INFO}Number of tokens per block: 32.",
        f"{INFO}[MemUsageChange] Allocated {gib} GiB for max tokens in paged KV cache ({tokens}).",
    ]


PYTORCH_CONFIG = (
    "PyTorchConfig(extra_resource_managers={}, use_cuda_graph=True, cuda_graph_batch_sizes=[1, 2, 4, 8], "
    "cuda_graph_max_batch_size=8, cuda_graph_padding_enabled=True, disable_overlap_scheduler=True, "
    "attn_backend='TRTLLM', moe_backend='CUTLASS', sampler_type=<SamplerType.auto: 'auto'>, kv_cache_dtype='auto', "
    "mamba_ssm_cache_dtype='auto', load_format=<LoadFormat.AUTO: 0>, stream_interval=1)"
)

FEATURES = (
    "AttentionRuntimeFeatures(chunked_prefill=False, cache_reuse=True, has_speculative_draft_tokens=False, "
    "chunk_size=4096)"
)

LLM_ARGS = (
    "model='org/name' tokenizer=None tokenizer_mode='auto' trust_remote_code=False tensor_parallel_size=2 dtype='auto' "
    "revision=None pipeline_parallel_size=1 moe_expert_parallel_size=-1 enable_lora=False lora_config=None "
    "kv_cache_config=KvCacheConfig(enable_block_reuse=True, max_tokens=None, max_attention_window=None, "
    "free_gpu_memory_fraction=0.85, host_cache_size=0, dtype='fp8', tokens_per_block=32, max_gpu_total_bytes=0) "
    "scheduler_config=SchedulerConfig(capacity_scheduler_policy=<CapacitySchedulerPolicy.GUARANTEED_NO_EVICT: "
    "'GUARANTEED_NO_EVICT'>, context_chunking_policy=None, dynamic_batch_config=None) max_batch_size=8 "
    "max_seq_len=None max_num_tokens=4096 cuda_graph_config=CudaGraphConfig(batch_sizes=[1, 2, 4, 8], "
    "max_batch_size=8, enable_padding=True) attn_backend='TRTLLM' disable_overlap_scheduler=False "
    "enable_chunked_prefill=False moe_config=MoeConfig(backend='AUTO', load_balancer=None) stream_interval=1"
)


def pytorch(*, ready: bool = True) -> list[str]:
    """1.1, one GPU: the first allocation is the profiling pass."""
    lines = [
        "[TensorRT-LLM] TensorRT-LLM version: 1.1.0rc3",
        f"{STAMP}[I] Using LLM with PyTorch backend",
        "[TensorRT-LLM] TensorRT-LLM version: 1.1.0rc3",
        f"{STAMP}[I] {PYTORCH_CONFIG}",
        f"{STAMP}[I] ATTENTION RUNTIME FEATURES:  {FEATURES}",
        f'{STAMP}[I] KV cache quantization set to "auto". Using checkpoint KV quantization.',
        f"{STAMP}[I] Use 14.96 GB for model weights.",
        "Loading weights: 100%|##########| 801/801 [00:46<00:00, 17.29it/s]",
        "Model init total -- 21.14s",
        f"{STAMP}[I] max_seq_len is not specified, using inferred value 131072",
        f"{STAMP}[I] Using Sampler: TorchSampler",
        f"{STAMP}[W] Both free_gpu_memory_fraction and max_tokens are set (to 0.8999999761581421 and 4128, "
        "respectively). The smaller value will be used.",
        *_cache("0.50", 4128, 129, 4128),
        f"{STAMP}[I] max_seq_len=4128, max_num_requests=8, max_num_tokens=4096, max_batch_size=8",
        f"{STAMP}[I] [Autotuner] Autotuning process starts ...",
        "2025-01-01 00:00:02,000 - INFO - flashinfer.jit: Loading JIT ops: norm",
        f"{STAMP}[I] [Autotuner] Autotuning process ends",
        *_warm(f"{STAMP}[I] "),
        f"{STAMP}[I] Memory used after loading model weights (inside torch) {PROFILING}: 15.20 GiB",
        f"{STAMP}[I] Memory used after loading model weights (outside torch) {PROFILING}: 1.10 GiB",
        f"{STAMP}[I] Memory dynamically allocated during inference (inside torch) {PROFILING}: 0.85 GiB",
        f"{STAMP}[I] Memory used outside torch (e.g., NCCL and CUDA graphs) {PROFILING}: 1.30 GiB",
        f"{STAMP}[I] Peak memory during memory usage profiling (torch + non-torch): 17.35 GiB, available KV cache "
        "memory when calculating max tokens: 55.93 GiB, fraction is set 0.8999999761581421, kv size is 131072. device "
        "total memory 79.00 GiB, , tmp kv_mem 0.50 GiB",
        f"{STAMP}[I] Estimated max memory in KV cache : 55.93 GiB",
        *_cache("55.93", 458176, 14318, 131073),
        f"{STAMP}[I] max_seq_len=131073, max_num_requests=8, max_num_tokens=4096, max_batch_size=8",
        *_warm(f"{STAMP}[I] "),
        f"{STAMP}[I] Setting PyTorch memory fraction to 0.2500000000000000 (19.7500000000000 GiB)",
    ]
    if ready:
        lines += [
            "INFO:     Started server process [41]",
            "INFO:     Application startup complete.",
            "INFO:     Uvicorn running on http://0.0.0.0:8000 (Press CTRL+C to quit)",
        ]
    return lines


def ranks() -> list[str]:
    """1.3, two GPUs: the Python side names its rank, the C++ side does not."""
    lines = ["[TensorRT-LLM] TensorRT LLM version: 1.3.0rc7", f"{STAMP}[I] Using LLM with PyTorch backend"]
    sizes = {0: ("15.20", "40.01"), 1: ("15.10", "40.20")}
    for gib, tokens, blocks in (("0.25", 4128, 129), ("40.01", 655488, 20484)):
        if blocks != 129:
            for rank, (weights, free) in sizes.items():
                stamp = f"{STAMP}[RANK {rank}] [I] "
                lines += [
                    f"{stamp}Memory used after loading model weights (inside torch) {PROFILING}: {weights} GiB",
                    f"{stamp}Peak memory during memory usage profiling (torch + non-torch): 33.00 GiB, available KV "
                    f"cache memory when calculating max tokens: {free} GiB, fraction is set 0.85, kv size per token is "
                    "65536. device total memory 79.00 GiB, temporary kv cache memory during profiling 0.25 GiB",
                    f"{stamp}Estimated max memory in KV cache : {free} GiB",
                ]
        for _ in sizes:
            lines += _cache(gib, tokens, blocks, 8192)
        for rank in sizes:
            lines += _warm(f"{STAMP}[RANK {rank}] [I] ")
    lines += [
        f"{STAMP}[RANK 0] [I] LLM Args:",
        f" {LLM_ARGS}",
        f"{STAMP}[RANK 0] [I] Setting PyTorch memory fraction to 0.30 (23.70 GiB)",
        f"{STAMP}[RANK 1] [I] Setting PyTorch memory fraction to 0.31 (24.49 GiB)",
        "INFO:     Application startup complete.",
    ]
    return lines


def triton() -> list[str]:
    """0.8 inside Triton: bytes, and its tables between the lines."""
    return [
        "I0101 00:00:00.000000 1 pinned_memory_manager.cc:275] Pinned memory pool is created at '0x7f' with size 268",
        f"{WARN}enable_chunked_context is not specified, will be set to false.",
        f"{WARN}Decoupled mode with a batch scheduler policy other than guaranteed_no_evict requires "
        "building the model with use_paged_context_fmha and setting enable_chunked_context to true. The batch "
        "scheduler policy will be set to guaranteed_no_evict since enable_chunked_context is false.",
        f"{WARN}kv_cache_free_gpu_mem_fraction is not specified, will use default value of 0.9 or "
        "max_tokens_in_paged_kv_cache",
        f"{WARN}enable_kv_cache_reuse is not specified, will be set to false",
        f"{INFO}Engine version 0.8.0 found in the config file, assuming engine(s) built by new builder API.",
        f"{INFO}MPI size: 1, rank: 0",
        f"{INFO}Rank 0 is using GPU 0",
        "I0101 00:00:01.000000 1 model_lifecycle.cc:827] successfully loaded 'preprocessing'",
        f"{INFO}TRTGptModel maxNumSequences: 40",
        f"{INFO}TRTGptModel maxBatchSize: 40",
        f"{INFO}TRTGptModel mMaxAttentionWindowSize: 2048",
        f"{INFO}Loaded engine size: 15319 MiB",
        f"{INFO}[MemUsageChange] Init cuBLAS/cuBLASLt: CPU +0, GPU +8, now: CPU 15361, GPU 15671 (MiB)",
        f"{INFO}Allocate 4143972352 bytes for k/v cache. ",
        f"{INFO}Using 31616 total tokens in paged KV cache, and 16 blocks per sequence",
        "I0101 00:00:02.000000 1 model_lifecycle.cc:827] successfully loaded 'tensorrt_llm'",
        "+----------------+---------+--------+",
        "| tensorrt_llm   | 1       | READY  |",
        "+----------------+---------+--------+",
        "I0101 00:00:03.000000 1 metrics.cc:877] Collecting metrics for GPU 0: NVIDIA GeForce RTX 3090",
        "I0101 00:00:04.000000 1 http_server.cc:4623] Started HTTPService at 0.0.0.0:8000",
    ]


def engine() -> list[str]:
    """0.12: GB of the C++ runtime are powers of 1024."""
    return [
        f"{INFO}Engine version 0.12.0 found in the config file, assuming engine(s) built by new builder API.",
        f"{INFO}MPI size: 1, MPI local size: 1, rank: 0",
        f"{INFO}Rank 0 is using GPU 0",
        f"{INFO}TRTGptModel maxNumSequences: 4096",
        f"{INFO}TRTGptModel maxBatchSize: 4096",
        f"{INFO}TRTGptModel maxSequenceLen: 4098",
        f"{INFO}TRTGptModel enableTrtOverlap: 0",
        f"{INFO}TRTGptModel maxNumTokens: 8192",
        f"{INFO}TRTGptModel maxInputLen: 4097  = maxSequenceLen - 1 since chunked context is enabled",
        f"{INFO}Capacity Scheduler Policy: GUARANTEED_NO_EVICT",
        f"{INFO}Context Chunking Scheduler Policy: FIRST_COME_FIRST_SERVED",
        f"{INFO}Loaded engine size: 6214 MiB",
        f"{INFO}[MemUsageChange] Allocated 928.77 MiB for execution context memory.",
        f"{INFO}[MemUsageChange] Allocated 1.14 GB GPU memory for runtime buffers.",
        f"{INFO}[MemUsageChange] Allocated 43.50 MB GPU memory for decoder.",
        f"{INFO}Memory usage when calculating max tokens in paged kv cache: total: 79.10 GiB, available: 63.62 GiB",
        f"{INFO}Number of blocks in KV cache primary pool: 4607",
        f"{INFO}Number of blocks in KV cache secondary pool: 0, onboard blocks to primary memory before reuse: true",
        f"{INFO}Max KV cache pages per sequence: 65",
        f"{INFO}Number of tokens per block: 64.",
        f"{INFO}[MemUsageChange] Allocated 62.99 GiB for max tokens in paged KV cache (294848).",
    ]
