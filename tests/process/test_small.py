"""Ports, readiness, and the tail of a log."""

from __future__ import annotations

import http.server
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from engdiff.process.ports import free_port
from engdiff.process.readiness import http_ok
from engdiff.process.tail import last_lines


def test_ports_are_free_and_never_given_twice() -> None:
    ports = [free_port() for _ in range(50)]
    assert len(set(ports)) == 50
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", ports[0]))


class _Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(int(self.path.strip("/")))
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 -- the base class's name
        pass


@pytest.fixture
def server() -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Answer) as listening:
        thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{listening.server_address[1]}"
        listening.shutdown()
        thread.join()


@pytest.mark.parametrize(("status", "fine"), [(200, True), (204, True), (404, False), (503, False)])
def test_readiness(server: str, status: int, fine: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    assert http_ok(f"{server}/{status}", timeout_s=10) is fine


def test_readiness_without_a_server() -> None:
    assert http_ok(f"http://127.0.0.1:{free_port()}/") is False


def test_readiness_of_something_that_is_not_http() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            with listener.accept()[0] as connection:
                connection.recv(100)
                connection.sendall(b"SSH-2.0-none\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        assert http_ok(f"http://127.0.0.1:{listener.getsockname()[1]}/", timeout_s=10) is False
        thread.join()


def test_readiness_wants_an_http_url() -> None:
    with pytest.raises(ValueError, match="not an http URL"):
        http_ok("file:///etc/passwd")


@pytest.mark.parametrize(
    ("content", "count", "lines"),
    [
        (b"", 3, ()),
        (b"one\ntwo\nthree\n", 2, ("two", "three")),
        (b"one\ntwo", 5, ("one", "two")),
        (b"one\n\n  \ntwo\n", 2, ("one", "two")),
        (b"one\n", 0, ()),
        (b"\x1b[31mERROR\x1b[0m bad\x1b]0;title\x07\n", 1, ("ERROR bad",)),
        (b"load:  1%\rload: 50%\rload: 100%\r\nnext\r\n", 2, ("load: 100%", "next")),
        (b"caf\xe9\n", 1, ("caf\ufffd",)),
        (b"  indented\n", 1, ("  indented",)),
    ],
)
def test_last_lines(tmp_path: Path, content: bytes, count: int, lines: tuple[str, ...]) -> None:
    log = tmp_path / "log"
    log.write_bytes(content)
    assert last_lines(log, count) == lines


def test_last_lines_of_a_big_log(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"".join(b"line %d of a long log, with some words\n" % number for number in range(200_000)))
    assert last_lines(log, 5000)[0].startswith("line 195000 ")
    assert last_lines(log, 1) == ("line 199999 of a long log, with some words",)


def test_last_lines_of_one_huge_progress_bar(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"start\n" + b"step\r" * 200_000 + b"done")
    assert last_lines(log, 1) == ("done",)
    assert last_lines(log, 2) == ("start", "done")


def test_last_lines_without_a_log(tmp_path: Path) -> None:
    assert last_lines(tmp_path / "none", 3) == ()
