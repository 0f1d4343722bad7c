"""Frames of the runtime protocol over a connected descriptor (PROTOCOL.md, "Frames")."""

from __future__ import annotations

import array
import json
import os
from typing import TYPE_CHECKING, NamedTuple

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
    """The other end sent what is no frame."""


class Frame(NamedTuple):
    """One frame: its type, its header (an object; {} when absent) and its payload."""

    type: int
    header: dict[str, Any]
    payload: bytes


def pack(type_: int, header: dict[str, Any] | None = None, payload: bytes = b"") -> bytes:
    """Return the bytes of a frame."""
    head = json.dumps(header, separators=(",", ":"), sort_keys=True).encode() if header else b""
    if len(head) > MAX_HEADER_BYTES or len(payload) > MAX_PAYLOAD_BYTES:
        raise ProtocolError(f"a frame of {len(head)} + {len(payload)} bytes is over the protocol's limits")
    prefix = bytes((type_,)) + len(head).to_bytes(3, "big") + len(payload).to_bytes(4, "big")
    return prefix + head + payload


def read(fd: int) -> Frame | None:
    """Read one frame from a blocking descriptor; None at the end of the stream before a frame."""
    data = bytearray(os.read(fd, PREFIX_BYTES))
    if not data:
        return None
    _fill(fd, data, PREFIX_BYTES)
    head_size, payload_size = int.from_bytes(data[1:4], "big"), int.from_bytes(data[4:8], "big")
    if head_size > MAX_HEADER_BYTES or payload_size > MAX_PAYLOAD_BYTES:
        raise ProtocolError(f"a frame of {head_size} + {payload_size} bytes is over the protocol's limits")
    type_ = data[0]
    body = bytearray()
    _fill(fd, body, head_size + payload_size)
    try:
        header = json.loads(body[:head_size]) if head_size else {}
    except ValueError as error:
        raise ProtocolError(f"the header of a frame of type {type_} is no JSON: {error}") from None
    if not isinstance(header, dict):
        raise ProtocolError(f"the header of a frame of type {type_} is no object")
    return Frame(type_, header, bytes(body[head_size:]))


def _fill(fd: int, data: bytearray, size: int) -> None:
    """Append to data until it has size bytes; memory grows as bytes arrive, not as a prefix promises."""
    while len(data) < size:
        chunk = os.read(fd, min(size - len(data), _CHUNK))
        if not chunk:
            raise ProtocolError(f"the stream ended {size - len(data)} bytes before the end of a frame")
        data += chunk


def write(fd: int, frame: bytes) -> None:
    """Write all bytes of a frame."""
    view = memoryview(frame)
    while view:
        view = view[os.write(fd, view) :]


def write_with_descriptor(channel: socket.socket, frame: bytes, fd: int) -> None:
    """Write a frame whose first byte carries a descriptor."""
    sent = channel.sendmsg([frame], [(_SOL_SOCKET, _SCM_RIGHTS, array.array("i", [fd]))])
    write(channel.fileno(), frame[sent:])
