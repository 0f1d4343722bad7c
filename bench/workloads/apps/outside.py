"""What functions of the workloads have at hand: the state, the companies that answer questions and those that act."""

import json
import os
import socket

import redis

# Without its defaults redis-py looks neither its own version nor the server's features up, in each process anew.
options = {"protocol": 2, "driver_info": None, "decode_responses": True}
state = redis.Redis.from_url(os.environ["REDIS_URL"], **options)


def request(host: str, method: str, path: str) -> int:
    """Ask a company and return the number of its answer, from 0 to 99."""
    head = f"{method} /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
    with socket.create_connection((host, 80), timeout=20) as connection:
        connection.sendall(head.encode())
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    head, _, body = answer.decode().partition("\r\n\r\n")
    if not head.startswith("HTTP/1.1 200 "):
        raise RuntimeError(f"The company answered: {head}")
    return json.loads(body)["value"]


def ask(path: str) -> int:
    """Ask a company that changes nothing; the number is always the same for the same question."""
    return request("10.77.0.2", "GET", path)


def tell(path: str) -> int:
    """Have a company do something: an effect. The number is as for ask."""
    return request("10.77.0.1", "POST", path)


def document(key: str) -> dict:
    """Read a document of the state; one that is not there is empty."""
    return json.loads(state.get(key) or "{}")


def without(args: dict, *names: str) -> dict:
    """Leave out some members."""
    return {name: value for name, value in args.items() if name not in names}
