"""Whether a server answers."""

from __future__ import annotations

import http.client
import ipaddress
import urllib.error
import urllib.request
from urllib.parse import urlsplit

_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def http_ok(url: str, timeout_s: float = 2.0) -> bool:
    """Whether a GET is answered with a status below 300; never an exception when it is not.

    Loopback addresses are never asked through a proxy, whatever the environment says.
    Raises ValueError when ``url`` is not an http(s) URL.
    """
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"}:
        raise ValueError(f"not an http URL: {url}")
    # the proxies are looked up anew each time, as urllib does itself
    opener = _DIRECT if _is_loopback(parts.hostname or "") else urllib.request.build_opener()
    try:
        with opener.open(url, timeout=timeout_s) as response:
            return bool(response.status < 300)
    except (OSError, http.client.HTTPException):  # refused, reset, timed out, an error status, not HTTP at all
        return False


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
