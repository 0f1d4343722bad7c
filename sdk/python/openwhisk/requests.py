"""The functions of the package requests, for calls of the platform: `from openwhisk import requests`.

    answer = requests.post("/api/v1/namespaces/_/actions/price?blocking=true&result=true", json={"flight": "UA1545"})
    answer.json()

A URL that begins with a slash is the platform's, and so is one that begins with its address. Calls of it go over a
connection that is kept, and show the caller's key where they need one and none was given. All other calls, and options
that `request` does not list, are those of the package requests itself.
"""

from __future__ import annotations

import json as _json
from typing import TYPE_CHECKING

from . import exchange, settings
from .client import basic, quote
from .errors import ConnectionFailed, SettingsError, TimedOut
from .messages import Request

if TYPE_CHECKING:
    import datetime
    from collections.abc import Iterable, Mapping
    from typing import Any

_TIMEOUT = 90.0  # seconds; the API waits at most 60 s
_REDIRECTS = 30
_KEYED = "/api/v1/namespaces"  # below it a key is needed


class RequestException(OSError):
    """A request failed; the name is the one in requests."""

    def __init__(self, *args: object, response: Response | None = None) -> None:
        super().__init__(*args)
        self.response = response


class HTTPError(RequestException):
    """The status of an answer is 400 or more."""


class ConnectionError(RequestException):
    """There was no answer, or none that can be read."""


class Timeout(RequestException):
    """The answer took too long."""


class TooManyRedirects(RequestException):
    """The answers lead from one to another without an end."""


class JSONDecodeError(RequestException, ValueError):
    """The body of an answer is not JSON."""


class exceptions:
    """The errors, under the name that the module has in requests."""

    RequestException = RequestException
    HTTPError = HTTPError
    ConnectionError = ConnectionError
    Timeout = Timeout
    TooManyRedirects = TooManyRedirects
    JSONDecodeError = JSONDecodeError


class Headers(dict[str, str]):
    """Headers by their names, in any case."""

    def __getitem__(self, name: str) -> str:
        """Return the value of a header."""
        return super().__getitem__(name.lower())

    def __contains__(self, name: object) -> bool:
        """Report whether there is such a header."""
        return isinstance(name, str) and super().__contains__(name.lower())

    def get(self, name: str, default: Any = None) -> Any:
        """Return the value of a header, or a default."""
        return super().get(name.lower(), default)


class Response:
    """An answer of the platform."""

    def __init__(self, url: str, status: int, headers: dict[str, str], content: bytes, seconds: float) -> None:
        self.url = url
        self.status_code = status
        self.headers = Headers(headers)
        self.content = content
        self.history: list[Response] = []
        self._seconds = seconds
        _, _, charset = headers.get("content-type", "").partition("charset=")
        self.encoding = charset.strip("\"' ") or "utf-8"

    @property
    def ok(self) -> bool:
        """Report whether the status is below 400."""
        return self.status_code < 400

    @property
    def text(self) -> str:
        """Return the body as text."""
        try:
            return self.content.decode(self.encoding, errors="replace")
        except LookupError:
            return self.content.decode(errors="replace")

    @property
    def reason(self) -> str:
        """Return the words for the status."""
        from http import HTTPStatus

        return next((status.phrase for status in HTTPStatus if status == self.status_code), "")

    @property
    def elapsed(self) -> datetime.timedelta:
        """Return how long the answer took."""
        from datetime import timedelta

        return timedelta(seconds=self._seconds)

    def json(self, **options: Any) -> Any:
        """Decode the body."""
        try:
            return _json.loads(self.content, **options)
        except (ValueError, RecursionError) as error:
            raise JSONDecodeError(str(error), response=self) from None

    def raise_for_status(self) -> None:
        """Raise HTTPError if the status is 400 or more."""
        if not self.ok:
            side = "Client" if self.status_code < 500 else "Server"
            raise HTTPError(f"{self.status_code} {side} Error: {self.reason} for url: {self.url}", response=self)

    def iter_content(self, chunk_size: int = 1) -> Iterable[bytes]:
        """Return the body in parts."""
        return (self.content[at : at + chunk_size] for at in range(0, len(self.content), chunk_size))

    def close(self) -> None:
        """Do nothing: the answer has been read."""

    def __bool__(self) -> bool:
        """Report whether the status is below 400."""
        return self.ok

    def __enter__(self) -> Response:
        """Return the answer."""
        return self

    def __exit__(self, *_: object) -> None:
        """Do nothing."""

    def __repr__(self) -> str:
        """Write the answer as requests does."""
        return f"<Response [{self.status_code}]>"


def request(method: str, url: str, **options: Any) -> Any:
    """Send a request, with params, data, json, headers, auth, timeout and allow_redirects as in requests."""
    if (call := _platform_call(method, url, options)) is not None:
        return call.follow() if options.get("allow_redirects", method.upper() != "HEAD") else call.send()
    return _real(method, url, options)


def get(url: str, params: Any = None, **options: Any) -> Any:
    """Send a GET."""
    return request("GET", url, params=params, **options)


def options(url: str, **options: Any) -> Any:
    """Send an OPTIONS."""
    return request("OPTIONS", url, **options)


def head(url: str, **options: Any) -> Any:
    """Send a HEAD."""
    return request("HEAD", url, **options)


def post(url: str, data: Any = None, json: Any = None, **options: Any) -> Any:
    """Send a POST."""
    return request("POST", url, data=data, json=json, **options)


def put(url: str, data: Any = None, **options: Any) -> Any:
    """Send a PUT."""
    return request("PUT", url, data=data, **options)


def patch(url: str, data: Any = None, **options: Any) -> Any:
    """Send a PATCH."""
    return request("PATCH", url, data=data, **options)


def delete(url: str, **options: Any) -> Any:
    """Send a DELETE."""
    return request("DELETE", url, **options)


def __getattr__(name: str) -> Any:
    """Return what only the package requests has, Session for one."""
    if name.startswith("__"):
        raise AttributeError(name)
    return getattr(_package(), name)


class _Call:
    """A request of the platform."""

    def __init__(self, host: str, request: Request, timeout: float) -> None:
        self._host = host
        self._request = request
        self._timeout = timeout

    def send(self) -> Response:
        """Send the request and read its answer."""
        import time

        begun = time.monotonic()
        try:
            answer = exchange.send(self._request, self._timeout)
        except TimedOut as error:
            raise Timeout(str(error)) from None
        except ConnectionFailed as error:
            raise ConnectionError(str(error)) from None
        url = self._host + self._request.path
        return Response(url, answer.status, answer.headers, answer.body, time.monotonic() - begun)

    def follow(self) -> Any:
        """Send the request, and go where its answer leads."""
        history: list[Response] = []
        call = self
        while True:
            answer = call.send()
            answer.history = list(history)
            target = answer.headers.get("location")
            if answer.status_code not in (301, 302, 303, 307, 308) or not target:
                return answer
            if len(history) == _REDIRECTS:
                raise TooManyRedirects(f"Exceeded {_REDIRECTS} redirects.", response=answer)
            history.append(answer)
            url = _join(answer.url, target)
            if not url.startswith(f"{self._host}/"):
                return _real("GET", url, {})
            request = call._request._replace(path=url[len(self._host) :].partition("#")[0])
            if answer.status_code < 307 and request.method != "HEAD":
                headers = {n: v for n, v in request.headers.items() if n.lower() != "content-type"}
                request = request._replace(method="GET", body=b"", headers=headers)
            call = _Call(self._host, request, self._timeout)


def _platform_call(method: str, url: str, options: dict[str, Any]) -> _Call | None:
    """Return the call if it is one of the platform, without options that only the package requests has."""
    given = {name: value for name, value in options.items() if value is not None}
    auth, data = given.pop("auth", None), given.pop("data", None)
    timeout = given.pop("timeout", _TIMEOUT)
    params, document, headers = given.pop("params", None), given.pop("json", None), dict(given.pop("headers", {}))
    given.pop("allow_redirects", None)
    plain_auth = auth is None or (isinstance(auth, tuple) and len(auth) == 2)
    plain_data = data is None or isinstance(data, (bytes, str, dict, list))
    host, found = _platform(url)
    if given or not plain_auth or not plain_data or found is None:
        return None
    path = _with_query(url[len(host) :] if not url.startswith("/") else url, params)
    names = {name.lower() for name in headers}
    if "authorization" not in names and (auth is not None or path.startswith(_KEYED)):
        headers["Authorization"] = basic(":".join(auth) if auth is not None else found.auth)
    body, kind = _body(data, document)
    if kind and "content-type" not in names:
        headers["Content-Type"] = kind
    _check(method, path, headers)
    wait = max(part or _TIMEOUT for part in timeout) if isinstance(timeout, tuple) else float(timeout)
    address = exchange.parse_host(found.host, found.ca)
    return _Call(host, Request(address, method.upper(), path, headers, body), wait)


def _platform(url: str) -> tuple[str, settings.Settings | None]:
    """Find how the platform is called if the URL is one of it: its scheme and host, and the settings."""
    try:
        found = settings.find()
    except SettingsError:
        if url.startswith("/"):
            raise
        return "", None
    host = found.host.rstrip("/")
    host = host if "://" in host else f"https://{host}"
    ours = url.startswith("/") or url.lower().startswith(f"{host.lower()}/")
    return host, found if ours else None


def _with_query(path: str, params: Any) -> str:
    path = path.partition("#")[0]
    if not params:
        return path
    more = params.decode() if isinstance(params, bytes) else params if isinstance(params, str) else _form(params)
    return path + ("&" if "?" in path else "?") + more


def _form(pairs: Any) -> str:
    """Write pairs, or a dictionary whose values may be lists, as a form."""
    flat: list[tuple[Any, Any]] = []
    for name, value in pairs.items() if isinstance(pairs, dict) else pairs:
        values = value if isinstance(value, (list, tuple)) else [value]
        flat += [(name, each) for each in values if each is not None]
    return "&".join(f"{quote(str(name))}={quote(str(value))}" for name, value in flat)


def _body(data: Any, document: Any) -> tuple[bytes, str]:
    """Return the body of a request and its type."""
    if data:
        if isinstance(data, (bytes, str)):
            return data.encode() if isinstance(data, str) else data, ""
        return _form(data).encode(), "application/x-www-form-urlencoded"
    if document is None:
        return b"", ""
    try:
        return _json.dumps(document, allow_nan=False).encode(), "application/json"
    except ValueError as error:
        raise RequestException(str(error)) from None


def _check(method: str, path: str, headers: Mapping[str, str]) -> None:
    """Refuse what would end a line of the request's head."""
    words = [method, path, *headers, *headers.values()]
    if (
        not all(isinstance(word, str) and "\r" not in word and "\n" not in word for word in words)
        or " " in method + path
    ):
        raise RequestException("A method, URL or header must be text without a line end, and a URL has no space.")


def _join(url: str, target: str) -> str:
    """Find where a redirect leads."""
    from urllib.parse import urljoin

    return urljoin(url, target)


def _package() -> Any:
    """Import the package requests."""
    try:
        import requests
    except ImportError:
        raise ImportError(
            "The package requests is not installed: only calls of the platform work without it."
        ) from None
    return requests


def _real(method: str, url: str, options: dict[str, Any]) -> Any:
    """Call the package requests; its errors have the names here."""
    package = _package()
    try:
        return package.request(method, url, **options)
    except package.RequestException as error:
        for name in ("HTTPError", "Timeout", "ConnectionError", "TooManyRedirects"):
            if isinstance(error, getattr(package, name)):
                raise getattr(exceptions, name)(*error.args, response=error.response) from error
        raise RequestException(*error.args, response=error.response) from error
