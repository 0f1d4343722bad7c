"""HTTP/1.1 over kept connections.

The standard library's http.client takes longer to import than a function takes to run. One request at a time has a
connection, so threads share none in use. A process that was forked begins without any.
"""

from __future__ import annotations

import os
import select
import socket
import time
from typing import TYPE_CHECKING

from .messages import Response

if TYPE_CHECKING:
    import ssl

    from .messages import Address, Request

MAX_HEAD = 1 << 16
MAX_BODY = 1 << 26

_KEPT = 30.0  # seconds that an idle connection is used again: servers close theirs later
_SPARE = 8  # idle connections to a server


class Malformed(Exception):
    """What came is not an HTTP answer."""


class _Stale(OSError):
    """A kept connection ended before anything of the answer came."""


def send(request: Request, timeout: float) -> Response:
    """Send one request and read its answer; timeout is in seconds, for each wait on the network."""
    kept = _pool.take(request.address)
    if kept is not None:
        try:
            return kept.exchange(request, timeout)
        except _Stale:
            if not request.repeatable:  # whether the server has carried it out is not known
                raise
    return _Connection(request.address, timeout).exchange(request, timeout)


class _Pool:
    """The idle connections of this process, by server."""

    def __init__(self) -> None:
        self._process = 0
        self._idle: dict[Address, list[_Connection]] = {}
        self._contexts: dict[str, ssl.SSLContext] = {}

    def take(self, address: Address) -> _Connection | None:
        """Take one that the server has not closed."""
        self._own()
        idle = self._idle.get(address)
        while idle:
            try:
                connection = idle.pop()
            except IndexError:  # another thread was faster
                return None
            if connection.usable():
                return connection
            connection.close()
        return None

    def give(self, connection: _Connection) -> None:
        """Keep one for the next request."""
        self._own()
        idle = self._idle.setdefault(connection.address, [])
        if len(idle) < _SPARE:
            idle.append(connection)
        else:
            connection.close()

    def context(self, ca: str) -> ssl.SSLContext:
        """Return what TLS trusts: the authorities of the system, and those in ca."""
        if ca not in self._contexts:
            import ssl  # which a function never needs

            context = ssl.create_default_context()
            if ca:
                context.load_verify_locations(cadata=ca)
            self._contexts[ca] = context
        return self._contexts[ca]

    def _own(self) -> None:
        """Forget the connections of the process that this one was forked from."""
        if self._process != os.getpid():
            self._process, self._idle = os.getpid(), {}


_pool = _Pool()


class _Connection:
    """A connection to a server."""

    def __init__(self, address: Address, timeout: float) -> None:
        self.address = address
        # As bytes: a name given as text would first load the tables for international names.
        self._socket = socket.create_connection((address.host.encode(), address.port), timeout)  # type: ignore[arg-type]
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._buffer = b""
        self._heard = False  # something of the present answer
        self._since = 0.0  # when it fell idle; 0: it was not used yet
        if address.secure:
            try:
                self._socket = _pool.context(address.ca).wrap_socket(self._socket, server_hostname=address.host)
            except BaseException:
                self.close()
                raise

    def usable(self) -> bool:
        """Report whether an idle connection can serve another request: it is young, and the server keeps it."""
        if time.monotonic() - self._since > _KEPT:
            return False
        ready = select.poll()
        ready.register(self._socket, select.POLLIN)
        return not ready.poll(0)

    def close(self) -> None:
        """End it."""
        self._socket.close()

    def exchange(self, request: Request, timeout: float) -> Response:
        """Send a request and read its answer, and keep the connection if both sides can."""
        used, self._heard = self._since > 0, False
        lines = [f"{request.method} {request.path} HTTP/1.1", f"Host: {self.address.authority}"]
        lines += [f"{key}: {value}" for key, value in request.headers.items()]
        lines += [f"Content-Length: {len(request.body)}", "", ""]
        try:
            self._socket.settimeout(timeout)
            self._socket.sendall("\r\n".join(lines).encode() + request.body)
            answer, keep = self._answer(request.method)
        except (OSError, Malformed) as error:
            self.close()
            if used and not self._heard and not isinstance(error, socket.timeout):
                raise _Stale(f"the server closed the connection ({error})") from None
            raise
        except BaseException:
            self.close()
            raise
        if keep and not self._buffer:
            self._since = time.monotonic()
            _pool.give(self)
        else:
            self.close()
        return answer

    def _answer(self, method: str) -> tuple[Response, bool]:
        """Read the answer; what a server sends before it (100 Continue) is passed over."""
        while True:
            lines = self._until(b"\r\n\r\n", MAX_HEAD).decode("latin-1").split("\r\n")
            status = _status(lines[0])
            if status >= 200:
                break
        headers = {
            name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])
        }
        keep = lines[0].startswith("HTTP/1.1") and "close" not in headers.get("connection", "").lower()
        if method == "HEAD" or status in (204, 304):
            return Response(status, headers, b""), keep
        if "chunked" in headers.get("transfer-encoding", "").lower():
            return Response(status, headers, self._chunks()), keep
        if "content-length" in headers:
            return Response(status, headers, self._exactly(_size(headers["content-length"], 10))), keep
        return Response(status, headers, self._rest()), False

    def _chunks(self) -> bytes:
        body = b""
        while size := _size(self._until(b"\r\n", MAX_HEAD).partition(b";")[0].decode("latin-1"), 16):
            body += self._exactly(size)
            if len(body) > MAX_BODY:
                raise Malformed(f"it is longer than {MAX_BODY} bytes")
            if self._exactly(2) != b"\r\n":
                raise Malformed("a part of it does not end where it says")
        while self._until(b"\r\n", MAX_HEAD):  # trailers
            pass
        return body

    def _rest(self) -> bytes:
        while len(self._buffer) <= MAX_BODY:
            if not self._more():
                body, self._buffer = self._buffer, b""
                return body
        raise Malformed(f"it is longer than {MAX_BODY} bytes")

    def _until(self, end: bytes, limit: int) -> bytes:
        while (at := self._buffer.find(end)) < 0:
            if len(self._buffer) > limit:
                raise Malformed("its head is too long")
            self._must_have_more()
        found, self._buffer = self._buffer[:at], self._buffer[at + len(end) :]
        return found

    def _exactly(self, size: int) -> bytes:
        while len(self._buffer) < size:
            self._must_have_more()
        found, self._buffer = self._buffer[:size], self._buffer[size:]
        return found

    def _must_have_more(self) -> None:
        if not self._more():
            raise Malformed("the connection ended before it was whole")

    def _more(self) -> bool:
        data = self._socket.recv(1 << 16)
        self._heard = self._heard or bool(data)
        self._buffer += data
        return bool(data)


def _status(line: str) -> int:
    version, _, rest = line.partition(" ")
    code = rest[:3]
    if not version.startswith("HTTP/1.") or not (code.isascii() and code.isdecimal() and len(code) == 3):
        raise Malformed(f"it begins with {line[:40]!r}")
    return int(code)


def _size(text: str, base: int) -> int:
    digits = text.strip()
    try:
        size = int(digits, base) if digits.isascii() and digits.isalnum() else -1
    except ValueError:
        size = -1
    if not 0 <= size <= MAX_BODY:
        raise Malformed(f"{digits[:40]!r} is not a length that it can have")
    return size
