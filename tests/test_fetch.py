"""A hostile server ends in a clear error, within the time and the size that were set, and nothing is left behind."""

from __future__ import annotations

import contextlib
import gzip
import os
import shutil
import signal
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from engdiff import errors
from engdiff.fetch import Access, get

QUICK = Access(limit_seconds=0.6, limit_bytes=100_000)
OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n"
GZIP_BOMB = gzip.compress(bytes(10_000_000))

Talk = Callable[[socket.socket], None]


@contextmanager
def server(
    talk: Talk,
    context: ssl.SSLContext | None = None,
    *,
    family: socket.AddressFamily = socket.AF_INET,
    seen: list[bytes] | None = None,
) -> Iterator[str]:
    """One connection at a time; ``talk`` gets it after the request was read, which ``seen`` keeps."""
    host = "127.0.0.1" if family == socket.AF_INET else "::1"
    with socket.create_server((host, 0), family=family) as listening:
        listening.settimeout(0.05)
        over = threading.Event()

        def serve() -> None:
            while not over.is_set():
                try:
                    connection, _ = listening.accept()
                except TimeoutError:
                    continue
                with connection:
                    connection.settimeout(3)
                    try:
                        plain = context.wrap_socket(connection, server_side=True) if context else connection
                        with plain:
                            asked = plain.recv(65536)
                            if seen is not None:
                                seen.append(asked)
                            talk(plain)
                    except (OSError, ValueError):
                        continue

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            scheme = "https" if context else "http"
            yield f"{scheme}://127.0.0.1:{listening.getsockname()[1]}/metrics"
        finally:
            over.set()
            thread.join()


def sends(*parts: bytes) -> Talk:
    def talk(connection: socket.socket) -> None:
        for part in parts:
            connection.sendall(part)

    return talk


def drips(head: bytes, piece: bytes, seconds: float = 0.1) -> Talk:
    def talk(connection: socket.socket) -> None:
        connection.sendall(head)
        for _ in range(100):
            connection.sendall(piece)
            time.sleep(seconds)

    return talk


def floods(head: bytes, piece: bytes) -> Talk:
    def talk(connection: socket.socket) -> None:
        connection.sendall(head)
        while True:
            connection.sendall(piece)

    return talk


HOSTILE: dict[str, tuple[Talk, str]] = {
    "never answers": (lambda c: time.sleep(1.5), "no whole answer in 0.6 s, given up while waiting for an answer"),
    "drips its status": (drips(b"HTTP/1.1 2", b"0"), "no whole answer in 0.6 s, given up while waiting for an answer"),
    "drips its headers": (drips(b"HTTP/1.1 200 OK\r\nX: ", b"x"), "no whole answer in 0.6 s"),
    "drips its body": (drips(OK + b"\r\n", b"x"), "no whole answer in 0.6 s, given up while reading the answer"),
    "drips its chunks": (drips(OK + CHUNKED, b"1\r\nx\r\n"), "no whole answer in 0.6 s"),
    "drips inside a length": (drips(OK + b"Content-Length: 9999\r\n\r\n", b"x"), "no whole answer in 0.6 s"),
    "goes on before it begins": (drips(b"", b"HTTP/1.1 100 Continue\r\n\r\n"), "no whole answer in 0.6 s"),
    "begins without end": (floods(b"", b"HTTP/1.1 100 Continue\r\n\r\n"), "its headers do not end"),
    "endless body": (floods(OK + b"\r\n", b"x" * 65536), "longer than 97.66 KiB"),
    "endless chunks": (
        floods(OK + CHUNKED, b"1000\r\n" + b"x" * 4096 + b"\r\n"),
        "longer than 97.66 KiB",
    ),
    "endless small chunks": (floods(OK + CHUNKED, b"1\r\nx\r\n" * 1000), "longer than 97.66 KiB"),
    "ten gigabytes": (sends(OK + b"Content-Length: 10000000000\r\n\r\n"), "longer than 97.66 KiB"),
    "a chunk of ten gigabytes": (sends(OK + CHUNKED + b"2540BE400\r\n"), "longer than 97.66 KiB"),
    "an endless chunk size": (floods(OK + CHUNKED, b"0" * 65536), "a chunk has no size"),
    "endless headers": (floods(b"HTTP/1.1 200 OK\r\n", b"X: y\r\n" * 1000), "does not answer as an HTTP server"),
    "one endless header": (floods(b"HTTP/1.1 200 OK\r\nX: ", b"x" * 65536), "does not answer as an HTTP server"),
    "no HTTP": (sends(b"SSH-2.0-OpenSSH_9.2\r\n"), "does not answer as an HTTP server"),
    "says nothing": (sends(), "the answer breaks off"),
    "closes in the middle": (sends(OK + b"Content-Length: 100\r\n\r\nhalf"), "the answer breaks off"),
    "breaks off in a chunk": (sends(OK + CHUNKED + b"64\r\nhalf"), "the answer breaks off"),
    "breaks off between chunks": (sends(OK + CHUNKED + b"4\r\nhalf\r\n"), "the answer breaks off"),
    "breaks off in its headers": (sends(OK), "the answer breaks off"),
    "bad chunk": (sends(OK + CHUNKED + b"zz\r\nxx"), "a chunk has no size"),
    "negative chunk": (floods(OK + CHUNKED + b"-1\r\n", b"x" * 65536), "a chunk has no size"),
    "chunk longer than it says": (sends(OK + CHUNKED + b"2\r\nxxxx\r\n"), "a chunk is longer than it says"),
    "negative length": (sends(OK + b"Content-Length: -1\r\n\r\n"), "its Content-Length is -1"),
    "two lengths": (sends(OK + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nxx"), "its Content-Length is 1, 2"),
    "another protocol": (sends(b"HTTP/1.1 101 Switching Protocols\r\n\r\n"), "does not answer as an HTTP server"),
    "a newer HTTP": (sends(b"\x00\x00\x12\x04\x00\x00\x00\x00\x00"), "does not answer as an HTTP server"),
    "TLS": (sends(b"\x15\x03\x01\x00\x02\x02\x46"), "does not answer as an HTTP server"),
    "redirects": (
        sends(b"HTTP/1.1 302 Found\r\nLocation: http://user:pw@evil.example/\r\n\r\n"),
        "redirects to http://[redacted]@evil.example/",
    ),
    "redirects with a code": (
        sends(b"HTTP/1.1 307 Moved\r\nLocation: https://login.example/x\x1b[2J?code=abc123\r\n\r\n"),
        "redirects to https://login.example/x?[2J; engdiff",
    ),
    "redirects nowhere": (sends(b"HTTP/1.1 304 Not Modified\r\n\r\n"), "redirects to nowhere"),
    "wants another token": (sends(b"HTTP/1.1 403 Forbidden\r\n\r\n"), "not allowed (status 403)"),
    "wants a token": (sends(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n"), "not allowed (status 401)"),
    "gzip bomb": (floods(OK + b"Content-Encoding: gzip\r\n\r\n", GZIP_BOMB), "answers in gzip"),
    "gzip bomb in transfer": (sends(OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n"), "answers in gzip, chunked"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile(name: str) -> None:
    talk, message = HOSTILE[name]
    before = threading.active_count()
    with server(talk) as url:
        started = time.monotonic()
        with pytest.raises(errors.FetchFailed) as caught:
            get(url, QUICK)
        assert time.monotonic() - started < 2
    assert message in caught.value.message
    assert caught.value.advice
    assert threading.active_count() == before


@pytest.mark.parametrize(
    ("answer", "status", "body"),
    [
        (OK + b"Content-Length: 5\r\n\r\nhello", 200, "hello"),
        (OK + b"\r\nhello", 200, "hello"),
        (b"HTTP/1.0 200 OK\r\n\r\nhello", 200, "hello"),
        (OK + CHUNKED + b"5\r\nhello\r\n0\r\n\r\n", 200, "hello"),
        (OK + CHUNKED + b"3;name=value\r\nhel\r\n002\r\nlo\r\n0\r\nX: y\r\n\r\n", 200, "hello"),
        (b"HTTP/1.1 200\nno colon\nContent-Length: 5\n\nhello", 200, "hello"),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + OK + b"Content-Length: 5\r\n\r\nhello", 200, "hello"),
        (OK + b"Content-Encoding: identity\r\nContent-Length: 5\r\n\r\nhello", 200, "hello"),
        (OK + b"Content-Length: 2\r\n\r\nhello", 200, "he"),
        (OK + b"Content-Length: 100000\r\n\r\n" + b"x" * 100_000, 200, "x" * 100_000),
        (OK + b"\r\n" + b"x" * 100_000, 200, "x" * 100_000),
        (b"HTTP/1.1 204 No Content\r\n\r\n", 204, ""),
        (b"HTTP/1.1 500 Oh\r\nContent-Length: 2\r\n\r\nno", 500, "no"),
        (b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno", 404, "no"),
        (OK + b"Content-Length: 3\r\n\r\n\xff\xfex", 200, "��x"),
    ],
)
def test_answers(answer: bytes, status: int, body: str) -> None:
    with server(sends(answer)) as url:
        found = get(url, QUICK)
    assert (found.status, found.body) == (status, body)


def test_the_token_is_never_shown() -> None:
    assert "sesame" not in repr(Access(token="sesame-42"))


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("ftp://host/", "not a URL of a server"),
        ("http://", "not a URL of a server"),
        ("http://host:99999/", "not a URL"),
        ("http://host/a b", "not a URL of a server"),
        ("http://user:pw@127.0.0.1:1/", "http://[redacted]@127.0.0.1:1/: nothing listens there"),
        ("http://no-such-host.invalid/", "no such host"),
        ("user:pw@host:8000", "not a URL of a server"),
        ("http://user:pw@:1/", "not a URL of a server"),
        ("http://user:pw@/x@host:port/", "[redacted]@host:port/: not a URL of a server"),
        ("http://[::1/", "not a URL of a server"),
        ("http://host:0/", "not a URL of a server"),
        ("http://a..b/", "not a URL of a server"),
        ("http://a\x00b/", "not a URL of a server"),
        ("https://.a/", "not a URL of a server"),
        ("/metrics", "not a URL of a server"),
        ("", "not a URL of a server"),
    ],
)
def test_what_cannot_be_reached(url: str, message: str) -> None:
    with pytest.raises(errors.FetchFailed) as caught:
        get(url, QUICK)
    assert message in caught.value.message
    assert "pw@" not in caught.value.message


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ssl.SSLContext]:
    """A certificate that signs itself, for 127.0.0.1."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not here to make a certificate")
    folder = tmp_path_factory.mktemp("tls")
    key, pem = folder / "key.pem", folder / "cert.pem"
    words = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2", "-nodes"]
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-keyout", key, "-out", pem, *words],
        check=True,
        capture_output=True,
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem, key)
    return pem, context


def test_a_certificate_is_trusted_only_when_named(certificate: tuple[Path, ssl.SSLContext]) -> None:
    pem, context = certificate
    with server(sends(OK + b"Content-Length: 2\r\n\r\nhi"), context) as url:
        with pytest.raises(errors.FetchFailed, match="certificate is not trusted") as caught:
            get(url, QUICK)
        assert "--ca-file" in caught.value.advice
        assert get(url, Access(ca_file=pem)).body == "hi"


@pytest.mark.parametrize("text", [None, "no certificate"])
def test_a_ca_file_that_is_none(text: str | None, tmp_path: Path) -> None:
    path = tmp_path / "ca.pem"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    with pytest.raises(errors.FetchFailed, match="--ca-file"):
        get("https://127.0.0.1:1/", Access(ca_file=path))


def test_a_name_that_the_certificate_has_not(certificate: tuple[Path, ssl.SSLContext]) -> None:
    pem, context = certificate
    with server(sends(OK + b"\r\n"), context) as url, pytest.raises(errors.FetchUntrusted, match="ostname mismatch"):
        get(url.replace("127.0.0.1", "localhost"), Access(ca_file=pem))


def test_tls_that_drips_its_body(certificate: tuple[Path, ssl.SSLContext]) -> None:
    pem, context = certificate
    with server(drips(OK + b"\r\n", b"x"), context) as url, pytest.raises(errors.FetchTooSlow, match="reading"):
        get(url, Access(ca_file=pem, limit_seconds=0.6))


@pytest.mark.parametrize(
    ("talk", "error", "message"),
    [
        (lambda c: time.sleep(1.5), errors.FetchTooSlow, "agreeing on TLS"),
        (drips(b"\x16\x03\x03\x40\x00", b"\x02"), errors.FetchTooSlow, "agreeing on TLS"),
        (sends(OK + b"\r\n"), errors.FetchNoTls, "no TLS there"),
        (sends(), errors.FetchFailed, "https://"),
    ],
)
def test_https_of_what_does_not_speak_tls(talk: Talk, error: type[errors.FetchFailed], message: str) -> None:
    with server(talk) as url, pytest.raises(error, match=message):
        get(url.replace("http:", "https:"), QUICK)


def heard(url_of: Callable[[int], str], access: Access, family: socket.AddressFamily = socket.AF_INET) -> str:
    """The request that a server at that URL gets."""
    seen: list[bytes] = []
    with server(sends(OK + b"Content-Length: 0\r\n\r\n"), family=family, seen=seen) as url:
        get(url_of(int(url.rpartition(":")[2].partition("/")[0])), access)
    return seen[0].decode("ascii")


@pytest.mark.parametrize(
    ("url", "token", "first", "header"),
    [
        ("http://127.0.0.1:{}", None, "GET / HTTP/1.1", "Host: 127.0.0.1:{}"),
        ("http://127.0.0.1:{}/a?b=c#d", None, "GET /a?b=c HTTP/1.1", "Accept-Encoding: identity"),
        ("http://127.0.0.1:{}/%41\u00e9?\u00e9", None, "GET /%41%C3%A9?%C3%A9 HTTP/1.1", "Connection: close"),
        ("http://user:p%40w@127.0.0.1:{}/", None, "GET / HTTP/1.1", "Authorization: Basic dXNlcjpwQHc="),
        ("http://user:pw@127.0.0.1:{}/", "tok", "GET / HTTP/1.1", "Authorization: Bearer tok"),
        ("http://localhost:{}/", None, "GET / HTTP/1.1", "Host: localhost:{}"),
    ],
)
def test_what_is_asked(url: str, token: str | None, first: str, header: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    ports: list[int] = []

    def url_of(port: int) -> str:
        ports.append(port)
        return url.format(port)

    asked = heard(url_of, Access(token=token))
    lines = asked.split("\r\n")
    assert lines[0] == first
    assert header.format(*ports) in lines
    assert sum(line.startswith("Authorization") for line in lines) == header.startswith("Authorization")


def test_an_ipv6_address() -> None:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("no IPv6 here")
    assert "Host: [::1]:" in heard(lambda port: f"http://[::1]:{port}/", QUICK, socket.AF_INET6)


@pytest.mark.parametrize("token", ["two words", "line\n", "a\r\nHost: evil", "\u00e9"])
def test_a_token_that_is_none_is_not_sent(token: str) -> None:
    with pytest.raises(errors.FetchTokenInvalid) as caught:
        get("http://127.0.0.1:1/", Access(token=token))
    assert token not in caught.value.message


def test_a_token_in_a_redirect_is_not_shown() -> None:
    talk = sends(b"HTTP/1.1 302 Found\r\nLocation: /to/sesame-42/\r\n\r\n")
    with server(talk) as url, pytest.raises(errors.FetchRedirected, match="/to/") as caught:
        get(url, Access(token="sesame-42"))
    assert "sesame" not in caught.value.message


def test_a_redirect_loop_is_asked_once() -> None:
    seen: list[bytes] = []
    talk = sends(b"HTTP/1.1 302 Found\r\nLocation: /metrics\r\n\r\n")
    with server(talk, seen=seen) as url, pytest.raises(errors.FetchRedirected):
        get(url, QUICK)
    assert len(seen) == 1


def test_a_look_up_that_takes_for_ever_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    over = threading.Event()

    def look_up(*_: object, **words: object) -> list[object]:
        if not words.get("flags"):
            over.wait(5)
        raise socket.gaierror(socket.EAI_NONAME, "unknown")

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    started = time.monotonic()
    with pytest.raises(errors.FetchTooSlow, match="looking up the name"):
        get("http://engine.example/", Access(limit_seconds=0.2))
    assert time.monotonic() - started < 1
    over.set()
    for thread in threading.enumerate():
        if thread.name == "engdiff-look-up":
            thread.join()


def test_an_address_that_swallows_everything_leaves_time_for_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    with server(sends(OK + b"Content-Length: 2\r\n\r\nhi")) as url, full_server() as deaf:
        port = int(url.rpartition(":")[2].partition("/")[0])
        kinds = (socket.AF_INET, socket.SOCK_STREAM, 0, "")
        both = [(*kinds, ("127.0.0.1", p)) for p in (deaf, port)]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: both)
        assert get(url, Access(limit_seconds=1)).body == "hi"
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: both[:1])
        with pytest.raises(errors.FetchTooSlow, match="given up while connecting"):
            get(url, Access(limit_seconds=0.3))


@contextmanager
def full_server() -> Iterator[int]:
    """A port of which the queue is full: connections to it are neither taken nor refused."""
    with contextlib.ExitStack() as opened:
        listening = opened.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(4):
            waiting = opened.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(listening.getsockname())
        yield listening.getsockname()[1]


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_ctrl_c_ends_a_request() -> None:
    with server(lambda c: time.sleep(1)) as url:
        timer = threading.Timer(0.2, signal.raise_signal, [signal.SIGINT])
        timer.start()
        started = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            get(url, Access(limit_seconds=20))
        assert time.monotonic() - started < 2
        timer.join()
