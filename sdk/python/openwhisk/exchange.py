"""One HTTP/1.1 exchange over a connection of its own.

The standard library's http.client takes longer to import than a function takes to run. A connection is used once, so
that there is nothing to share between threads or forks, and no request is ever sent twice.
"""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, NamedTuple

from .errors import ConnectionFailed, SettingsError

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_HEAD = 1 << 16
MAX_BODY = 1 << 26


class Address(NamedTuple):
    """Where a server listens."""

    host: str
    port: int
    secure: bool


class Response(NamedTuple):
    """An answer; the names of its headers are in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes


class Malformed(Exception):
    """What came is no HTTP answer."""


def parse_host(text: str) -> Address:
    """Read http://HOST:PORT, https://HOST:PORT, or HOST:PORT, which means https as in wsk."""
    scheme, separator, rest = text.partition("://")
    if not separator:
        scheme, rest = "https", text
    secure = scheme.lower() == "https"
    authority, _, path = rest.rstrip("/").partition("/")
    bracketed = authority.startswith("[")
    host, colon, port = authority.rpartition(":") if not bracketed or "]:" in authority else (authority, "", "")
    if not colon:
        host, port = authority, "443" if secure else "80"
    number = int(port) if port.isdecimal() else 0
    host = host.strip("[]")
    if scheme.lower() not in ("http", "https") or path or not host or not 0 < number < 65536:
        raise SettingsError(f"{text!r} is not where an API can be: write it like http://127.0.0.1:3233.")
    return Address(host, number, secure)


def send(address: Address, method: str, path: str, headers: Mapping[str, str], body: bytes, timeout: float) -> Response:
    """Send one request and read its answer; timeout is in seconds, for each wait on the network."""
    name = f"[{address.host}]" if ":" in address.host else address.host
    lines = [f"{method} {path} HTTP/1.1", f"Host: {name}:{address.port}", "Connection: close"]
    lines += [f"{key}: {value}" for key, value in headers.items()]
    lines += [f"Content-Length: {len(body)}", "", ""]
    where = f"The API at {name}:{address.port}"
    try:
        with _connect(address, timeout) as connection:
            connection.sendall("\r\n".join(lines).encode() + body)
            return _Reader(connection).response()
    except Malformed as error:
        raise ConnectionFailed(f"{where} gave an answer that cannot be read: {error}. Is it OpenWhisk's API?") from None
    except socket.timeout:  # TimeoutError, but for Python 3.9
        raise ConnectionFailed(
            f"{where} did not answer within {timeout:g} s: give Client(...) a longer timeout."
        ) from None
    except OSError as error:
        raise ConnectionFailed(
            f"{where} cannot be reached: {error.strerror or error}. Does the server run there?"
        ) from None


def _connect(address: Address, timeout: float) -> socket.socket:
    # As bytes: a name given as text would first load the tables for international names.
    connection = socket.create_connection((address.host.encode(), address.port), timeout)  # type: ignore[arg-type]
    if not address.secure:
        return connection
    import ssl  # which a function on this platform never needs

    return ssl.create_default_context().wrap_socket(connection, server_hostname=address.host)


class _Reader:
    """Reads an answer from a connection."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._buffer = b""

    def response(self) -> Response:
        """Read the answer; what a server sends before it (100 Continue) is passed over."""
        while True:
            lines = self._until(b"\r\n\r\n", MAX_HEAD).decode("latin-1").split("\r\n")
            status = _status(lines[0])
            if status >= 200:
                break
        headers = {
            name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])
        }
        return Response(status, headers, self._body(status, headers))

    def _body(self, status: int, headers: dict[str, str]) -> bytes:
        if status in (204, 304):
            return b""
        if "chunked" in headers.get("transfer-encoding", "").lower():
            return self._chunks()
        if "content-length" not in headers:
            return self._rest()
        return self._exactly(_size(headers["content-length"], 10))

    def _chunks(self) -> bytes:
        body = b""
        while size := _size(self._until(b"\r\n", MAX_HEAD).partition(b";")[0].decode("latin-1"), 16):
            body += self._exactly(size)
            if len(body) > MAX_BODY:
                raise Malformed(f"it is longer than {MAX_BODY} bytes")
            if self._exactly(2) != b"\r\n":
                raise Malformed("a part of it does not end where it says")
        return body

    def _rest(self) -> bytes:
        while len(self._buffer) <= MAX_BODY:
            if not self._more():
                return self._buffer
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
        data = self._connection.recv(1 << 16)
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
