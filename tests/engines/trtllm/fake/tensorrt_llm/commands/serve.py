# ruff: noqa: TID252 - a package of its own, which mypy finds only below tests/
"""The command line, the meeting of words and YAML by version, and the server."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import click
import yaml

from .. import __version__
from ..llmapi.llm import LLM
from ..llmapi.llm_args import KvCacheConfig
from ..scenario import fault, replay, scenario

WORDS_WIN = (1, 3)
"""In this stand-in; of the engine no source names the release."""


def update_llm_args_with_extra_dict(llm_args: dict[str, Any], extra: dict[str, Any]) -> dict[str, Any]:
    """Up to 1.2 of the first level only."""
    given = {name for name in ("kv_cache_config", "scheduler_config", "cuda_graph_config") if name in extra}
    print(f"[TRT-LLM] [W] Overriding {', '.join(sorted(given))}" if given else "", flush=True)
    if tuple(int(part) for part in __version__.split(".")[:2]) < WORDS_WIN:
        return llm_args | extra
    return _deep(extra, llm_args)


def _deep(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    both = {
        name: _deep(below[name], above[name])
        for name in below.keys() & above.keys()
        if isinstance(below[name], dict) and isinstance(above[name], dict)
    }
    return {**below, **above, **both}


@click.command("serve")
@click.argument("model")
@click.option("--host", default="localhost")
@click.option("--port", type=int, default=8000)
@click.option("--max_batch_size", type=int, default=2048)
@click.option("--max_num_tokens", type=int, default=8192)
@click.option("--max_seq_len", type=int, default=None)
@click.option("--tp_size", type=int, default=1)
@click.option("--kv_cache_free_gpu_memory_fraction", type=float, default=0.9)
@click.option("--trust_remote_code", is_flag=True, default=False)
@click.option("--enable_chunked_prefill", is_flag=True, default=False)
@click.option("--config", "--extra_llm_api_options", "extra_llm_api_options", default=None)
@click.pass_context
def serve(context: click.Context, /, model: str, host: str, port: int, **options: Any) -> None:
    if fault("no_gpu"):
        raise ValueError("No GPU devices found on the node")
    typed = {n for n in options if context.get_parameter_source(n) is click.core.ParameterSource.COMMANDLINE}
    llm_args: dict[str, Any] = {
        "max_batch_size": options["max_batch_size"],
        "max_num_tokens": options["max_num_tokens"],
        "max_seq_len": options["max_seq_len"],
        "tensor_parallel_size": options["tp_size"],
        "trust_remote_code": options["trust_remote_code"],
        "enable_chunked_prefill": options["enable_chunked_prefill"],
        "kv_cache_config": {"free_gpu_memory_fraction": options["kv_cache_free_gpu_memory_fraction"]},
    }
    names = {"tp_size": "tensor_parallel_size", "kv_cache_free_gpu_memory_fraction": "kv_cache_config"}
    extra: Any = {}
    if options["extra_llm_api_options"]:
        with open(options["extra_llm_api_options"]) as stream:  # noqa: PTH123
            extra = yaml.safe_load(stream)
        if tuple(int(part) for part in __version__.split(".")[:2]) >= WORDS_WIN:
            kept = {names.get(name, name) for name in typed}
            llm_args = {name: value for name, value in llm_args.items() if name in kept or name not in extra}
    llm_args = update_llm_args_with_extra_dict(llm_args, extra)
    llm_args["kv_cache_config"] = KvCacheConfig(**llm_args["kv_cache_config"])
    with socket.socket() as bound, socket.socket() as other:
        if fault("port_taken"):
            other.bind((host, port))
        try:
            if not fault("port_taken"):
                bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.bind((host, port))
        except OSError as error:
            raise RuntimeError(f"Failed to bind socket to {host}:{port}: {error}") from error
        _misbehave()
        _serve(bound, LLM(model, **llm_args), model)


def _misbehave() -> None:
    if fault("dies"):
        replay()
        sys.exit(1)
    if fault("killed"):
        replay()
        os.kill(os.getpid(), signal.SIGKILL)
    if fault("hangs"):
        replay()
        time.sleep(600)
    if fault("ignores_sigterm"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    if fault("child"):
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)


class Handler(BaseHTTPRequestHandler):
    iterations: list[Any] = []  # noqa: RUF012
    statistics = False
    model = ""

    def do_GET(self) -> None:
        if self.path == "/health_generate":
            if self.statistics:
                self.iterations.append(scenario().get("iteration", {"iter": 1}))
            return self.answer("")
        if self.path == "/metrics":
            body = json.dumps(self.iterations)
            self.iterations.clear()
            return self.answer(body)
        bodies = {
            "/health": "",
            "/version": json.dumps({"version": __version__}),
            "/v1/models": json.dumps({"data": [{"id": self.model, "owned_by": "tensorrt_llm"}]}),
            **scenario().get("endpoints", {}),
        }
        return self.answer(bodies[self.path]) if self.path in bodies else self.send_error(404)

    def answer(self, body: str) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(body.encode())))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *args: Any) -> None:
        """Silent."""


def _serve(bound: socket.socket, llm: LLM, model: str) -> None:
    Handler.statistics, Handler.model = llm.args.enable_iter_perf_stats, model
    server = ThreadingHTTPServer(bound.getsockname(), Handler, bind_and_activate=False)
    server.socket.close()
    server.socket = bound
    bound.listen()
    print("INFO:     Application startup complete.", flush=True)
    server.serve_forever()


class DefaultGroup(click.Group):
    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args and args[0] not in self.commands:
            return "serve", self.commands["serve"], args
        return super().resolve_command(ctx, args)


main = DefaultGroup(commands={"serve": serve})

if __name__ == "__main__":
    main()
