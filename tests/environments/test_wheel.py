"""Reading members of a wheel: by ranges, whole where a server knows none, from a folder; and each only once."""

from __future__ import annotations

import io
import re
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from engdiff.environments import wheel as wheels
from engdiff.environments.wheel import Located, NoWheelError, opened, tree

MEMBER = "en/core.py"
SOURCE = "class Core: ...\n"


def made_wheel() -> bytes:
    """A wheel with one big member that nobody asks for."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("en/kernels.so", bytes(4 * wheels.READ_AHEAD_BYTES))
        archive.writestr(MEMBER, SOURCE)
    return made.getvalue()


class Server:
    """Serves one wheel and counts the bytes."""

    def __init__(self, ranges: bool) -> None:
        content, sent = made_wheel(), self
        self.bytes = 0

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                wanted = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("range", "")) if ranges else None
                start, end = (int(wanted[1]), int(wanted[2])) if wanted else (0, len(content) - 1)
                body = content[start : end + 1]
                sent.bytes += len(body)
                self.send_response(206 if wanted else 200)
                if wanted:
                    self.send_header("content-range", f"bytes {start}-{end}/{len(content)}")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args: object) -> None: ...

        self.size = len(content)
        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}/en-1.0-py3-none-any.whl"


@pytest.fixture(params=[True, False], ids=["ranges", "no ranges"])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    made = Server(request.param)
    thread = threading.Thread(target=made.http.serve_forever)
    thread.start()
    yield made
    made.http.shutdown()
    thread.join()
    made.http.server_close()


def test_a_member_over_http(server: Server, request: pytest.FixtureRequest) -> None:
    with opened(server.url) as file, zipfile.ZipFile(file) as archive:
        assert archive.read(MEMBER).decode() == SOURCE
    whole = "no ranges" in request.node.name
    assert server.bytes == server.size if whole else server.bytes < server.size


def test_a_wheel_in_a_folder(tmp_path: Path) -> None:
    (tmp_path / "en.whl").write_bytes(made_wheel())
    with opened((tmp_path / "en.whl").as_uri()) as file, zipfile.ZipFile(file) as archive:
        assert archive.namelist()[1] == MEMBER


def test_the_python_files_of_a_release_are_fetched_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "en.whl").write_bytes(made_wheel())
    asked: list[str] = []

    def located(requirement: str) -> Located:
        asked.append(requirement)
        return Located((tmp_path / "en.whl").as_uri(), "0" * 64)

    monkeypatch.setattr(wheels, "located", located)
    for _ in range(2):
        found = tree("en", "1.0", lambda text: None, tmp_path)
        assert (found.folder / MEMBER).read_text(encoding="utf-8") == SOURCE
        assert not (found.folder / "en" / "kernels.so").exists()
        assert (found.wheel, found.sha256) == ("en.whl", "0" * 64)
    assert asked == ["en==1.0"]
    assert [path.name for path in found.folder.parent.iterdir()] == ["en-1.0"]


def test_half_a_wheel_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "en.whl").write_bytes(made_wheel()[:-30])
    monkeypatch.setattr(wheels, "located", lambda what: Located((tmp_path / "en.whl").as_uri(), None))
    with pytest.raises(NoWheelError, match=r"the wheel of en==1\.0 cannot be read"):
        tree("en", "1.0", lambda text: None, tmp_path)
    assert list((tmp_path / "trees").iterdir()) == []
