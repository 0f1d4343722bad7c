"""The client: actions, activations and triggers of one namespace."""

from __future__ import annotations

import binascii
import json
from typing import TYPE_CHECKING, overload

from . import exchange, settings
from .errors import ActionFailed, APIError, ConnectionFailed, NotFinished, NotFound, TooManyRequests, Unauthorized
from .messages import Request

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Literal

    from .messages import Response

    Documents = list[dict[str, Any]]
    Lines = list[str]
    Result = Any  # a dictionary or a list: which, its caller knows

_SAFE = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-~@")
_NEXT = {
    400: "correct the request",
    401: "check the key; a function's own is void once its activation has ended",
    403: "use a key that may do this",
    404: "check the name and the namespace, or deploy it first",
    409: "it is in use or of another sort: see what is there under this name",
    413: "send less: put large data into the state and pass its key",
    429: "try again later",
}


class Client:
    """A client of one namespace; safe to share between threads.

    host is like http://127.0.0.1:3233, auth is UUID:KEY. What is left out is looked up for each request: first in the
    environment that a function has, then in the settings of `wsk`. timeout is in seconds, for each wait on the network;
    the API itself waits at most 60 s for a blocking invocation.
    """

    def __init__(self, host: str = "", auth: str = "", namespace: str = "", timeout: float = 90.0) -> None:
        self._given = (host, auth, namespace)
        self._timeout = timeout
        self.actions = Actions(self)
        self.activations = Activations(self)
        self.triggers = Triggers(self)

    def request(
        self,
        method: str,
        name: str,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        """Send one request under a namespace: name is like "actions/hello" or "/other/actions/hello".

        Raises what the API refuses; answers that tell of an action, 502 among them, are returned.
        """
        found = settings.find(*self._given)
        namespace, path = name[1:].split("/", 1) if name.startswith("/") else (found.namespace, name)
        target = f"/api/v1/namespaces/{quote(namespace)}/{quote(path, slash=True)}{_query(query or {})}"
        content = b"" if body is None else _encode(body)
        all_headers = {"Authorization": basic(found.auth)}
        if body is not None:
            all_headers["Content-Type"] = "application/json"
        all_headers.update(headers or {})
        address = exchange.parse_host(found.host, found.ca)
        response = exchange.send(Request(address, method, target, all_headers, content), self._timeout)
        if response.status < 300 or response.status == 502:
            return response
        raise _refusal(f"{method} {name}", response)

    def document(self, method: str, name: str, query: Mapping[str, Any] | None = None, body: Any = None) -> Any:
        """Send one request and decode its answer."""
        return decode(self.request(method, name, query, body))


class Actions:
    """The actions of a namespace."""

    def __init__(self, client: Client) -> None:
        self._client = client

    @overload
    def invoke(
        self,
        name: str,
        params: Mapping[str, Any] | None = None,
        *,
        blocking: Literal[True] = True,
        wait: float | None = None,
        idempotency_key: str = "",
    ) -> Result: ...

    @overload
    def invoke(
        self, name: str, params: Mapping[str, Any] | None = None, *, blocking: Literal[False], idempotency_key: str = ""
    ) -> str: ...

    def invoke(
        self,
        name: str,
        params: Mapping[str, Any] | None = None,
        *,
        blocking: bool = True,
        wait: float | None = None,
        idempotency_key: str = "",
    ) -> Result | str:
        """Invoke an action by NAME, PACKAGE/NAME or /NAMESPACE/PACKAGE/NAME; see openwhisk.invoke."""
        query: dict[str, Any] = {"blocking": "true", "result": "true"} if blocking else {}
        if blocking and wait is not None:
            query["timeout"] = int(wait * 1000)
        headers = {"Idempotency-Key": _header("idempotency_key", idempotency_key)} if idempotency_key else {}
        response = self._client.request("POST", _within("actions", name), query, dict(params or {}), headers)
        document = decode(response)
        if not blocking:
            return str(document["activationId"])
        if response.status == 202:
            activation_id = str(document["activationId"])
            raise NotFinished(
                f"{name} still runs: later, activations.result({activation_id!r}) has its result.",
                activation_id=activation_id,
            )
        if response.status == 502:
            raise _failure(name, response, document)
        return _result(document)

    def list(self, *, limit: int | None = None, skip: int | None = None) -> Documents:
        """List the actions, the newest first; 30 unless limit (at most 200) says otherwise."""
        return list(self._client.document("GET", "actions", {"limit": limit, "skip": skip}))

    def get(self, name: str) -> dict[str, Any]:
        """Return what is deployed under a name, with its code."""
        return _object(self._client.document("GET", _within("actions", name)))


class Activations:
    """The activations of a namespace, by their ids."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def list(
        self,
        *,
        name: str | None = None,
        limit: int | None = None,
        skip: int | None = None,
        since: int | None = None,
        upto: int | None = None,
        docs: bool = False,
    ) -> Documents:
        """List activations, the newest first: of an action, between two times (ms since 1970), whole with docs."""
        query = {
            "name": name,
            "limit": limit,
            "skip": skip,
            "since": since,
            "upto": upto,
            "docs": "true" if docs else None,
        }
        return list(self._client.document("GET", "activations", query))

    def get(self, activation_id: str) -> dict[str, Any]:
        """Return the record: what was executed, when, its logs and its response."""
        return _object(self._client.document("GET", f"activations/{activation_id}"))

    def logs(self, activation_id: str) -> Lines:
        """Return the lines that the activation wrote, each with its time and stream."""
        return list(_object(self._client.document("GET", f"activations/{activation_id}/logs"))["logs"])

    def result(self, activation_id: str) -> Result:
        """Return what the activation returned, its error included; NotFound until it has ended."""
        return _result(_object(self._client.document("GET", f"activations/{activation_id}/result"))["result"])


class Triggers:
    """The triggers of a namespace."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def fire(self, name: str, params: Mapping[str, Any] | None = None) -> str | None:
        """Fire a trigger; returns the id of its activation, or None if no rule follows it."""
        response = self._client.request("POST", _within("triggers", name), None, dict(params or {}))
        return None if response.status == 204 else str(_object(decode(response))["activationId"])


@overload
def invoke(
    name: str,
    params: Mapping[str, Any] | None = None,
    blocking: Literal[True] = True,
    *,
    wait: float | None = None,
    idempotency_key: str = "",
) -> Result: ...


@overload
def invoke(
    name: str, params: Mapping[str, Any] | None = None, *, blocking: Literal[False], idempotency_key: str = ""
) -> str: ...


def invoke(
    name: str,
    params: Mapping[str, Any] | None = None,
    blocking: bool = True,
    *,
    wait: float | None = None,
    idempotency_key: str = "",
) -> Result | str:
    """Invoke an action and return its result; with blocking=False, return the activation's id at once.

    wait is how long to wait for the result, in seconds (default and most: 60). With an idempotency_key a repeated
    request attaches to the first instead of running the action again.

    Raises ActionFailed if the action ended with an error, NotFinished if it runs for longer than the wait, and the
    other errors of this package if the API was not reached or refused.
    """
    actions = Client().actions
    if not blocking:
        return actions.invoke(name, params, blocking=False, idempotency_key=idempotency_key)
    return actions.invoke(name, params, wait=wait, idempotency_key=idempotency_key)


def fire(name: str, params: Mapping[str, Any] | None = None) -> str | None:
    """Fire a trigger; returns the id of its activation, or None if no rule follows it."""
    return Client().triggers.fire(name, params)


def decode(response: Response) -> Any:
    """Decode the JSON document of an answer."""
    try:
        return json.loads(response.body)
    except (ValueError, RecursionError) as error:
        raise ConnectionFailed(f"The answer of the API (status {response.status}) is not JSON: {error}.") from None


def _result(document: Any) -> Result:
    return document if isinstance(document, list) else _object(document)


def _object(document: Any) -> dict[str, Any]:
    if not isinstance(document, dict):
        raise ConnectionFailed(
            f"The API answered with {type(document).__name__}, not an object: is it OpenWhisk's API?"
        )
    return document


def _within(collection: str, name: str) -> str:
    """Put a name of the form NAME, PACKAGE/NAME or /NAMESPACE/[PACKAGE/]NAME into the path of its collection."""
    if not name.startswith("/"):
        return f"{collection}/{name}"
    namespace, separator, rest = name[1:].partition("/")
    if not (separator and namespace and rest):
        raise ValueError(f"{name!r} is not a name: write NAME, PACKAGE/NAME or /NAMESPACE/NAME")
    return f"/{namespace}/{collection}/{rest}"


def basic(auth: str) -> str:
    """Write UUID:KEY as the value of the header Authorization."""
    return "Basic " + binascii.b2a_base64(auth.encode(), newline=False).decode()


def quote(text: str, slash: bool = False) -> str:
    """Write text for a URL; slash keeps its slashes."""
    return "".join(chr(b) if b in _SAFE or (slash and b == 0x2F) else f"%{b:02X}" for b in text.encode())


def _query(query: Mapping[str, Any]) -> str:
    pairs = [f"{name}={quote(str(value))}" for name, value in query.items() if value is not None]
    return "?" + "&".join(pairs) if pairs else ""


def _header(name: str, value: str) -> str:
    if not (value.isascii() and value.isprintable()):
        raise ValueError(f"{name} {value!r} must be printable ASCII")
    return value


def _encode(body: Any) -> bytes:
    try:
        return json.dumps(body, allow_nan=False, separators=(",", ":")).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"the parameters are no JSON: {error}") from None


def _refusal(what: str, response: Response) -> APIError:
    """Word what the API refused; its own sentence is in the document's "error"."""
    try:
        document = json.loads(response.body)
    except (ValueError, RecursionError):
        document = None
    message, transaction = "", ""
    if isinstance(document, dict):
        message, transaction = str(document.get("error", "")), str(document.get("code", ""))
    status = response.status
    reason = message.rstrip(".") or "no reason was given"
    step = _NEXT.get(
        status, f"see the server's log, transaction {transaction}" if transaction else "see the server's log"
    )
    kinds = {401: Unauthorized, 403: Unauthorized, 404: NotFound, 429: TooManyRequests}
    return kinds.get(status, APIError)(
        f"{what} was refused ({status}): {reason}; {step}.", status=status, message=message, transaction=transaction
    )


def _failure(name: str, response: Response, document: Any) -> ActionFailed:
    result = _object(document)
    activation_id = response.headers.get("x-openwhisk-activation-id", "")
    error = result.get("error")
    text = error if isinstance(error, str) else json.dumps(error)
    logs = f"; activations.logs({activation_id!r}) has what it wrote" if activation_id else ""
    return ActionFailed(
        f"{name} failed: {text.rstrip('.')}{logs}.", error=error, result=result, activation_id=activation_id
    )
