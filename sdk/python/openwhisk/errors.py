"""What can go wrong: each error names its cause, and what to do next."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any


class OpenWhiskError(Exception):
    """Whatever this package raises; its text is a sentence for a person."""


class SettingsError(OpenWhiskError):
    """It is not known where the API is, or with which key it is called."""


class ConnectionFailed(OpenWhiskError):
    """The API was not reached, or its answer could not be read. Whether the request had an effect is not known."""


class TimedOut(ConnectionFailed):
    """The API did not answer in time."""


class APIError(OpenWhiskError):
    """The API refused the request.

    status is that of HTTP, message the API's own sentence, transaction the id under which its log has the request.
    """

    def __init__(self, text: str, *, status: int, message: str = "", transaction: str = "") -> None:
        super().__init__(text)
        self.status = status
        self.message = message
        self.transaction = transaction


class Unauthorized(APIError):
    """The key is not valid (401), or not for this (403)."""


class NotFound(APIError):
    """There is no such action, trigger or activation (404)."""


class TooManyRequests(APIError):
    """The namespace is over a limit (429): try again later."""


class ActionFailed(OpenWhiskError):
    """The action ran, and ended with an error.

    error is what it returned as "error", result all that it returned, activation_id the key to its record and logs.
    """

    def __init__(self, text: str, *, error: Any, result: dict[str, Any], activation_id: str) -> None:
        super().__init__(text)
        self.error = error
        self.result = result
        self.activation_id = activation_id


class NotFinished(OpenWhiskError):
    """The action still runs, for longer than the API waits; its result will be found under activation_id."""

    def __init__(self, text: str, *, activation_id: str) -> None:
        super().__init__(text)
        self.activation_id = activation_id
