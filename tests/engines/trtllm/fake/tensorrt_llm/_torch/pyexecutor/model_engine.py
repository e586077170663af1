# ruff: noqa: TID252 - a package of its own, which mypy finds only below tests/
from __future__ import annotations

from types import SimpleNamespace

from ...llmapi.llm_args import TorchLlmArgs
from ..attention_backend import TrtllmAttention


class PyTorchModelEngine:
    def __init__(self, args: TorchLlmArgs) -> None:
        graphs = args.cuda_graph_config
        self.batch_size = args.max_batch_size
        self.attn_backend = TrtllmAttention
        self.attn_runtime_features = SimpleNamespace(chunked_prefill=args.enable_chunked_prefill, chunk_size=8192)
        self._cuda_graph_padding_enabled = bool(graphs and graphs.enable_padding)
        self._cuda_graph_batch_sizes = [
            size for size in (graphs.batch_sizes or () if graphs else ()) if size <= (args.max_batch_size or 0)
        ]
