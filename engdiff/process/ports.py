"""Free TCP ports on the loopback interface."""

from __future__ import annotations

import socket
import threading

_given: set[int] = set()
_lock = threading.Lock()


def free_port() -> int:
    """Find a port on 127.0.0.1 that nobody listens on; never the same one twice in a process.

    Raises OSError when the system has none left.
    """
    with _lock:
        while True:
            with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
                listener.bind(("127.0.0.1", 0))
                port: int = listener.getsockname()[1]
            if port not in _given:
                _given.add(port)
                return port
