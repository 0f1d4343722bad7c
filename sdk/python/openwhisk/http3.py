"""HTTP/3 with early data, by the package aioquic, for programs outside of functions.

A connection serves one request at a time, of one user, and is kept. Nothing runs between requests: what has come
meanwhile is read with the next one. If no connection can be made, or the server says nothing for 0.3 s, TCP carries the
request. If that works, it carries all requests of the next ten minutes.

A server lets an invocation run as early data if it has an Idempotency-Key. So where the way is long, an invocation
without one gets one of its own.
"""

from __future__ import annotations

import atexit
import base64
import contextlib
import datetime
import os
import select
import socket
import time
from typing import TYPE_CHECKING, NamedTuple

from . import http1, tickets
from .http1 import MAX_BODY, Malformed
from .messages import Response

try:
    from aioquic.h3.connection import H3_ALPN, H3Connection
    from aioquic.h3.events import DataReceived, HeadersReceived
    from aioquic.quic.configuration import QuicConfiguration
    from aioquic.quic.connection import QuicConnection
    from aioquic.quic.events import ConnectionTerminated, HandshakeCompleted, StreamReset
    from aioquic.tls import CipherSuite, SessionTicket
except ImportError:
    available = False
else:
    available = True

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .messages import Address, Request

SILENCE = 0.3  # seconds without a word of a server until TCP is used
FAR = 0.005  # seconds of a round trip from which on a key costs less than it saves

_LARGE = 1 << 18  # bytes of a request from which on TCP is faster: aioquic makes each packet in Python
_KEPT = 20.0  # seconds that an idle connection is used again: nothing answers for it meanwhile
_SPARE = 8  # idle connections to a server
LINGER = 1.0  # seconds to wait for a ticket at the end of a connection
_OF_A_CONNECTION = frozenset(
    ("connection", "keep-alive", "transfer-encoding", "upgrade", "host")
)  # headers of HTTP/1.1
_REJECTED = 0x10B  # H3_REQUEST_REJECTED: the server has not looked at the request


class Unreachable(OSError):
    """HTTP/3 does not reach the server, which has not carried out the request, or may do so twice."""


class _Ended(Unreachable):
    """The server has ended the connection."""


def send(request: Request, timeout: float) -> Response:
    """Send a request and read its answer, over TCP if HTTP/3 does not reach the server.

    timeout is in seconds, for each wait on the network.
    """
    if not available or len(request.body) > _LARGE or tickets.is_blocked(request.address):
        return http1.send(request, timeout)
    kept = _pool.take(_user(request))
    if kept is not None:
        try:
            return kept.exchange(request, timeout)
        except Unreachable:
            pass  # the server has ended it
    ticket = _read(tickets.take(request.address))
    if ticket is not None and ticket.rtt >= FAR:
        request = _keyed(request)
    try:
        return _Connection(_user(request), ticket).exchange(request, timeout)
    except _Ended:
        return http1.send(request, timeout)
    except Unreachable:
        answer = http1.send(request, timeout)
        tickets.block(request.address)
        return answer


class _User(NamedTuple):
    """Who calls a server: a connection is one user's."""

    address: Address
    authorization: str


def _user(request: Request) -> _User:
    return _User(request.address, next((v for k, v in request.headers.items() if k.lower() == "authorization"), ""))


def _keyed(request: Request) -> Request:
    """Give an invocation a key of its own, with which it may be early data."""
    if request.method != "POST" or request.path.split("/")[5:6] != ["actions"] or request.repeatable:
        return request
    return request._replace(headers={**request.headers, "Idempotency-Key": os.urandom(16).hex()})


class _Pool:
    """The idle connections of this process, by server."""

    def __init__(self) -> None:
        self._process = 0
        self._idle: dict[_User, list[_Connection]] = {}

    def take(self, user: _User) -> _Connection | None:
        """Take one that the server has not ended."""
        self._own()
        idle = self._idle.get(user)
        while idle:
            try:
                connection = idle.pop()
            except IndexError:  # another thread was faster
                return None
            if connection.usable():
                return connection
        return None

    def give(self, connection: _Connection) -> None:
        """Keep one for the next request."""
        self._own()
        idle = self._idle.setdefault(connection.user, [])
        if len(idle) < _SPARE:
            idle.append(connection)
        else:
            connection.close()

    def end(self) -> None:
        """Close all, at the end of the process."""
        self._own()
        while self._idle:
            for connection in self._idle.popitem()[1]:
                connection.close()

    def _own(self) -> None:
        """Forget the connections of the process that this one was forked from, which goes on with them."""
        if self._process != os.getpid():
            self._process, self._idle = os.getpid(), {}


_pool = _Pool()
atexit.register(_pool.end)


class _Connection:
    """A connection to a server."""

    def __init__(self, user: _User, ticket: _Ticket | None) -> None:
        self.user, address = user, user.address
        self._since = 0.0  # when it fell idle
        self._rtt = 0.0  # seconds; 0: nothing was heard yet
        self._token = b""
        self._ticketed = self._shaken = self._ended = False
        self._why = "it was ended"
        configuration = QuicConfiguration(alpn_protocols=H3_ALPN, server_name=address.host, max_data=MAX_BODY)
        configuration.max_stream_data = MAX_BODY
        if address.ca:
            configuration.load_verify_locations(cadata=address.ca.encode())
        if ticket is not None:
            configuration.session_ticket, configuration.token = ticket.session, ticket.token
        self._quic = QuicConnection(
            configuration=configuration, session_ticket_handler=self._keep, token_handler=self._keep_token
        )
        self._http = H3Connection(self._quic)
        self._answer: _Answer | None = None
        family, kind, protocol, _, where = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_DGRAM)[0]
        self._socket = socket.socket(family, kind, protocol)
        self._where = where
        try:
            self._socket.connect(where)
            self._socket.setblocking(False)
        except OSError as error:
            self._socket.close()
            raise Unreachable(str(error)) from None
        self._quic.connect(where, now=time.monotonic())
        self._begun = time.monotonic()

    def usable(self) -> bool:
        """Report whether an idle connection can serve another request."""
        old = time.monotonic() - self._since > _KEPT
        try:
            self._receive()
            self._transmit()
        except OSError:
            self._ended = True
        if old and not self._ended:
            self.close()
        return not old and not self._ended

    def exchange(self, request: Request, timeout: float) -> Response:
        """Send a request and read its answer, and keep the connection."""
        answer = self._answer = _Answer(self._quic.get_next_available_stream_id(), request.method == "HEAD")
        head = {
            ":method": request.method,
            ":scheme": "https",
            ":authority": request.address.authority,
            ":path": request.path,
            **{name.lower(): value for name, value in request.headers.items() if name.lower() not in _OF_A_CONNECTION},
            "content-length": str(len(request.body)),
        }
        fields = [(name.encode(), value.encode()) for name, value in head.items()]
        self._http.send_headers(answer.stream, fields, end_stream=not request.body)
        if request.body:
            self._http.send_data(answer.stream, request.body, end_stream=True)
        try:
            self._run(lambda: answer.whole or answer.refused, timeout)
        except (OSError, Malformed) as error:
            if not self._shaken:
                self._abandon()
                raise Unreachable(str(error)) from None
            ended = self._ended
            self.close()
            if ended and request.repeatable:
                raise _Ended(str(error)) from None
            raise
        except BaseException:
            self._abandon()
            raise
        if answer.refused:
            self.close()
            raise _Ended("the server refused the request")
        self._since = time.monotonic()
        _pool.give(self)
        return answer.response()

    def close(self) -> None:
        """End it, with the ticket for the next one."""
        try:
            if not self._ended and not self._ticketed and self._shaken:
                self._run(lambda: self._ticketed, LINGER)
        except (OSError, Malformed):
            pass
        self._abandon()

    def _abandon(self) -> None:
        """End it at once."""
        try:
            self._quic.close()
            self._transmit()
        except OSError:
            pass
        self._ended = True
        self._socket.close()

    def _run(self, done: Callable[[], bool], timeout: float) -> None:
        """Send and receive until done; timeout is in seconds without progress of the answer."""
        until, progress = time.monotonic() + timeout, self._progress()
        while True:
            self._transmit()
            if done():
                return
            if self._ended:
                raise OSError(self._why)
            now = time.monotonic()
            if self._progress() != progress:
                until, progress = now + timeout, self._progress()
            if now >= until:
                raise socket.timeout
            if not self._rtt and now >= self._begun + SILENCE:
                raise Unreachable("the server says nothing over UDP")
            timer = self._quic.get_timer()
            if timer is not None and now >= timer:
                self._quic.handle_timer(now=now)
                self._events()
                continue
            self._wait(min(until, timer or until, until if self._rtt else self._begun + SILENCE) - now)
            self._receive()

    def _progress(self) -> int:
        return self._answer.size + len(self._answer.headers) if self._answer else 0

    def _wait(self, seconds: float) -> None:
        ready = select.poll()
        ready.register(self._socket, select.POLLIN)
        ready.poll(int(max(seconds, 0) * 1000) + 1)

    def _transmit(self) -> None:
        for datagram, _ in self._quic.datagrams_to_send(now=time.monotonic()):
            with contextlib.suppress(BlockingIOError):  # lost; it is sent again
                self._socket.send(datagram)

    def _receive(self) -> None:
        while True:
            try:
                datagram = self._socket.recv(1 << 16)
            except BlockingIOError:
                break
            now = time.monotonic()
            self._rtt = self._rtt or now - self._begun
            self._quic.receive_datagram(datagram, self._where, now=now)
        self._events()

    def _events(self) -> None:
        while (event := self._quic.next_event()) is not None:
            if isinstance(event, HandshakeCompleted):
                self._shaken = True
            elif isinstance(event, ConnectionTerminated):
                self._ended, self._why = True, event.reason_phrase or f"error {event.error_code:#x}"
            elif isinstance(event, StreamReset) and self._answer and event.stream_id == self._answer.stream:
                self._answer.reset(event.error_code)
            for part in self._http.handle_event(event):
                if self._answer and isinstance(part, (HeadersReceived, DataReceived)):
                    self._answer.add(part)

    def _keep_token(self, token: bytes) -> None:
        self._token = token

    def _keep(self, ticket: SessionTicket) -> None:
        """Keep the ticket that the server gave."""
        self._ticketed = True
        tickets.put(
            self.user.address,
            {
                "age_add": ticket.age_add,
                "cipher_suite": int(ticket.cipher_suite),
                "not_valid_after": ticket.not_valid_after.timestamp(),
                "not_valid_before": ticket.not_valid_before.timestamp(),
                "resumption_secret": _text(ticket.resumption_secret),
                "server_name": ticket.server_name,
                "ticket": _text(ticket.ticket),
                "max_early_data_size": ticket.max_early_data_size,
                "other_extensions": [[kind, _text(value)] for kind, value in ticket.other_extensions],
                "token": _text(self._token),
                "rtt": self._rtt,
            },
        )


class _Ticket(NamedTuple):
    """A session of before, the proof of this machine's address, and how long a round trip took, in seconds."""

    session: SessionTicket
    token: bytes
    rtt: float


def _read(kept: dict[str, Any] | None) -> _Ticket | None:
    """Read what _keep wrote, if there is something and it is whole."""

    def moment(seconds: float) -> datetime.datetime:
        return datetime.datetime.fromtimestamp(seconds, tz=datetime.timezone.utc)

    if kept is None:
        return None
    try:
        session = SessionTicket(
            age_add=kept["age_add"],
            cipher_suite=CipherSuite(kept["cipher_suite"]),
            not_valid_after=moment(kept["not_valid_after"]),
            not_valid_before=moment(kept["not_valid_before"]),
            resumption_secret=base64.b64decode(kept["resumption_secret"]),
            server_name=kept["server_name"],
            ticket=base64.b64decode(kept["ticket"]),
            max_early_data_size=kept["max_early_data_size"],
            other_extensions=[(kind, base64.b64decode(value)) for kind, value in kept["other_extensions"]],
        )
        return _Ticket(session, base64.b64decode(kept["token"]), float(kept["rtt"]))
    except (KeyError, TypeError, ValueError):
        return None


def _text(content: bytes) -> str:
    return base64.b64encode(content).decode()


class _Answer:
    """What has come of an answer."""

    def __init__(self, stream: int, headless: bool) -> None:
        self.stream = stream
        self.headers: dict[str, str] = {}
        self.size = 0
        self.whole = self.refused = False
        self._parts: list[bytes] = []

    def add(self, part: HeadersReceived | DataReceived) -> None:
        """Add a part; what a server sends before the answer (100 Continue) is passed over."""
        if part.stream_id != self.stream:
            return
        if isinstance(part, DataReceived):
            self._parts.append(part.data)
            self.size += len(part.data)
            if self.size > MAX_BODY:
                raise Malformed(f"it is longer than {MAX_BODY} bytes")
        elif not self.headers:  # else trailers
            headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in part.headers}
            if not headers[":status"].startswith("1"):
                self.headers = headers
        self.whole = part.stream_ended and bool(self.headers)

    def reset(self, code: int) -> None:
        """Note that the server ended the answer."""
        if code != _REJECTED:
            raise Malformed("the server ended it before it was whole")
        self.refused = True

    def response(self) -> Response:
        """Return the whole answer."""
        headers = {name: value for name, value in self.headers.items() if not name.startswith(":")}
        return Response(int(self.headers[":status"]), headers, b"".join(self._parts))
