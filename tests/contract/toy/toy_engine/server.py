"""A server that decides how many slots it has. Standard library only."""

from __future__ import annotations

import argparse
import json
import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

parser = argparse.ArgumentParser(prog="toy")
parser.add_argument("model")
parser.add_argument("--slots", type=int, default=2)
parser.add_argument("--port", type=int, required=True)


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = json.dumps({"toy": "1.0", "slots": arguments.slots}).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_request(self, code: object = "-", size: object = "-") -> None:
        pass


if __name__ == "__main__":
    arguments = parser.parse_args()
    sys.stdout.write(f"toy engine 1.0 starts {arguments.model}\n")
    if not any((Path(arguments.model) / name).stat().st_size for name in ("config.json",)):
        sys.exit("toy engine: the model is empty")
    server = ThreadingHTTPServer(("127.0.0.1", arguments.port), Handler)
    if out := os.environ.get("TOY_PROBE_OUT"):
        Path(out, "toy.json").write_text(json.dumps({"slots": arguments.slots}), encoding="utf-8")
    sys.stdout.write(f"toy engine has {arguments.slots} slots\ntoy engine is ready\n")
    sys.stdout.flush()
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        sys.stdout.write("toy engine stops\n")
