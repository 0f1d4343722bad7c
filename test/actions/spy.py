"""A function that tries what only others may: it returns what it was answered."""

from __future__ import annotations

import base64
import json
import os
import socket
import urllib.error
import urllib.request

import redis

state = redis.Redis.from_url(os.environ["REDIS_URL"], socket_timeout=None, decode_responses=True)


def main(args: dict) -> dict:
    """Try all that args name."""
    return {
        "api": {path: api(method, path, args.get("key")) for method, path in args.get("api", [])},
        "paths": {path: read(path) for path in args.get("paths", [])},
        "commands": {command: execute(command) for command in args.get("commands", [])},
        "connects": {address: connect(*address.rsplit(":", 1)) for address in args.get("connects", [])},
        "key": os.environ["__OW_API_KEY"],
    }


def api(method: str, path: str, key: str | None) -> int:
    """Ask the API, with another's key if there is one."""
    request = urllib.request.Request(os.environ["__OW_API_HOST"] + path, method=method)  # noqa: S310 - http
    key = base64.b64encode((key or os.environ["__OW_API_KEY"]).encode()).decode()
    request.add_header("Authorization", f"Basic {key}")
    if method == "PUT":
        request.add_header("Content-Type", "application/json")
        request.data = json.dumps({"exec": {"kind": "python:3", "code": "x"}}).encode()
    try:
        with urllib.request.urlopen(request) as answer:  # noqa: S310 - http
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


def read(path: str) -> str:
    """Open a file, or list a folder."""
    try:
        if os.path.isdir(path):
            return f"has {len(os.listdir(path))} entries"
        with open(path, "rb") as file:
            return f"has {len(file.read(1000))} bytes"
    except OSError as error:
        return error.strerror


def execute(command: str) -> object:
    """Send a command to the state."""
    try:
        return state.execute_command(*command.split())
    except redis.RedisError as error:
        return f"error: {error}"


def connect(host: str, port: str) -> str:
    """Connect to an address."""
    try:
        socket.create_connection((host, int(port)), timeout=30).close()
    except OSError as error:
        return error.strerror or str(error)
    return "connected"
