"""The sort of the paper.

The first stage reads records, partitions and writes them. The second one reads parts, sorts and writes them.
"""

from __future__ import annotations

import heapq
import http.client
import time
from typing import TYPE_CHECKING

from openwhisk import microtask

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

RECORD = 100
PARTS = 32


class Objects:
    """The objects of the benchmark's server, and how long what was done with them took."""

    def __init__(self, address: str) -> None:
        self.connection = http.client.HTTPConnection(address)
        self.phases: list[tuple[str, float, float, float]] = []

    def get(self, name: str) -> bytes:
        """Read an object."""
        self.connection.request("GET", "/" + name)
        return self.connection.getresponse().read()

    def put(self, name: str, data: bytes) -> None:
        """Write an object."""
        self.connection.request("PUT", "/" + name, data)
        self.connection.getresponse().read()

    def phase(self, name: str, cpu: float, work: Callable[[], Any]) -> Any:
        """Do work in a phase, and note when it began and ended and what it took of the processors."""
        with microtask(name, cpu=cpu):
            began, took = time.time(), time.process_time()
            result = work()
            self.phases.append((name, began, time.time(), time.process_time() - took))
        return result


def partition(data: bytes) -> list[bytes]:
    """Sort records by the first five bits of their keys, and each part by key."""
    parts: list[list[bytes]] = [[] for _ in range(PARTS)]
    for at in range(0, len(data), RECORD):
        parts[data[at] >> 3].append(data[at : at + RECORD])
    return [b"".join(sorted(part)) for part in parts]


def merge(parts: list[bytes]) -> bytes:
    """Merge sorted parts."""
    return b"".join(heapq.merge(*([part[at : at + RECORD] for at in range(0, len(part), RECORD)] for part in parts)))


def main(args: dict[str, Any]) -> dict[str, Any]:
    """Do the part of one activation, and tell its phases."""
    objects = Objects(args["address"])
    n, light = args["n"], args["light"]
    if args["stage"] == 1:
        data = objects.phase("read", light, lambda: objects.get(f"in/{n}"))
        parts = objects.phase("partition", 1, lambda: partition(data))
        objects.phase("write", light, lambda: [objects.put(f"part/{i}/{n}", part) for i, part in enumerate(parts)])
    else:
        parts = objects.phase("gather", light, lambda: [objects.get(f"part/{n}/{i}") for i in range(args["of"])])
        merged = objects.phase("sort", 1, lambda: merge(parts))
        objects.phase("store", light, lambda: objects.put(f"out/{n}", merged))
    return {"phases": objects.phases}
