"""JSON, through the C functions that the json module is made of.

That module brings re, enum, functools and collections with it: a third of a cold start, and a quarter of the memory
whose page tables each fork of a handler copies. Where a Python lacks these functions the module does the work.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_WHITESPACE = " \t\n\r"


class _Settings:
    """What json.JSONDecoder() tells its scanner."""

    strict = True
    object_hook = object_pairs_hook = None
    parse_float, parse_int, parse_constant = float, int, float


def _refuse(value: Any) -> Any:
    raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")


try:
    from _json import encode_basestring_ascii as _quote
    from _json import make_encoder as _make_encoder
    from _json import make_scanner as _make_scanner
except ImportError:
    import json

    def loads(data: bytes) -> Any:
        """Return the value of a JSON text in UTF-8; raises ValueError."""
        return json.loads(data)

    def dumps(value: Any, sort_keys: bool = False) -> bytes:
        """Return the JSON text of a value, without spaces; raises as json.dumps does."""
        return json.dumps(value, allow_nan=False, separators=(",", ":"), sort_keys=sort_keys).encode()
else:
    _scan = _make_scanner(_Settings)

    def loads(data: bytes) -> Any:
        """Return the value of a JSON text in UTF-8; raises ValueError."""
        text = str(data, "utf-8")
        try:
            value, end = _scan(text, len(text) - len(text.lstrip(_WHITESPACE)))
        except StopIteration as stop:
            raise ValueError(f"Expecting value: char {stop.value}") from None
        if end != len(text) and text[end:].strip(_WHITESPACE):
            raise ValueError(f"Extra data: char {end}")
        return value

    def dumps(value: Any, sort_keys: bool = False) -> bytes:
        """Return the JSON text of a value, without spaces; raises as json.dumps does."""
        encode = _make_encoder({}, _refuse, _quote, None, ":", ",", sort_keys, False, False)
        return "".join(encode(value, 0)).encode()
