"""Keeps tickets of servers, with which their next connections send early data, in the user's cache folder.

A file is one ticket, for its owner alone, and is used once: a process takes it by renaming it, which one process can. A
server knows its tickets for two hours. The folder also notes the servers that UDP does not reach.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

    from .messages import Address

_LIFE = 2 * 3600.0  # seconds
_MOST = 8  # tickets of a server
_BLOCKED = 600.0  # seconds without another try of UDP

_blocked: dict[Address, float] = {}  # until when, in seconds since 1970


def put(address: Address, ticket: dict[str, Any]) -> None:
    """Keep a ticket. Without a folder to write to it is forgotten."""
    name = _name(address)
    for old in _all(name)[_MOST - 1 :]:
        _remove(old)
    _write(f"{name}-{os.urandom(8).hex()}", json.dumps(ticket).encode())


def take(address: Address) -> dict[str, Any] | None:
    """Take the newest ticket of a server, which no other call gets."""
    for path in _all(_name(address)):
        taken = f"{path}.{os.getpid()}"
        try:
            fresh = time.time() - os.stat(path).st_mtime < _LIFE
            os.rename(path, taken)
            with open(taken, "rb") as file:
                ticket = json.loads(file.read())
        except (OSError, ValueError):
            continue  # another process was faster
        finally:
            _remove(taken)
        if fresh and isinstance(ticket, dict):
            return ticket
    return None


def block(address: Address) -> None:
    """Note that UDP does not reach a server."""
    _blocked[address] = time.time() + _BLOCKED
    _write(f"{_name(address)}.blocked", b"")


def is_blocked(address: Address) -> bool:
    """Report whether UDP did not reach a server in the last ten minutes."""
    now = time.time()
    if now < _blocked.get(address, 0.0):
        return True
    try:
        return 0 <= now - os.stat(os.path.join(_folder(), f"{_name(address)}.blocked")).st_mtime < _BLOCKED
    except OSError:
        return False


def _folder() -> str:
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(cache, "forerun", "quic")


def _name(address: Address) -> str:
    return hashlib.sha256(f"{address.authority}\n{address.ca}".encode()).hexdigest()[:32]


def _all(name: str) -> list[str]:
    """List the tickets of a server, the newest first."""
    found = []
    try:
        for entry in os.scandir(_folder()):
            if entry.name.startswith(f"{name}-") and "." not in entry.name:
                found.append((entry.stat().st_mtime, entry.path))
    except OSError:
        pass
    return [path for _, path in sorted(found, reverse=True)]


def _write(name: str, content: bytes) -> None:
    """Write a file as a whole, for its owner alone."""
    folder = _folder()
    new = os.path.join(folder, f"{name}.{os.urandom(8).hex()}")
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(content)
        os.replace(new, os.path.join(folder, name))
    except OSError:
        _remove(new)


def _remove(path: str) -> None:
    with contextlib.suppress(OSError):
        os.remove(path)
