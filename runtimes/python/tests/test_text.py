"""The runtime's JSON, held against the json module's."""

from __future__ import annotations

import json
import math
import random
from typing import Any

import pytest
from forerun_runtime import text


def value(draw: random.Random, depth: int = 0) -> Any:
    """Return any JSON value."""
    kinds = 8 if depth < 4 else 6
    kind = draw.randrange(kinds)
    if kind == 6:
        return [value(draw, depth + 1) for _ in range(draw.randrange(4))]
    if kind == 7:
        return {word(draw): value(draw, depth + 1) for _ in range(draw.randrange(4))}
    return [None, True, draw.randrange(-(10**20), 10**20), draw.uniform(-1e9, 1e9), word(draw), ""][kind]


def word(draw: random.Random) -> str:
    """Return characters of every plane, quotes and control characters among them."""
    return "".join(
        chr(draw.choice((draw.randrange(128), draw.randrange(0x20, 0xD800), 0x1F600))) for _ in range(draw.randrange(9))
    )


def test_as_the_json_module() -> None:
    draw = random.Random(7)
    for _ in range(500):
        v = value(draw)
        assert text.dumps(v) == json.dumps(v, separators=(",", ":")).encode()
        spaced = json.dumps(v, indent=1, ensure_ascii=False) + " \n\t\r"
        assert text.loads(spaced.encode("utf-8")) == v


def test_sorted_keys() -> None:
    assert text.dumps({"b": 1, "a": {"d": 2, "c": 3}}, sort_keys=True) == b'{"a":{"c":3,"d":2},"b":1}'


@pytest.mark.parametrize("bad", [b"", b" ", b"{", b'{"a":1}x', b"nul", b"[1,]", b'"\x01"', b"\xff", b'{"a" 1}'])
def test_no_json(bad: bytes) -> None:
    with pytest.raises(ValueError):
        text.loads(bad)


def test_what_is_no_json_is_not_written() -> None:
    circle: list[Any] = []
    circle.append(circle)
    for bad, kind in ((math.nan, ValueError), (circle, ValueError), ({1, 2}, TypeError), ({(1,): 2}, TypeError)):
        with pytest.raises(kind) as theirs:
            json.dumps(bad, allow_nan=False)
        with pytest.raises(kind) as ours:
            text.dumps(bad)
        assert str(ours.value).split(":")[0] == str(theirs.value).split(":")[0]
