"""Frames, held against the byte vectors that the Go side is held against too."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from forerun_runtime import wire

VECTORS: dict[str, Any] = json.loads((Path(__file__).parents[2] / "testdata" / "vectors.json").read_text())


def read(data: bytes) -> wire.Frame | None:
    """Read a frame of a stream that ends behind data."""
    reader, writer = os.pipe()
    try:
        os.write(writer, data)
        os.close(writer)
        return wire.read(reader)
    finally:
        os.close(reader)


def test_version() -> None:
    assert VECTORS["protocol"] == wire.PROTOCOL


@pytest.mark.parametrize("vector", VECTORS["frames"], ids=lambda v: v["name"])
def test_frames(vector: dict[str, Any]) -> None:
    data, payload = bytes.fromhex(vector["bytes"]), bytes.fromhex(vector["payload"])
    assert read(data) == wire.Frame(vector["type"], vector["header"], payload)
    assert wire.pack(vector["type"], vector["header"], payload) == data


@pytest.mark.parametrize("vector", VECTORS["refused"], ids=lambda v: v["name"])
def test_refused(vector: dict[str, Any]) -> None:
    with pytest.raises(wire.ProtocolError):
        read(bytes.fromhex(vector["bytes"]))


def test_end_of_stream() -> None:
    assert read(b"") is None


def test_too_large_to_write() -> None:
    with pytest.raises(wire.ProtocolError):
        wire.pack(wire.RESULT, None, bytes(wire.MAX_PAYLOAD_BYTES + 1))
