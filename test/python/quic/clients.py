"""Clients of HTTP/3, unchanged, against a server: niquests, which finds it by Alt-Svc, and aioquic with early data.

Usage: clients.py URL UUID:KEY CA-FILE. It ends with 1 and says why if something is wrong.
"""

from __future__ import annotations

import asyncio
import base64
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlparse

import niquests
from aioquic.asyncio.client import connect
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.h3.connection import H3Connection
from aioquic.h3.events import HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.tls import SessionTicket

if TYPE_CHECKING:
    from aioquic.quic.events import QuicEvent

ACTIONS = "/api/v1/namespaces/_/actions"
COUNT = ACTIONS + "/visits"
COUNTS = """
import os, redis

def main(args):
    return {"visits": redis.Redis.from_url(os.environ["REDIS_URL"]).incr("visits")}
"""
CALL = COUNT + "?blocking=true&result=true"
HTTP3 = 30  # as niquests says it


def must(what: str, got: object, want: object) -> None:
    """Compare, and end the program with a sentence if it is something else."""
    if got != want:
        sys.exit(f"{what}: {got!r}, not {want!r}")


def follow_alt_svc(url: str, auth: str, ca: str) -> None:
    """The first request is told of HTTP/3, and all others use it."""
    user, _, key = auth.partition(":")
    with niquests.Session() as session:
        versions = []
        for _ in range(6):
            answer = session.get(url + ACTIONS, auth=(user, key), verify=ca)
            must("niquests is answered", answer.status_code, 200)
            versions.append(answer.raw.version)
    must("protocols of niquests", versions[1:], [HTTP3] * 5)


class Client(QuicConnectionProtocol):
    """A connection of HTTP/3."""

    def __init__(self, *args: object, **options: object) -> None:
        super().__init__(*args, **options)
        self.http = H3Connection(self._quic)
        self.status: dict[int, asyncio.Future[int]] = {}

    def quic_event_received(self, event: QuicEvent) -> None:
        """Note the status of answers."""
        for e in self.http.handle_event(event):
            if isinstance(e, HeadersReceived):
                self.status[e.stream_id].set_result(int(dict(e.headers)[b":status"]))

    def ask(self, method: str, path: str, host: str, auth: str) -> asyncio.Future[int]:
        """Send a request without a body."""
        stream = self._quic.get_next_available_stream_id()
        self.status[stream] = asyncio.get_running_loop().create_future()
        basic = "Basic " + base64.b64encode(auth.encode()).decode()
        head = {":method": method, ":scheme": "https", ":authority": host, ":path": path, "authorization": basic}
        self.http.send_headers(stream, [(k.encode(), v.encode()) for k, v in head.items()], end_stream=True)
        self.transmit()
        return self.status[stream]


@dataclass
class Visits:
    """Connections to one server."""

    url: str
    auth: str
    ca: str

    async def visit(self, ticket: SessionTicket | None, *, early: bool) -> SessionTicket:
        """Read, and call the action that counts, each once: as early data, if there is a ticket."""
        where, tickets = urlparse(self.url), asyncio.Queue[SessionTicket]()
        options = QuicConfiguration(alpn_protocols=["h3"], server_name=where.hostname, session_ticket=ticket)
        options.load_verify_locations(self.ca)
        async with connect(
            where.hostname or "",
            where.port or 0,
            configuration=options,
            create_protocol=Client,
            session_ticket_handler=tickets.put_nowait,
            wait_connected=ticket is None,
        ) as client:
            asked = [
                client.ask("GET", ACTIONS, where.netloc, self.auth),
                client.ask("POST", CALL, where.netloc, self.auth),
            ]
            must("aioquic is answered", await asyncio.gather(*asked), [200, 200])
            must("its early data were read", client._quic.tls.early_data_accepted, early)
            return await tickets.get()


async def come_back(visits: Visits) -> None:
    """A ticket is good for early data once; what was rejected the client sends again, and is answered all the same."""
    first = await visits.visit(None, early=False)
    await visits.visit(first, early=True)
    await visits.visit(first, early=False)


def create(url: str, auth: str, ca: str) -> None:
    """Make the action that counts."""
    user, _, key = auth.partition(":")
    action = {"exec": {"kind": "python:3", "code": COUNTS}}
    must("the action is made", niquests.put(url + COUNT, json=action, auth=(user, key), verify=ca).status_code, 200)


def count(url: str, auth: str, ca: str) -> int:
    """Call the action once more, and say how often it has run."""
    user, _, key = auth.partition(":")
    return niquests.post(url + CALL, auth=(user, key), verify=ca).json()["visits"]


if __name__ == "__main__":
    follow_alt_svc(*sys.argv[1:])
    create(*sys.argv[1:])
    asyncio.run(come_back(Visits(*sys.argv[1:])))
    must("the action ran, with this call", count(*sys.argv[1:]), 4)
