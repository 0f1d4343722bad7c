"""A client of OpenWhisk's API, as Forerun and OpenWhisk serve it.

    import openwhisk

    def main(args):
        price = openwhisk.invoke("price", {"flight": "UA1545"})
        return {"total": price["amount"] + 12}

Inside a function it finds the API and the key by itself (__OW_API_HOST, __OW_API_KEY, __OW_NAMESPACE); outside it reads
the settings of `wsk` (WSK_CONFIG_FILE or ~/.wskprops). It needs the standard library alone, and imports little of that:
every cold start of a function pays for its imports, and every activation for those made late.
"""

from __future__ import annotations

from .client import Client, fire, invoke
from .errors import (
    ActionFailed,
    APIError,
    ConnectionFailed,
    NotFinished,
    NotFound,
    OpenWhiskError,
    SettingsError,
    TimedOut,
    TooManyRequests,
    Unauthorized,
)
from .phases import microtask

__all__ = [
    "APIError",
    "ActionFailed",
    "Client",
    "ConnectionFailed",
    "NotFinished",
    "NotFound",
    "OpenWhiskError",
    "SettingsError",
    "TimedOut",
    "TooManyRequests",
    "Unauthorized",
    "fire",
    "invoke",
    "microtask",
]
