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
    """How the API is called: host is a URL without a path, auth is UUID:KEY, ca is authorities to trust, in PEM."""

    host: str
    auth: str
    namespace: str
    ca: str


def find(host: str = "", auth: str = "", namespace: str = "") -> Settings:
    """Complete what is given from the environment, and that from the file that `wsk` and `forerun` keep.

    Called for each request: a function's key is new with each activation, and void after it.
    """
    environ = os.environ
    host = host or environ.get("FORERUN_APIHOST") or environ.get("__OW_API_HOST", "")
    auth = auth or environ.get("FORERUN_AUTH") or environ.get("__OW_API_KEY", "")
    namespace = namespace or environ.get("__OW_NAMESPACE", "")
    path = ""
    properties: dict[str, str] = {}
    if not (host and auth):
        path, properties = _read_properties()
        host = host or properties.get("APIHOST", "")
        auth = auth or properties.get("AUTH", "")
        namespace = namespace or properties.get("NAMESPACE", "")
    if not host:
        raise SettingsError(f"It is not known where the API is (__OW_API_HOST): {_NEXT} as host.")
    if not auth:
        raise SettingsError(f"There is no key for the API (__OW_API_KEY): {_NEXT} as auth.")
    return Settings(host, auth, namespace or "_", _authorities(host, path, properties))


def _authorities(host: str, path: str, properties: dict[str, str]) -> str:
    """Find the authorities of a host, in PEM: FORERUN_CA, else those of the settings, for the settings' host alone.

    The settings have ca.crt beside them, and the authority that was trusted at `forerun login`.
    """
    if host.lower().startswith("http://"):
        return ""
    if asked := os.environ.get("FORERUN_CA"):
        try:
            return _read(asked)
        except (OSError, UnicodeDecodeError) as error:
            raise SettingsError(f"The authority {asked}, which FORERUN_CA names, cannot be read: {error}.") from None
    if not properties:
        try:
            path, properties = _read_properties()
        except SettingsError:  # they are not needed
            return ""
    if not path or _plain(host) != _plain(properties.get("APIHOST", "")):
        return ""
    try:
        found = _read(os.path.join(os.path.dirname(path), "ca.crt"))
    except (OSError, UnicodeDecodeError):  # mostly there is none
        found = ""
    if "-----BEGIN CERTIFICATE-----" not in found:  # the file may be another program's
        found = ""
    if trusted := properties.get("CA"):
        found += f"\n-----BEGIN CERTIFICATE-----\n{trusted}\n-----END CERTIFICATE-----\n"
    return found


def _plain(host: str) -> str:
    return host.lower().rstrip("/").replace("https://", "")


def _read(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()


def _read_properties() -> tuple[str, dict[str, str]]:
    """Read lines NAME=VALUE; a file that nobody asked for may be missing."""
    asked = os.environ.get("WSK_CONFIG_FILE")
    path = asked or os.path.join(os.path.expanduser("~"), ".wskprops")
    try:
        lines = [line.strip() for line in _read(path).split("\n") if not line.startswith("#")]
    except FileNotFoundError:
        if asked:
            raise SettingsError(f"The settings {path}, which WSK_CONFIG_FILE names, are not there.") from None
        return "", {}
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"The settings {path} cannot be read: {error}.") from None
    pairs = (line.partition("=") for line in lines if "=" in line)
    return path, {name.strip().upper(): value.strip() for name, _, value in pairs}
