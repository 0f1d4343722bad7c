"""What is exchanged: requests, answers, and where servers listen."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping


class Address(NamedTuple):
    """Where a server listens. ca is the certificates, in PEM, of authorities to trust beside the system's."""

    host: str
    port: int
    secure: bool
    ca: str = ""

    @property
    def authority(self) -> str:
        """Write HOST:PORT."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Request(NamedTuple):
    """A request; path includes the query."""

    address: Address
    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def repeatable(self) -> bool:
        """Report whether the server carries it out once in effect, even if it comes twice."""
        return self.method in ("GET", "HEAD") or any(name.lower() == "idempotency-key" for name in self.headers)


class Response(NamedTuple):
    """An answer; the names of its headers are in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes
