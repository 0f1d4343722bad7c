"""Tests of kept connections, and of the drop-in for requests, against a server that keeps connections."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import openwhisk
import pytest
from openwhisk import requests, tickets
from openwhisk.messages import Address


class Platform(ThreadingHTTPServer):
    """A server that says what it was asked, on connections that it numbers."""

    daemon_threads = True
    cut = False  # the next request of a kept connection gets no answer

    def __init__(self) -> None:
        self.connections = 0
        super().__init__(("127.0.0.1", 0), Handler)


class Handler(BaseHTTPRequestHandler):
    """Answers with the request."""

    protocol_version = "HTTP/1.1"
    server: Platform

    def setup(self) -> None:
        super().setup()
        self.server.connections += 1
        self.number, self.asked = self.server.connections, 0

    def answer(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"] or 0))
        self.asked += 1
        if self.server.cut and self.asked > 1:
            self.close_connection = True
            return
        if self.path == "/api/v1/web/from":
            self.send_response(302)
            self.send_header("Location", "to?x=1")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        names = ("authorization", "content-type", "idempotency-key")
        said = {
            "on": self.number,
            "line": f"{self.command} {self.path}",
            "body": body.decode(),
            **{name: self.headers[name] for name in names if name in self.headers},
        }
        content = json.dumps(said).encode()
        self.send_response(404 if "absent" in self.path else 200)
        self.send_header("Content-Type", "application/json; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = answer

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def platform(monkeypatch: pytest.MonkeyPatch) -> Iterator[Platform]:
    with Platform() as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        monkeypatch.setenv("__OW_API_HOST", f"http://127.0.0.1:{server.server_address[1]}")
        monkeypatch.setenv("__OW_API_KEY", "user:secret")
        monkeypatch.setenv("__OW_NAMESPACE", "guest")
        yield server
        server.shutdown()


def test_a_connection_is_kept(platform: Platform) -> None:
    assert [openwhisk.invoke("a", {"n": n})["on"] for n in range(3)] == [1, 1, 1]
    assert requests.get("/api/v1/namespaces/_/actions").json()["on"] == 1


def test_a_kept_connection_that_ends(platform: Platform) -> None:
    """What the server may have carried out is not sent again, unless that has one effect."""
    openwhisk.invoke("a")
    platform.cut = True
    assert openwhisk.invoke("a", idempotency_key="k")["on"] == 2
    assert requests.get("/api/v1/namespaces/_/actions").json()["on"] == 3
    with pytest.raises(openwhisk.ConnectionFailed, match="closed the connection"):
        openwhisk.invoke("a")


def test_a_forked_process_has_a_connection_of_its_own(platform: Platform) -> None:
    openwhisk.invoke("a")
    child = os.fork()
    if child == 0:
        os._exit(openwhisk.invoke("a")["on"])
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 2
    assert openwhisk.invoke("a")["on"] == 1


def test_threads_have_connections_of_their_own(platform: Platform) -> None:
    results: list[int] = []

    def call(n: int) -> None:
        for m in range(20):
            results.append(json.loads(openwhisk.invoke("a", {"n": n * 100 + m})["body"])["n"])

    threads = [threading.Thread(target=call, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == [n * 100 + m for n in range(4) for m in range(20)]
    assert platform.connections <= 4


def test_requests(platform: Platform) -> None:
    """The lines of a function that used requests, after its import was changed."""
    host = os.environ["__OW_API_HOST"]
    user, _, key = os.environ["__OW_API_KEY"].partition(":")
    answer = requests.post(
        f"{host}/api/v1/namespaces/_/actions/a",
        params={"blocking": "true", "result": "ä b"},
        json={"n": 1},
        auth=(user, key),
        headers={"Idempotency-Key": "k"},
        timeout=(3, 10),
    )
    answer.raise_for_status()
    assert answer.json() == {
        "on": 1,
        "line": "POST /api/v1/namespaces/_/actions/a?blocking=true&result=%C3%A4%20b",
        "body": '{"n": 1}',
        "authorization": "Basic dXNlcjpzZWNyZXQ=",
        "content-type": "application/json",
        "idempotency-key": "k",
    }
    assert (answer.status_code, answer.ok, answer.reason, answer.url) == (
        200,
        True,
        "OK",
        f"{host}{answer.json()['line'][5:]}",
    )
    assert answer.headers["Content-Type"] == "application/json; charset=utf-8" and "content-TYPE" in answer.headers
    assert json.loads(answer.text) == json.loads(answer.content) == answer.json()
    assert answer.elapsed.total_seconds() > 0 and b"".join(answer.iter_content(7)) == answer.content


@pytest.mark.parametrize("method", ["get", "options", "post", "put", "patch", "delete"])
def test_methods(platform: Platform, method: str) -> None:
    said = getattr(requests, method)("/api/v1/web/guest/default/page").json()
    assert said == {"on": 1, "line": f"{method.upper()} /api/v1/web/guest/default/page", "body": ""}
    assert requests.head("/api/v1/web/page").content == b""
    assert requests.get("/api/v1/web/page").json()["on"] == 1  # nothing of the answer to HEAD is left


@pytest.mark.parametrize(
    ("data", "body", "kind"),
    [
        ({"a": ["1", "2 3"], "b": None}, "a=1&a=2%203", "application/x-www-form-urlencoded"),
        ([("a", "é")], "a=%C3%A9", "application/x-www-form-urlencoded"),
        ("text", "text", None),
        (b"bytes", "bytes", None),
    ],
)
def test_bodies(platform: Platform, data: Any, body: str, kind: str | None) -> None:
    said = requests.post("/api/v1/web/page", data=data).json()
    assert (said["body"], said.get("content-type")) == (body, kind)


def test_redirects(platform: Platform) -> None:
    answer = requests.post("/api/v1/web/from", data="x")
    assert (answer.json()["line"], answer.json()["body"]) == ("GET /api/v1/web/to?x=1", "")
    assert [earlier.status_code for earlier in answer.history] == [302]
    assert requests.get("/api/v1/web/from", allow_redirects=False).status_code == 302


def test_refusals(platform: Platform) -> None:
    answer = requests.get("/api/v1/namespaces/_/actions/absent")
    assert not answer
    with pytest.raises(
        requests.exceptions.HTTPError, match="404 Client Error: Not Found for url: http://127"
    ) as caught:
        answer.raise_for_status()
    assert caught.value.response == answer
    for wrong in ({"headers": {"X": "a\r\nb: c"}}, {"json": {"n": float("nan")}}):
        with pytest.raises(requests.RequestException):
            requests.post("/api/v1/web/page", **wrong)
    answer.content = b"{"
    with pytest.raises(requests.JSONDecodeError):
        answer.json()


def test_other_hosts_are_called_by_requests_itself(platform: Platform, monkeypatch: pytest.MonkeyPatch) -> None:
    host = os.environ["__OW_API_HOST"]
    monkeypatch.setenv("__OW_API_HOST", "http://127.0.0.1:1")
    real = requests.get(f"{host}/elsewhere")
    assert type(real).__module__ == "requests.models" and "authorization" not in real.json()
    assert requests.Session.__module__ == "requests.sessions"
    with pytest.raises(requests.ConnectionError):
        requests.get("http://127.0.0.1:2/")
    with pytest.raises(requests.ConnectionError, match="cannot be reached"):
        requests.get("/api/v1")


def ticket(number: int) -> dict[str, Any]:
    return {"ticket": number}


def test_tickets(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """Each is taken once, the newest first; no other user can read it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    one, other = Address("a", 1, True), Address("a", 1, True, "another authority")
    assert tickets.take(one) is None
    known: set[Any] = set()
    for number in range(20):
        tickets.put(one, ticket(number))
        (new,) = set((tmp_path / "forerun/quic").iterdir()) - known
        os.utime(new, (time.time() + number,) * 2)
        known.add(new)
    tickets.put(other, ticket(99))
    files = list((tmp_path / "forerun/quic").iterdir())
    assert {p.stat().st_mode & 0o777 for p in files} == {0o600} and files[0].parent.stat().st_mode & 0o77 == 0
    taken = []
    while (found := tickets.take(one)) is not None:
        taken.append(found["ticket"])
    assert taken == list(range(19, 11, -1))
    assert tickets.take(other) == ticket(99)
    tickets.put(one, ticket(5))
    (path,) = (tmp_path / "forerun/quic").iterdir()
    os.utime(path, (time.time() - 8000,) * 2)
    assert tickets.take(one) is None, "the server has forgotten it"


def test_blocked_servers(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """Ten minutes, also for other processes."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    where = Address("blocked", 1, True)
    assert not tickets.is_blocked(where)
    tickets.block(where)
    assert tickets.is_blocked(where) and not tickets.is_blocked(Address("blocked", 2, True))
    tickets._blocked.clear()
    assert tickets.is_blocked(where)
    (path,) = (tmp_path / "forerun/quic").iterdir()
    os.utime(path, (time.time() - 601,) * 2)
    assert not tickets.is_blocked(where)
