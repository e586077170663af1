"""What runs in the containers of these tests: a llama-server that repeats a log, and a vLLM that can be probed."""

from __future__ import annotations

from pathlib import Path

SERVE = r"""
import http.server, json, os, signal, sys, threading

def serve(answers, host, port):
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            body = answers.get(self.path)
            self.send_response(200 if body is not None else 404)
            self.end_headers()
            self.wfile.write((body if isinstance(body, str) else json.dumps(body)).encode())
        def log_message(self, *_):
            pass
    assert host == ("127.0.0.1" if "OUTSIDE" in os.environ else "0.0.0.0"), host
    server = http.server.ThreadingHTTPServer(("127.0.0.1", int(port)), Handler)  # as published outside
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        print("stopped politely", flush=True)
"""

LLAMA_SERVER = (
    SERVE
    + r"""
words = sys.argv[1:]
value = lambda name: words[words.index(name) + 1]
sys.stderr.write(open(os.environ["LOG_TO_REPEAT"]).read())
if "--die" in words:
    sys.exit(3)
if "--crash" in words:
    os.kill(os.getpid(), signal.SIGILL)
if "--stubborn" in words:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
props = {"default_generation_settings": {"n_ctx": 8192, "params": {"temperature": 0.8}}, "total_slots": 1,
         "model_path": value("-m"), "build_info": "b6105-d2c0ffee"}
serve({"/health": {"status": "ok"}, "/props": props, "/v1/models": {"data": [{"id": "m", "owned_by": "llamacpp"}]},
       "/metrics": "llamacpp:prompt_tokens_total 0\n", "/slots": []}, value("--host"), value("--port"))
"""
)

VLLM = {
    "vllm/__init__.py": "__version__ = '0.33.0'\n",
    "vllm/_version.py": "__commit_id__ = 'gabc1234'\n",
    "vllm/utils/__init__.py": "",
    "vllm/utils/argparse_utils.py": "from argparse import ArgumentParser as FlexibleArgumentParser\n",
    "vllm/entrypoints/__init__.py": "",
    "vllm/entrypoints/openai/__init__.py": "",
    "vllm/entrypoints/openai/cli_args.py": """
def make_arg_parser(parser):
    parser.add_argument("--model", default="none")
    parser.add_argument("--max-num-seqs", type=int, default=256)
    parser.add_argument("--host", default=None)
    parser.add_argument("--port", default=8000)
    parser.add_argument("--config", default=None)
    return parser
""",
    "vllm/envs.py": "environment_variables = {}\n",
    "vllm/v1/__init__.py": "",
    "vllm/v1/engine/__init__.py": "",
    "vllm/v1/engine/core.py": """
class EngineCore:
    def run_busy_loop(self):
        pass
""",
    "vllm/entrypoints/openai/api_server.py": SERVE
    + r"""
import dataclasses, importlib.metadata, types
import vllm._version
from vllm.entrypoints.openai.cli_args import make_arg_parser
from vllm.utils.argparse_utils import FlexibleArgumentParser
from vllm.v1.engine import core

@dataclasses.dataclass
class SchedulerConfig:
    max_num_seqs: int

@dataclasses.dataclass
class CacheConfig:
    block_size: int = 16
    num_gpu_blocks: int = 100

@dataclasses.dataclass
class Config:
    scheduler_config: SchedulerConfig
    cache_config: CacheConfig

if __name__ == "__main__":
    print("INFO 12-01 10:00:00 [api_server.py:1] vLLM API server version 0.33.0", flush=True)
    for plugin in importlib.metadata.entry_points(group="vllm.general_plugins"):
        plugin.load()()
    args = make_arg_parser(FlexibleArgumentParser()).parse_args()
    engine = core.EngineCore()
    engine.vllm_config = Config(SchedulerConfig(args.max_num_seqs), CacheConfig())
    engine.scheduler = types.SimpleNamespace(max_num_running_reqs=args.max_num_seqs)
    print("variables", {n: v for n, v in os.environ.items() if n.startswith(("VLLM_", "HF_"))}, flush=True)
    if args.config:
        print("config", open(args.config).read(), flush=True)
    engine.run_busy_loop()
    serve({"/health": "", "/version": {"version": "0.33.0"}, "/v1/models": {"data": []}, "/metrics": ""},
          args.host, args.port)
""",
    "vllm-0.33.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: vllm\nVersion: 0.33.0\n",
    "helper-1.5.dist-info/METADATA": "Metadata-Version: 2.1\nName: helper\nVersion: 1.5\n",
}


def write_vllm(folder: Path) -> Path:
    """The package as an image has it on its path."""
    for name, text in VLLM.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder
