"""Frames of the runtime protocol over a connected descriptor (PROTOCOL.md, "Frames")."""

from __future__ import annotations

import os
import sys

from . import text

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from typing import Any

PROTOCOL = 1

HELLO, INIT, INIT_DONE, FORK, HANDLER, EXIT = 1, 2, 3, 4, 5, 6
READY, RUN, RESULT, LOG, CALL, CALL_RESULT, PHASE, PROMOTE, SQUASH = 16, 17, 18, 19, 20, 21, 22, 23, 24

PREFIX_BYTES = 8
MAX_HEADER_BYTES = 1 << 20
MAX_PAYLOAD_BYTES = 64 << 20
_CHUNK = 1 << 16
_SOL_SOCKET, _SCM_RIGHTS = 1, 1  # of Linux; the socket module would double the start


class ProtocolError(Exception):
    """The other end sent bytes that are not a frame."""


class Frame:
    """One frame: its type, its header (an object; {} when absent) and its payload."""

    __slots__ = ("header", "payload", "type")

    def __init__(self, type_: int, header: dict[str, Any], payload: bytes) -> None:
        self.type, self.header, self.payload = type_, header, payload

    def __eq__(self, other: object) -> bool:
        """Compare the three parts."""
        return isinstance(other, Frame) and all(getattr(self, part) == getattr(other, part) for part in self.__slots__)


def pack(type_: int, header: dict[str, Any] | None = None, payload: bytes = b"") -> bytes:
    """Return the bytes of a frame."""
    return join(type_, text.dumps(header, sort_keys=True) if header else b"", payload)


def join(type_: int, head: bytes, payload: bytes = b"") -> bytes:
    """Return the bytes of a frame whose header is written already: what many frames share costs nothing then."""
    if len(head) > MAX_HEADER_BYTES or len(payload) > MAX_PAYLOAD_BYTES:
        raise ProtocolError(f"a frame of {len(head)} + {len(payload)} bytes is over the protocol's limits")
    return (type_ << 56 | len(head) << 32 | len(payload)).to_bytes(PREFIX_BYTES, "big") + head + payload


def read(fd: int) -> Frame | None:
    """Read one frame from a blocking descriptor; None at the end of the stream before a frame."""
    prefix = os.read(fd, PREFIX_BYTES)
    if not prefix:
        return None
    prefix = _fill(fd, prefix, PREFIX_BYTES)
    head_size, payload_size = int.from_bytes(prefix[1:4], "big"), int.from_bytes(prefix[4:], "big")
    if head_size > MAX_HEADER_BYTES or payload_size > MAX_PAYLOAD_BYTES:
        raise ProtocolError(f"a frame of {head_size} + {payload_size} bytes is over the protocol's limits")
    body = _fill(fd, b"", head_size + payload_size)
    try:
        header = text.loads(body[:head_size]) if head_size else {}
    except ValueError as error:
        raise ProtocolError(f"the header of a frame of type {prefix[0]} is not JSON: {error}") from None
    if not isinstance(header, dict):
        raise ProtocolError(f"the header of a frame of type {prefix[0]} is not an object")
    return Frame(prefix[0], header, body[head_size:])


def _fill(fd: int, data: bytes, size: int) -> bytes:
    """Read on until data has size bytes; memory grows as bytes arrive, not as a prefix promises."""
    whole: bytes | bytearray = data
    while len(whole) < size:
        chunk = os.read(fd, min(size - len(whole), _CHUNK))
        if not chunk:
            raise ProtocolError(f"the stream ended {size - len(whole)} bytes before the end of a frame")
        whole = _joined(whole, chunk) if whole else chunk  # most often it comes in one piece
    return bytes(whole)


def _joined(whole: bytes | bytearray, chunk: bytes) -> bytearray:
    if isinstance(whole, bytes):
        whole = bytearray(whole)
    whole += chunk
    return whole


def write(fd: int, frame: bytes) -> None:
    """Write all bytes of a frame."""
    view = memoryview(frame)
    while view:
        view = view[os.write(fd, view) :]


def write_with_descriptor(channel: socket.socket, frame: bytes, fd: int) -> None:
    """Write a frame whose first byte carries a descriptor."""
    sent = channel.sendmsg([frame], [(_SOL_SOCKET, _SCM_RIGHTS, fd.to_bytes(4, sys.byteorder))])
    write(channel.fileno(), frame[sent:])
