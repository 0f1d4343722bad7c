"""Shows how a Spring Boot application does with methods run as functions.

It starts Forerun, then the application twice: without the agent, to keep its answers, and with it. It compares the
answers, then sends requests from one client and from six, and prints for each second what came of them.
`make offload-demo` runs it.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import http.client
import itertools
import json
import os
import pathlib
import re
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = pathlib.Path(__file__).resolve().parent.parent
OWN = ROOT / "bin" / "examples" / "thumbs.jar"
OWN_ROOTS = "thumbs.Thumbnailer#thumbnail;thumbs.Reports#colours"
OWN_PATHS = "/pictures/one/thumbnail?width=120 /pictures/two/thumbnail?width=64 /report"
FORERUN = str(ROOT / "bin" / "forerun")
AGENT = ROOT / "bin" / "runtimes" / "offload" / "forerun-offload.jar"
PORT = re.compile(r"started on ports?(?:\(s\))?:? (\d+)")
READY = re.compile(r"is ready on (http://\S+)")
START = 300  # seconds
CLIENTS = (1, 6)


class Broken(Exception):
    """The demonstration cannot go on."""


@contextlib.contextmanager
def program(command: list[str], said: pathlib.Path, announcement: re.Pattern[str]) -> Iterator[tuple[int, str]]:
    """Start a program, and give its process id and what its announcement says once that is there."""
    with said.open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log, cwd=ROOT) as process:
        try:
            end = time.monotonic() + START
            while not (found := announcement.search(said.read_text(errors="replace"))):
                if process.poll() is not None or time.monotonic() > end:
                    raise Broken(f"{command[0]} did not start:\n{said.read_text(errors='replace')[-2000:]}")
                time.sleep(0.1)
            yield process.pid, found[1]
        finally:
            process.terminate()


def picture(width: int, height: int) -> bytes:
    """Paint a PNG."""
    rows = b"".join(
        b"\0" + bytes(v for x in range(width) for v in (x * 255 // width, y * 255 // height, x * y & 255))
        for y in range(height)
    )

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def ask(address: str, path: str, method: str = "GET", body: bytes | None = None, auth: str = "") -> tuple[int, bytes]:
    """Send a request."""
    connection = http.client.HTTPConnection(address, timeout=START)
    headers = {"Content-Type": "application/octet-stream"} if body else {}
    if auth:
        headers["Authorization"] = "Basic " + base64.b64encode(auth.encode()).decode()
    with contextlib.closing(connection):
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        return answer.status, answer.read()


def fill(address: str, jar: pathlib.Path) -> None:
    """Give the project's own application pictures."""
    if jar == OWN:
        for name, size in {"one": (600, 400), "two": (300, 500)}.items():
            ask(address, f"/pictures/{name}", "PUT", picture(*size))


@dataclass
class Load:
    """Clients that send requests one after the other."""

    address: str
    paths: list[str]
    taken: list[float] = field(default_factory=list)
    failed: int = 0
    over: threading.Event = field(default_factory=threading.Event)

    def client(self) -> None:
        """Send requests until it is over."""
        for path in itertools.cycle(self.paths):
            if self.over.is_set():
                return
            begun = time.monotonic()
            try:
                status, _ = ask(self.address, path)
            except OSError:
                status = 0
            self.failed += status not in range(200, 500)
            self.taken.append(time.monotonic() - begun)


def cpu(pid: int) -> float:
    """Tell the processor time of a process in seconds."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@dataclass
class Counts:
    """The calls of all roots, counted by their outcome."""

    offloaded: int = 0
    local: int = 0
    exchanges: int = 0


def counts(server: str, name: str, auth: str) -> Counts:
    """Ask the server what the agent told."""
    status, answer = ask(server, "/offload/applications/" + name, auth=auth)
    if status != http.client.OK:
        return Counts()
    told = Counts()
    for root in json.loads(answer)["roots"]:
        told.offloaded += root["offloaded"]
        told.local += root["local"]
        told.exchanges += sum(
            n for kind, n in root["exchanges"].items() if kind not in ("result", "thrown", "refused", "line", "print")
        )
    return told


def measure(load: Load, clients: int, seconds: int, pid: int, tell: tuple[str, str, str]) -> None:
    """Send requests, and print a line for each second."""
    print(
        f"{clients} client{'s' * (clients > 1)}\n  second  requests  failed  p50 ms  p99 ms  share  CPU  exchanges each"
    )
    threads = [threading.Thread(target=load.client, daemon=True) for _ in range(clients)]
    for thread in threads:
        thread.start()
    before, spent = counts(*tell), cpu(pid)
    for second in range(1, seconds + 1):
        time.sleep(1)
        taken, load.taken, failed, load.failed = load.taken, [], load.failed, 0
        now, used = counts(*tell), cpu(pid)
        calls = now.offloaded - before.offloaded
        share = calls / max(1, calls + now.local - before.local)
        cuts = statistics.quantiles([*taken, *taken], n=100, method="inclusive") if taken else [0.0] * 99
        each = (now.exchanges - before.exchanges) / max(1, calls)
        p50, p99 = cuts[49] * 1e3, cuts[98] * 1e3
        line = f"  {second:6}  {len(taken):8}  {failed:6}  {p50:6.1f}  {p99:6.1f}  {share:5.0%}"
        print(f"{line}  {used - spent:3.1f}  {each:14.1f}", flush=True)
        before, spent = now, used
    load.over.set()
    for thread in threads:
        thread.join()


def answers(address: str, paths: list[str]) -> list[tuple[int, bytes]]:
    """Ask for each path twice: the second time what a function knows is reused."""
    return [ask(address, path) for path in paths * 2]


def demonstrate(jar: pathlib.Path, roots: str, paths: list[str], mode: str, seconds: int, folder: pathlib.Path) -> bool:
    """Run all, and report whether the answers were equal."""
    run = ["-XX:+UseSerialGC", "-jar", str(jar), "--server.port=0"]
    with program(["java", *run], folder / "alone.log", PORT) as (_, port):
        fill(f"127.0.0.1:{port}", jar)
        want = answers(f"127.0.0.1:{port}", paths)
    serve = [FORERUN, "serve", "--listen", "127.0.0.1:0", "--data", str(folder / "data")]
    with program(serve, folder / "forerun.log", READY) as (_, url):
        auth = dict(line.split("=", 1) for line in (folder / "data" / "wskprops").read_text().splitlines())["AUTH"]
        (folder / "key").write_text(auth)
        agent = f"-javaagent:{AGENT}=url={url},key-file={folder / 'key'},roots={roots},mode={mode},name=demo"
        with program(["java", agent, *run], folder / "offloaded.log", PORT) as (pid, port):
            address = f"127.0.0.1:{port}"
            fill(address, jar)
            got = answers(address, paths)
            differing = [path for path, a, b in zip(paths * 2, want, got, strict=True) if a != b]
            print(f"answers: {len(got) - len(differing)} equal, {len(differing)} different", *differing)
            for clients in CLIENTS:
                measure(Load(address, paths), clients, seconds, pid, (urllib.parse.urlsplit(url).netloc, "demo", auth))
            if mode != "off":
                environment = {**os.environ, "WSK_CONFIG_FILE": str(folder / "data" / "wskprops")}
                subprocess.run([FORERUN, "offload", "get", "demo"], env=environment, check=False)
    return not differing


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jar", type=pathlib.Path, default=OWN)
    parser.add_argument("--roots", default="", help="methods, Class#method with semicolons between")
    parser.add_argument("--paths", default="", help="what is requested, with spaces between")
    parser.add_argument("--mode", default="force")
    parser.add_argument("--seconds", type=int, default=10, help="for each number of clients")
    given = parser.parse_args()
    jar = given.jar.resolve()
    roots, paths = given.roots, given.paths
    if jar == OWN:
        roots, paths = roots or OWN_ROOTS, paths or OWN_PATHS
    if not roots or not paths:
        parser.error("which methods are to run as functions (ROOTS=), and which paths are requested (PATHS=)?")
    with tempfile.TemporaryDirectory() as folder:
        try:
            return 0 if demonstrate(jar, roots, paths.split(), given.mode, given.seconds, pathlib.Path(folder)) else 1
        except Broken as e:
            print(e, file=sys.stderr)
            return 1


if __name__ == "__main__":
    sys.exit(main())
