"""vLLM's own accounting of memory, version by version, without a device: what it would hold, and whether it starts."""
