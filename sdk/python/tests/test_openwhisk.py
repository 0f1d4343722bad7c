"""Tests of the client against a server that answers what a test says and keeps what it was asked."""

from __future__ import annotations

import base64
import json
import os
import random
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import openwhisk
import pytest
from openwhisk import exchange, http1, phases
from openwhisk.messages import Request, Response

SDK = Path(openwhisk.__file__).parent.parent
VARIABLES = ("FORERUN_APIHOST", "FORERUN_AUTH", "__OW_API_HOST", "__OW_API_KEY", "__OW_NAMESPACE", "WSK_CONFIG_FILE")


@dataclass
class Asked:
    """One request that the server got."""

    line: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Server:
    """A server that sends prepared bytes."""

    url: str
    asked: list[Asked] = field(default_factory=list)
    answers: list[bytes] = field(default_factory=list)

    def will(self, status: int, document: Any, **headers: str) -> None:
        """Prepare an answer."""
        content = json.dumps(document).encode()
        extra = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
        head = f"HTTP/1.1 {status} X\r\nContent-Length: {len(content)}\r\nConnection: close\r\n{extra}\r\n"
        self.answers.append(head.encode() + content)


@contextmanager
def serving() -> Iterator[Server]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = Server(f"http://127.0.0.1:{listener.getsockname()[1]}")

        def serve() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection, connection.makefile("rb") as reader:
                    line = reader.readline().decode().strip()
                    if not line:
                        return
                    headers = {}
                    while header := reader.readline().decode().strip():
                        name, _, value = header.partition(": ")
                        headers[name.lower()] = value
                    body = reader.read(int(headers["content-length"]))
                    server.asked.append(Asked(line, headers, body))
                    connection.sendall(server.answers.pop(0))

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield server
        finally:
            socket.create_connection(listener.getsockname()).close()  # the empty request ends it
            thread.join()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Server]:
    """A server, and the environment of a function that would call it."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    with serving() as running:
        monkeypatch.setenv("__OW_API_HOST", running.url)
        monkeypatch.setenv("__OW_API_KEY", "user:secret")
        monkeypatch.setenv("__OW_NAMESPACE", "guest")
        yield running


def test_invoke_returns_the_result(server: Server) -> None:
    server.will(200, {"n": 42, "é": "ü"})
    assert openwhisk.invoke("double", {"n": 21}) == {"n": 42, "é": "ü"}
    (asked,) = server.asked
    assert asked.line == "POST /api/v1/namespaces/guest/actions/double?blocking=true&result=true HTTP/1.1"
    assert asked.headers["authorization"] == "Basic " + base64.b64encode(b"user:secret").decode()
    assert asked.headers["content-type"] == "application/json"
    assert "idempotency-key" not in asked.headers
    assert json.loads(asked.body) == {"n": 21}
    server.will(200, [1, 2])
    assert openwhisk.invoke("split") == [1, 2]
    server.will(200, 3)
    with pytest.raises(openwhisk.ConnectionFailed, match="answered with int"):
        openwhisk.invoke("split")


def test_invoke_without_waiting_returns_the_id(server: Server) -> None:
    server.will(202, {"activationId": "a1"})
    assert openwhisk.invoke("mail", blocking=False, idempotency_key="order 7") == "a1"
    (asked,) = server.asked
    assert asked.line == "POST /api/v1/namespaces/guest/actions/mail HTTP/1.1"
    assert asked.headers["idempotency-key"] == "order 7"
    assert asked.body == b"{}"


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("a b/c?d", "/api/v1/namespaces/guest/actions/a%20b/c%3Fd"),
        ("/other/pkg/act", "/api/v1/namespaces/other/actions/pkg/act"),
        ("/_/act", "/api/v1/namespaces/_/actions/act"),
        ("ä", "/api/v1/namespaces/guest/actions/%C3%A4"),
    ],
)
def test_names(server: Server, name: str, path: str) -> None:
    server.will(202, {"activationId": "a1"})
    openwhisk.invoke(name, blocking=False)
    assert server.asked[0].line == f"POST {path} HTTP/1.1"


@pytest.mark.parametrize("name", ["/other", "//act", "/other/"])
def test_names_that_name_nothing(server: Server, name: str) -> None:
    with pytest.raises(ValueError, match="is not a name"):
        openwhisk.invoke(name)


def test_a_failed_action(server: Server) -> None:
    server.will(502, {"error": "sold out.", "seats": 0}, X_OpenWhisk_Activation_Id="a9")
    with pytest.raises(openwhisk.ActionFailed, match=r"^reserve failed: sold out; activations.logs\('a9'\)") as caught:
        openwhisk.invoke("reserve")
    assert caught.value.error == "sold out."
    assert caught.value.result == {"error": "sold out.", "seats": 0}
    assert caught.value.activation_id == "a9"


def test_an_action_that_outlasts_the_wait(server: Server) -> None:
    server.will(202, {"activationId": "a3"})
    with pytest.raises(openwhisk.NotFinished, match=r"activations.result\('a3'\)") as caught:
        openwhisk.invoke("slow", wait=1.5)
    assert caught.value.activation_id == "a3"
    assert server.asked[0].line.endswith("?blocking=true&result=true&timeout=1500 HTTP/1.1")


@pytest.mark.parametrize(
    ("status", "kind", "step"),
    [
        (400, openwhisk.APIError, "correct the request"),
        (401, openwhisk.Unauthorized, "check the key"),
        (403, openwhisk.Unauthorized, "may do this"),
        (404, openwhisk.NotFound, "check the name"),
        (429, openwhisk.TooManyRequests, "try again later"),
        (500, openwhisk.APIError, "transaction t1"),
    ],
)
def test_refusals(server: Server, status: int, kind: type[openwhisk.APIError], step: str) -> None:
    server.will(status, {"error": "No.", "code": "t1"})
    with pytest.raises(kind, match=rf"refused \({status}\): No; .*{step}") as caught:
        openwhisk.invoke("act")
    assert (caught.value.status, caught.value.message, caught.value.transaction) == (status, "No.", "t1")


def test_a_refusal_that_is_no_document(server: Server) -> None:
    server.answers.append(b"HTTP/1.1 503 Busy\r\n\r\n<html>")
    with pytest.raises(openwhisk.APIError, match="no reason was given; see the server's log"):
        openwhisk.invoke("act")


def test_fire(server: Server) -> None:
    server.will(202, {"activationId": "t1"})
    server.answers.append(b"HTTP/1.1 204 No Content\r\n\r\n")
    assert openwhisk.fire("landed", {"flight": "UA1"}) == "t1"
    assert openwhisk.fire("/_/landed") is None
    assert [asked.line.split()[1] for asked in server.asked] == [
        "/api/v1/namespaces/guest/triggers/landed",
        "/api/v1/namespaces/_/triggers/landed",
    ]


def test_reading(server: Server) -> None:
    client = openwhisk.Client()
    server.will(200, [{"name": "a"}])
    assert client.actions.list(limit=1, skip=2) == [{"name": "a"}]
    server.will(200, {"name": "a"})
    assert client.actions.get("p/a") == {"name": "a"}
    server.will(200, [{"activationId": "1"}])
    assert client.activations.list(name="p/a", since=5, docs=True) == [{"activationId": "1"}]
    server.will(200, {"activationId": "1"})
    assert client.activations.get("1") == {"activationId": "1"}
    server.will(200, {"logs": ["x"]})
    assert client.activations.logs("1") == ["x"]
    server.will(200, {"result": {"n": 1}, "status": "success"})
    assert client.activations.result("1") == {"n": 1}
    server.will(200, {"result": [1, 2], "status": "success"})
    assert client.activations.result("1") == [1, 2]
    assert [asked.line.split()[1].removeprefix("/api/v1/namespaces/guest/") for asked in server.asked] == [
        "actions?limit=1&skip=2",
        "actions/p/a",
        "activations?name=p%2Fa&since=5&docs=true",
        "activations/1",
        "activations/1/logs",
        "activations/1/result",
        "activations/1/result",
    ]


def test_the_environment_is_read_for_each_request(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    client = openwhisk.Client()
    for key in ("first:1", "second:2"):
        monkeypatch.setenv("__OW_API_KEY", key)
        server.will(200, {})
        client.actions.invoke("a")
        assert server.asked[-1].headers["authorization"] == "Basic " + base64.b64encode(key.encode()).decode()


def test_settings_of_wsk(server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(openwhisk.SettingsError, match="forerun login"):
        openwhisk.invoke("a")
    (tmp_path / ".wskprops").write_text(f"# mine\nAPIHOST={server.url}\nAUTH = a:b=c\nnonsense\n")
    server.will(200, {})
    openwhisk.invoke("a")
    assert server.asked[0].line.startswith("POST /api/v1/namespaces/_/actions/a?")
    assert server.asked[0].headers["authorization"] == "Basic " + base64.b64encode(b"a:b=c").decode()
    monkeypatch.setenv("WSK_CONFIG_FILE", str(tmp_path / "absent"))
    with pytest.raises(openwhisk.SettingsError, match="not there"):
        openwhisk.invoke("a")


def test_a_key_is_missing(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("__OW_API_KEY")
    with pytest.raises(openwhisk.SettingsError, match="no key"):
        openwhisk.invoke("a")


@pytest.mark.parametrize(
    ("answer", "body"),
    [
        (b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\n{"a\r\n4\r\n":1}\r\n0\r\n\r\n', b'{"a":1}'),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.0 200\r\n\r\nuntil the end", b"until the end"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}and more", b"{}"),
    ],
)
def test_framings(answer: bytes, body: bytes) -> None:
    assert read(answer).body == body


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"HTTP/1.1 2x0 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}xx",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"y" * (http1.MAX_HEAD + (1 << 17)),
    ],
)
def test_answers_that_are_none(answer: bytes) -> None:
    with pytest.raises(openwhisk.ConnectionFailed, match="cannot be read"):
        read(answer)


def test_random_answers_end_in_an_answer_or_our_error() -> None:
    """Bytes of a good answer, changed at random, must not end otherwise or hang."""
    seed = os.environ.get("FORERUN_SEED", "1")
    source = random.Random(seed)
    good = b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX: y\r\n\r\n3\r\n{"a\r\n4\r\n":1}\r\n0\r\n\r\n'
    for _ in range(300):
        changed = bytearray(good)
        for _ in range(source.randrange(1, 6)):
            at = source.randrange(len(changed))
            changed[at : at + source.randrange(3)] = source.randbytes(source.randrange(3))
        try:
            read(bytes(changed))
        except openwhisk.OpenWhiskError:
            pass
        except Exception as error:
            pytest.fail(f"seed {seed}: {bytes(changed)!r} raised {error!r}")


def read(answer: bytes) -> Response:
    """Exchange a request with a server that sends these bytes and ends."""
    with serving() as server:
        server.answers.append(answer)
        return exchange.send(Request(exchange.parse_host(server.url), "GET", "/", {}, b""), 10)


def test_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(openwhisk.ConnectionFailed, match=rf"127.0.0.1:{port} cannot be reached: .*refused"):
        openwhisk.Client(f"http://127.0.0.1:{port}", "a:b").actions.invoke("a")


def test_a_server_that_stays_silent() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        client = openwhisk.Client(f"http://127.0.0.1:{listener.getsockname()[1]}", "a:b", timeout=0.01)
        with pytest.raises(openwhisk.ConnectionFailed, match=r"within 0.01 s"):
            client.actions.invoke("a")


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("http://127.0.0.1:3233", ("127.0.0.1", 3233, False)),
        ("HTTPS://whisk.example/", ("whisk.example", 443, True)),
        ("whisk.example", ("whisk.example", 443, True)),
        ("http://[::1]:80", ("::1", 80, False)),
        ("http://[::1]", ("::1", 80, False)),
    ],
)
def test_hosts(text: str, address: tuple[str, int, bool]) -> None:
    assert exchange.parse_host(text)[:3] == address


@pytest.mark.parametrize("text", ["ftp://a", "http://", "http://a:0", "http://a:99999", "http://a:b", "http://a/path"])
def test_hosts_that_are_none(text: str) -> None:
    with pytest.raises(openwhisk.SettingsError, match="is not where an API can be"):
        exchange.parse_host(text)


@pytest.mark.parametrize("params", [{"n": float("nan")}, {"o": object()}])
def test_parameters_that_are_no_json(server: Server, params: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="no JSON"):
        openwhisk.invoke("a", params)


def test_a_key_that_would_split_the_request(server: Server) -> None:
    with pytest.raises(ValueError, match="printable"):
        openwhisk.invoke("a", idempotency_key="x\r\nEvil: 1")


def test_importing_it_loads_little() -> None:
    """What a function would wait for: neither the standard library's HTTP client nor what comes with it."""
    program = "import json, sys; before = set(sys.modules); import openwhisk; print(*set(sys.modules) - before)"
    environment = {**os.environ, "PYTHONPATH": str(SDK)}
    run = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in run.stdout.split()}
    assert "openwhisk" in loaded
    assert not loaded & {"asyncio", "dataclasses", "email", "http", "inspect", "logging", "ssl", "urllib"}


@contextmanager
def state_door(monkeypatch: pytest.MonkeyPatch, *answers: bytes) -> Iterator[list[bytes]]:
    """Stand for the state door of a sandbox: what connections say is kept. An empty answer cuts one."""
    heard: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        left = list(answers)

        def serve() -> None:
            while left:
                connection, _ = listener.accept()
                with connection:
                    while left and (said := connection.recv(4096)):
                        heard.append(said)
                        if not (answer := left.pop(0)):
                            break
                        connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        monkeypatch.setattr(phases, "_DOOR", listener.getsockname())
        monkeypatch.setattr(phases, "_phases", phases._Phases())
        monkeypatch.setenv("__OW_API_HOST", "http://127.0.0.1:3233")
        monkeypatch.setenv("__OW_ACTIVATION_ID", "a")
        yield heard
        thread.join()


def said(*words: bytes) -> bytes:
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)


def test_phases_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """An inner phase ends the outer one, which is asked for again; a connection that has ended is made again."""

    @openwhisk.microtask("sort")
    def sort(n: int) -> int:
        """Sorts."""
        return n + 1

    ok = b"+OK\r\n"
    with state_door(monkeypatch, ok, b"", ok, ok, ok) as heard, openwhisk.microtask("read", cpu=0.1):
        assert sort(1) == 2
    read, inner, end = (said(b"FORERUN.PHASE", *words) for words in ((b"read", b"0.1"), (b"sort", b"1.0"), (b"END",)))
    assert heard == [read, inner, inner, read, end]
    assert (sort.__name__, sort.__doc__) == ("sort", "Sorts.")


def test_refused_phase(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = pytest.raises(openwhisk.OpenWhiskError, match="no such thing")
    with state_door(monkeypatch, b"-ERR no such thing\r\n"), refused:
        openwhisk.microtask("read").__enter__()


def test_phases_outside_forerun(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("__OW_API_HOST", raising=False)
    with openwhisk.microtask("read"):
        pass


@pytest.mark.parametrize(
    ("name", "cpu"),
    [("read", cpu) for cpu in (0, -1, float("nan"), 1e9, 0.01)]
    + [(name, 1) for name in ("", "end", "a b", "x" * 10_000_000)],
)
def test_wrong_phases(name: str, cpu: float) -> None:
    with pytest.raises(ValueError, match="a phase"):
        openwhisk.microtask(name, cpu=cpu)


def test_async_functions_are_no_phases() -> None:
    async def function() -> None: ...

    with pytest.raises(TypeError, match="async"):
        openwhisk.microtask("read")(function)
