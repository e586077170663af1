"""Free TCP ports on the loopback interface."""

from __future__ import annotations

import random
import socket
import threading

LOWEST, HIGHEST = 20_000, 32_000
"""Below the ports that systems give out by themselves, and low enough for engines that take a second port 10,000 above
the first (SGLang 0.5.12, server_args.py)."""

_given: set[int] = set()
_lock = threading.Lock()


def free_port() -> int:
    """Find a port on 127.0.0.1 that nobody listens on; never the same one twice in a process.

    Raises OSError when none is left.
    """
    with _lock:
        for port in random.sample(range(LOWEST, HIGHEST), HIGHEST - LOWEST):
            if port not in _given and _is_free(port):
                _given.add(port)
                return port
    raise OSError(f"every port from {LOWEST} to {HIGHEST} is taken")


def _is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
        try:
            listener.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
