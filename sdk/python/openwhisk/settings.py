"""Finds where the API is and who calls it."""

from __future__ import annotations

import os
from typing import NamedTuple

from .errors import SettingsError

_NEXT = (
    "inside a function the platform sets it, unless the annotation provide-api-key is false; "
    "elsewhere run `forerun login`, or give it to Client(...)"
)


class Settings(NamedTuple):
    """How the API is called: host is a URL without a path, auth is UUID:KEY."""

    host: str
    auth: str
    namespace: str


def find(host: str = "", auth: str = "", namespace: str = "") -> Settings:
    """Complete what is given from the environment, and that from the file that `wsk` and `forerun` keep.

    Called for each request: a function's key is new with each activation, and void after it.
    """
    environ = os.environ
    host = host or environ.get("FORERUN_APIHOST") or environ.get("__OW_API_HOST", "")
    auth = auth or environ.get("FORERUN_AUTH") or environ.get("__OW_API_KEY", "")
    namespace = namespace or environ.get("__OW_NAMESPACE", "")
    if not (host and auth):
        properties = _read_properties()
        host = host or properties.get("APIHOST", "")
        auth = auth or properties.get("AUTH", "")
        namespace = namespace or properties.get("NAMESPACE", "")
    if not host:
        raise SettingsError(f"It is not known where the API is (__OW_API_HOST): {_NEXT} as host.")
    if not auth:
        raise SettingsError(f"There is no key for the API (__OW_API_KEY): {_NEXT} as auth.")
    return Settings(host, auth, namespace or "_")


def _read_properties() -> dict[str, str]:
    """Read lines NAME=VALUE; a file that nobody asked for may be missing."""
    asked = os.environ.get("WSK_CONFIG_FILE")
    path = asked or os.path.join(os.path.expanduser("~"), ".wskprops")
    try:
        with open(path, encoding="utf-8") as file:
            lines = [line.strip() for line in file if not line.startswith("#")]
    except FileNotFoundError:
        if asked:
            raise SettingsError(f"The settings {path}, which WSK_CONFIG_FILE names, are not there.") from None
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"The settings {path} cannot be read: {error}.") from None
    pairs = (line.partition("=") for line in lines if "=" in line)
    return {name.strip().upper(): value.strip() for name, _, value in pairs}
