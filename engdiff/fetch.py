"""Reads one URL of a running server: GET only, within a time and a size, whatever the other side does.

What HTTP/1 needs for one GET is written out here. :mod:`http.client` begins its time limit anew with every byte, takes
chunks of negative size, and has no limit for a body of a million chunks; to work around it would take more than this.

No proxy of the environment is asked: the server is on this machine or in the cluster, where a proxy answers for
somebody else, and the token is not the proxy's to see.
"""

from __future__ import annotations

import base64
import contextlib
import io
import re
import socket
import ssl
import string
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, quote, unquote_to_bytes, urlsplit

from engdiff import errors
from engdiff.redact import REDACTED, redact_text
from engdiff.units import KIB, MIB

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer


HEAD_LIMIT_BYTES = 64 * KIB
"""Status line and headers together; servers refuse heads of 8 to 64 KiB themselves."""

SHOWN_CHARACTERS = 200

_HOST = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*|[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*(?:%[\w.-]+)?")
_TOKEN = re.compile(r"[!-~]+")
_STATUS = re.compile(rb"HTTP/1\.[01] ([1-9][0-9]{2})(?: .*)?")
_LENGTH = re.compile(r"[0-9]{1,20}")
_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;.*)?")
_CHUNK_LINE_BYTES = 4096

_Addresses = Sequence[tuple[socket.AddressFamily, socket.SocketKind, int, str, Any]]


@dataclass(frozen=True)
class Access:
    """How to reach a server, and what one request may cost.

    ``token`` is a bearer token, sent to that server only and never shown; ``ca_file`` holds the certificates to trust
    instead of the system's (PEM); ``limit_seconds`` covers one whole request, from the look-up of the name to the last
    byte; ``limit_bytes`` is for the body.
    """

    token: str | None = field(default=None, repr=False)
    ca_file: Path | None = None
    limit_seconds: float = 10
    limit_bytes: int = 32 * MIB


@dataclass(frozen=True)
class Answer:
    """What came back, after ``seconds``. A status that is not 200 is an answer as well."""

    status: int
    body: str
    content_type: str
    seconds: float


def get(url: str, access: Access) -> Answer:
    """The answer to one GET; the body is decoded as UTF-8, with a mark for what is none.

    Raises a :class:`~engdiff.errors.FetchFailed` that names the URL, without a password or token, and what to do:
    for everything that is no answer, for 401 and 403, and for redirects, which are not followed.
    """
    target = _target(url)
    request = _request(target, access)
    context = _context(access) if target.tls else None
    clock = _Clock(access.limit_seconds)
    try:
        with contextlib.ExitStack() as opened:
            sock = opened.enter_context(_connect(target, clock))
            if context is not None:
                sock = opened.enter_context(_secured(sock, context, target, clock))
            clock.phase = "waiting for an answer"
            sock.settimeout(clock.left())
            sock.sendall(request)
            reader = opened.enter_context(io.BufferedReader(_Wire(sock, clock), 64 * KIB))
            return _Reply(reader, target.shown, access, clock).answer()
    except OSError as error:
        raise _failure(error, target.shown, access, clock) from error


@dataclass(frozen=True)
class _Target:
    """A URL in parts. ``shown`` is the URL as it may be printed; ``basic`` is its ``user:password``."""

    shown: str
    tls: bool
    host: str
    port: int
    path: str
    basic: bytes | None


class _Clock:
    """The one time limit of a request, and what it is busy with."""

    def __init__(self, seconds: float) -> None:
        self._started = time.monotonic()
        self._limit = seconds
        self.phase = "looking up the name"

    def seconds(self) -> float:
        return time.monotonic() - self._started

    def left(self) -> float:
        """Seconds that are left. Raises TimeoutError when there are none: 0 would mean not to block."""
        left = self._limit - self.seconds()
        if left <= 0:
            raise TimeoutError
        return left


def _target(url: str) -> _Target:
    """The URL in parts. Raises FetchUrlInvalid."""
    try:
        parts = urlsplit(url)
        port = parts.port
        host = _host(parts)
    except ValueError:  # a bad port, half a bracket, a name that IDNA does not know
        raise errors.FetchUrlInvalid(_hidden(url)) from None
    if parts.scheme not in ("http", "https") or port == 0 or any(c <= " " or c == "\x7f" for c in url):
        raise errors.FetchUrlInvalid(_hidden(url))
    user_info, at, _ = parts.netloc.rpartition("@")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return _Target(
        shown=_printable(redact_text(url)),
        tls=parts.scheme == "https",
        host=host,
        port=port or (443 if parts.scheme == "https" else 80),
        path=quote(path, safe=string.punctuation),
        basic=unquote_to_bytes(user_info) if at else None,
    )


def _host(parts: SplitResult) -> str:
    """The host in ASCII. Raises ValueError when there is none, or what is there is none."""
    host = (parts.hostname or "").encode("idna").decode("ascii")
    if not _HOST.fullmatch(host):
        raise ValueError(host)
    return host


def _hidden(url: str) -> str:
    """What cannot be told apart may be a password: nothing before the last ``@`` is shown."""
    _, at, rest = url.rpartition("@")
    return _printable(redact_text(f"{REDACTED}@{rest}" if at else url))


def _printable(text: str) -> str:
    """Text of somebody else's for a message: no line ends, no escape sequences, no end in sight."""
    return "".join(c if c.isprintable() else "?" for c in text[:SHOWN_CHARACTERS])


def _request(target: _Target, access: Access) -> bytes:
    """The whole request. Raises FetchTokenInvalid for a token that would not be one word of a header."""
    host, _, _ = target.host.partition("%")  # the zone of a link-local address is this machine's affair
    host = f"[{host}]" if ":" in host else host
    standard = target.port == (443 if target.tls else 80)
    lines = [
        f"GET {target.path} HTTP/1.1",
        f"Host: {host}" if standard else f"Host: {host}:{target.port}",
        "User-Agent: engdiff",
        "Accept: */*",
        "Accept-Encoding: identity",
        "Connection: close",
    ]
    if access.token:
        if not _TOKEN.fullmatch(access.token):
            raise errors.FetchTokenInvalid(target.shown)
        lines.append(f"Authorization: Bearer {access.token}")
    elif target.basic is not None:
        lines.append(f"Authorization: Basic {base64.b64encode(target.basic).decode('ascii')}")
    return "\r\n".join([*lines, "", ""]).encode("ascii")


def _connect(target: _Target, clock: _Clock) -> socket.socket:
    """A connection to the first address that takes one. Raises OSError of the last one tried."""
    addresses = _addresses(target, clock)
    clock.phase = "connecting"
    failure = OSError("no address")
    for place, (family, kind, protocol, _, address) in enumerate(addresses):
        try:
            with contextlib.ExitStack() as opened:
                sock = opened.enter_context(socket.socket(family, kind, protocol))
                # an address that swallows everything must leave time for the others
                sock.settimeout(clock.left() / (len(addresses) - place))
                sock.connect(address)
                opened.pop_all()
                return sock
        except OSError as error:
            failure = error
    raise failure


def _addresses(target: _Target, clock: _Clock) -> _Addresses:
    with contextlib.suppress(socket.gaierror):
        return socket.getaddrinfo(
            target.host, target.port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV
        )
    return _looked_up(target, clock)


def _looked_up(target: _Target, clock: _Clock) -> _Addresses:
    """The addresses of a name.

    A look-up takes neither a time limit nor Ctrl-C, so it runs beside. One that is given up ends by itself, with the
    resolver's own limit of some seconds; it holds up nothing, not even the end of the program.
    """
    found: list[_Addresses | OSError] = []

    def look_up() -> None:
        try:
            found.append(socket.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM))
        except OSError as error:
            found.append(error)

    thread = threading.Thread(target=look_up, name="engdiff-look-up", daemon=True)
    thread.start()
    thread.join(clock.left())
    if not found:
        raise TimeoutError
    if isinstance(found[0], OSError):
        raise found[0]
    return found[0]


def _context(access: Access) -> ssl.SSLContext:
    """Whom to trust. Raises FetchCaFileUnusable."""
    try:
        return ssl.create_default_context(cafile=access.ca_file)
    except ssl.SSLError:
        raise errors.FetchCaFileUnusable(access.ca_file, "holds no certificate in PEM form") from None
    except OSError as error:
        raise errors.FetchCaFileUnusable(access.ca_file, error.strerror or str(error)) from None


def _secured(sock: socket.socket, context: ssl.SSLContext, target: _Target, clock: _Clock) -> ssl.SSLSocket:
    """The connection under TLS, with the server's certificate checked. Raises OSError."""
    clock.phase = "agreeing on TLS"
    name, _, _ = target.host.partition("%")
    with contextlib.ExitStack() as opened:
        tls = opened.enter_context(context.wrap_socket(sock, server_hostname=name, do_handshake_on_connect=False))
        tls.settimeout(clock.left())
        tls.do_handshake()
        opened.pop_all()
        return tls


class _Wire(io.RawIOBase):
    """A connection as a stream; every read ends with the clock, however many there are."""

    def __init__(self, sock: socket.socket, clock: _Clock) -> None:
        self._sock = sock
        self._clock = clock

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        self._sock.settimeout(self._clock.left())
        return self._sock.recv_into(buffer)


class _Reply:
    """One answer as it comes in. Everything here raises a FetchFailed, or OSError for the connection."""

    def __init__(self, reader: io.BufferedReader[_Wire], shown: str, access: Access, clock: _Clock) -> None:
        self._reader = reader
        self._shown = shown
        self._access = access
        self._clock = clock
        self._head_left = HEAD_LIMIT_BYTES

    def answer(self) -> Answer:
        status, headers = self._head()
        while status < 200:  # 100 Continue, 103 Early Hints
            status, headers = self._head()
        self._refuse(status, headers)
        body = b"" if status == 204 else self._body(headers)
        return Answer(
            status=status,
            body=body.decode("utf-8", errors="replace"),
            content_type=_printable(headers.get("content-type", "")),
            seconds=self._clock.seconds(),
        )

    def _head(self) -> tuple[int, dict[str, str]]:
        """The status, and the headers by name in lower case."""
        status = _STATUS.fullmatch(self._head_line(start=b"HTTP/1."))
        if status is None or status[1] == b"101":  # nobody asked for another protocol
            raise errors.FetchNotHttp(self._shown, "the first line is no status")
        self._clock.phase = "reading the answer"
        headers: dict[str, str] = {}
        while line := self._head_line():
            name, _, value = (part.strip() for part in line.decode("latin-1").partition(":"))
            name = name.lower()
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
        return int(status[1]), headers

    def _head_line(self, start: bytes = b"") -> bytes:
        line = self._reader.readline(self._head_left + 1)
        self._head_left -= len(line)
        if self._head_left < 0:
            raise errors.FetchNotHttp(self._shown, "its headers do not end")
        if line and not line.startswith(start):
            raise errors.FetchNotHttp(self._shown, "the first line is no status")
        if not line.endswith(b"\n"):
            raise errors.FetchBreaksOff(self._shown)
        return line.rstrip(b"\r\n")

    def _refuse(self, status: int, headers: Mapping[str, str]) -> None:
        if 300 <= status < 400:
            raise errors.FetchRedirected(self._shown, self._place(headers.get("location", "")) or "nowhere")
        if status in (401, 403):
            raise errors.FetchForbidden(self._shown, status)
        codings = (headers.get("content-encoding", ""), headers.get("transfer-encoding", ""))
        for coding, fine in zip(codings, ("identity", "chunked"), strict=True):
            if coding.lower() not in ("", fine):
                raise errors.FetchEncoded(self._shown, _printable(coding))

    def _place(self, location: str) -> str:
        """Where a redirect goes, without the query, in which log-ins carry their codes."""
        place, _, _ = location.partition("?")
        if self._access.token:
            place = place.replace(self._access.token, REDACTED)
        return _printable(redact_text(place))

    def _body(self, headers: Mapping[str, str]) -> bytes:
        if headers.get("transfer-encoding"):
            return self._chunks()
        length = headers.get("content-length")
        if length is None:
            body = self._reader.read(self._access.limit_bytes + 1)
            self._fits(len(body))
            return body
        if not _LENGTH.fullmatch(length):
            raise errors.FetchNotHttp(self._shown, f"its Content-Length is {_printable(length)}")
        return self._exactly(self._fits(int(length)))

    def _chunks(self) -> bytes:
        # one buffer: a list of the chunks would be many times their size where each is a byte
        body = bytearray()
        while size := self._chunk_size():
            self._fits(len(body) + size)
            body += self._exactly(size)
            if self._line():
                raise errors.FetchNotHttp(self._shown, "a chunk is longer than it says")
        return bytes(body)

    def _chunk_size(self) -> int:
        size = _CHUNK.fullmatch(self._line())
        if size is None:
            raise errors.FetchNotHttp(self._shown, "a chunk has no size")
        return int(size[1], 16)

    def _line(self) -> bytes:
        line = self._reader.readline(_CHUNK_LINE_BYTES)
        if not line.endswith(b"\n") and len(line) < _CHUNK_LINE_BYTES:
            raise errors.FetchBreaksOff(self._shown)
        return line.rstrip(b"\r\n")

    def _exactly(self, size: int) -> bytes:
        piece = self._reader.read(size)
        if len(piece) < size:
            raise errors.FetchBreaksOff(self._shown)
        return piece

    def _fits(self, size: int) -> int:
        if size > self._access.limit_bytes:
            raise errors.FetchTooBig(self._shown, self._access.limit_bytes)
        return size


def _failure(error: OSError, shown: str, access: Access, clock: _Clock) -> errors.FetchFailed:
    match error:
        case TimeoutError():
            return errors.FetchTooSlow(shown, access.limit_seconds, clock.phase)
        case socket.gaierror():
            return errors.FetchNoSuchHost(shown, error.strerror or str(error))
        case ssl.SSLCertVerificationError():
            return errors.FetchUntrusted(shown, error.verify_message)
        case ssl.SSLError():
            return errors.FetchNoTls(shown, error.reason or str(error))
        case ConnectionRefusedError():
            return errors.FetchUnreachable(shown, "nothing listens there")
        case _ if clock.phase == "connecting":
            return errors.FetchUnreachable(shown, error.strerror or str(error))
        case _:
            return errors.FetchBreaksOff(shown)
