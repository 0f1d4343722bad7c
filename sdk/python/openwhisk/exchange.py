"""One exchange with the API: a request, and its answer over the protocol that reaches the server.

Plain http, as inside a function, is HTTP/1.1. With https it is HTTP/3 where the package aioquic is installed and UDP
gets through (see http3), else HTTP/1.1 over TLS.
"""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

from . import http1
from .errors import ConnectionFailed, SettingsError, TimedOut
from .messages import Address

if TYPE_CHECKING:
    from .messages import Request, Response


def parse_host(text: str, ca: str = "") -> Address:
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
    return Address(host, number, secure, ca if secure else "")


def send(request: Request, timeout: float) -> Response:
    """Send one request and read its answer; timeout is in seconds, for each wait on the network."""
    where = f"The API at {request.address.authority}"
    try:
        if request.address.secure:
            from . import http3  # which a function never needs

            return http3.send(request, timeout)
        return http1.send(request, timeout)
    except http1.Malformed as error:
        raise ConnectionFailed(f"{where} gave an answer that cannot be read: {error}. Is it OpenWhisk's API?") from None
    except socket.timeout:  # TimeoutError, but for Python 3.9
        raise TimedOut(f"{where} did not answer within {timeout:g} s: give Client(...) a longer timeout.") from None
    except OSError as error:
        if type(error).__name__ == "SSLCertVerificationError":
            raise ConnectionFailed(
                f"{where} has a certificate that no trusted authority signed ({error}): "
                "name the authority's file in FORERUN_CA."
            ) from None
        raise ConnectionFailed(
            f"{where} cannot be reached: {error.strerror or error}. Does the server run there?"
        ) from None
