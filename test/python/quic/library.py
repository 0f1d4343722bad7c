"""The package openwhisk outside of functions, against a server behind a relay that delays datagrams and loses them.

Usage: library.py URL UUID:KEY CA-FILE. It ends with 1 and says why if something is wrong.
"""

from __future__ import annotations

import json
import os
import re
import select
import socket
import sys
import tempfile
import threading
import time
from pathlib import Path
from urllib.parse import urlparse

import openwhisk
from openwhisk import exchange, http1, http3, requests, settings, tickets
from openwhisk.messages import Address, Request

ACCEPTED, HELD = "forerun_early_accepted_total", "forerun_early_held_total"
DELAY = 0.01  # seconds, each way
COUNTS = """
import os, redis

def main(args):
    return {"visits": redis.Redis.from_url(os.environ["REDIS_URL"]).incr("library")}
"""


class Relay:
    """A relay on one port of TCP and UDP."""

    def __init__(self, host: str, port: int) -> None:
        self.server = (host, port)
        self.datagrams = 0  # that clients sent
        self.deaf = False  # clients hear nothing over UDP
        self.blocked = False  # nor does the server
        self.tcp = socket.create_server((host, 0))
        self.port = self.tcp.getsockname()[1]
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.udp.bind((host, self.port))
        for work in (self.accept, self.forward):
            threading.Thread(target=work, daemon=True).start()

    def accept(self) -> None:
        """Relay connections."""
        while True:
            client, _ = self.tcp.accept()
            server = socket.create_connection(self.server)
            for one, other in ((client, server), (server, client)):
                threading.Thread(target=self.copy, args=(one, other), daemon=True).start()

    def copy(self, one: socket.socket, other: socket.socket) -> None:
        """Relay one direction of a connection."""
        while data := one.recv(1 << 16):
            other.sendall(data)
        other.shutdown(socket.SHUT_WR)

    def forward(self) -> None:
        """Relay datagrams, each after the delay."""
        clients: dict[tuple[str, int], socket.socket] = {}
        late: list[tuple[float, socket.socket, bytes, tuple[str, int] | None]] = []
        while True:
            wait = max(0, late[0][0] - time.monotonic()) if late else 1
            ready, _, _ = select.select([self.udp, *clients.values()], [], [], wait)
            now = time.monotonic()
            for one in ready:
                if one is self.udp:
                    data, client = self.udp.recvfrom(1 << 16)
                    self.datagrams += 1
                    if client not in clients:
                        clients[client] = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
                        clients[client].connect(self.server)
                    if not self.blocked:
                        late.append((now + DELAY, clients[client], data, None))
                    continue
                data = one.recv(1 << 16)
                client = next(client for client, at in clients.items() if at is one)
                if not (self.deaf or self.blocked):
                    late.append((now + DELAY, self.udp, data, client))
            while late and late[0][0] <= now:
                _, at, data, client = late.pop(0)
                at.sendto(data, client) if client else at.send(data)


def must(what: str, got: object, want: object) -> None:
    """Compare, and end the program with a sentence if it is something else."""
    if got != want:
        sys.exit(f"{what}: {got!r}, not {want!r}")


def gauge(relay: Relay, name: str) -> int:
    """Read a number of the server's metrics, over TCP and past the relay."""
    host, port = relay.server
    address = address_of()._replace(host=host, port=port)
    text = http1.send(Request(address, "GET", "/metrics", {}, b""), 60).body.decode()
    found = re.search(rf"^{re.escape(name)} (\d+)$", text, re.MULTILINE)
    return int(found[1]) if found else sys.exit(f"there is no metric {name}")


def address_of() -> Address:
    """Return how the package names the server behind the relay."""
    found = settings.find()
    return exchange.parse_host(found.host, found.ca)


def visit() -> int:
    """Call the action that counts, over a connection of its own."""
    visits = openwhisk.invoke("library")["visits"]
    http3._pool.end()
    return visits


def forget_the_way() -> None:
    """Have the tickets say that the server is near, so that no call gets a key of its own."""
    for path in Path(tickets._folder()).glob("*-*"):
        path.write_text(json.dumps({**json.loads(path.read_text()), "rtt": 0}))


def visit_deaf(relay: Relay, name: str) -> int:
    """Call the action that counts, hear nothing over UDP, and give UDP up when a number of the metrics has grown."""
    before, visits = gauge(relay, name), []
    caller = threading.Thread(target=lambda: visits.append(visit()))
    relay.deaf = True
    caller.start()
    while gauge(relay, name) == before:
        time.sleep(0.01)
    http3.SILENCE = 0  # the caller looks at it with its next packet
    caller.join()
    relay.deaf = False
    return visits[0]


def run(relay: Relay) -> None:
    """Call with a good way, a deaf one and none."""
    limit = http3.SILENCE
    http3.SILENCE = http3.LINGER = 60  # seconds: this machine may be busy
    made = requests.put("/api/v1/namespaces/_/actions/library", json={"exec": {"kind": "python:3", "code": COUNTS}})
    must("the action is made", made.status_code, 200)
    http3._pool.end()
    files = list(Path(tickets._folder()).iterdir())
    must("who may read the ticket", [oct(path.stat().st_mode & 0o777) for path in files], ["0o600"])

    before = gauge(relay, ACCEPTED)
    must("calls over HTTP/3", [visit() for _ in range(3)], [1, 2, 3])
    must("of these early", gauge(relay, ACCEPTED) - before, 3)
    must("a call that ran early, and was sent again over TCP", visit_deaf(relay, ACCEPTED), 4)
    must("visits, with this one", visit(), 5)
    heard = relay.datagrams
    must("a call that knows the way", visit(), 6)
    must("its datagrams", relay.datagrams - heard, 0)

    open_the_way(relay)
    must("a call when UDP gets through again", visit(), 7)
    forget_the_way()
    must("a call without a key, sent again over TCP", visit_deaf(relay, HELD), 8)
    must("visits, with this one", visit(), 9)

    open_the_way(relay)
    http3.SILENCE, relay.blocked = limit, True
    must("a call when the server hears nothing", visit(), 10)


def open_the_way(relay: Relay) -> None:
    """Have datagrams go through, and the package try them again."""
    relay.deaf = relay.blocked = False
    http3.SILENCE = 60
    tickets._blocked.clear()
    for path in Path(tickets._folder()).glob("*.blocked"):
        path.unlink()


def main(url: str, auth: str, ca: str) -> None:
    """Run all with a cache folder of its own."""
    where = urlparse(url)
    relay = Relay(where.hostname or "", where.port or 0)
    with tempfile.TemporaryDirectory() as cache:
        environment = {
            "FORERUN_APIHOST": f"https://{where.hostname}:{relay.port}",
            "FORERUN_AUTH": auth,
            "FORERUN_CA": ca,
        }
        os.environ.update(environment, XDG_CACHE_HOME=cache)
        run(relay)


if __name__ == "__main__":
    main(*sys.argv[1:])
