"""The runtime as a whole: a process, spoken with as the server does."""

from __future__ import annotations

import array
import json
import os
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from forerun_runtime import wire

from .test_archive import EXTRACTOR, zipped

ROOT = Path(__file__).parents[1]
START = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from forerun_runtime.initializer import main; main()"
SCM_CREDENTIALS = getattr(socket, "SCM_CREDENTIALS", 2)


class Sandbox:
    """An initializer, without a sandbox around it."""

    def __init__(self, folder: Path) -> None:
        self.exits: list[wire.Frame] = []  # they came before a handler that was asked for, and read gives them
        self.control, theirs = socket.socketpair()
        os.set_inheritable(theirs.fileno(), True)
        command = f"exec 3<&{theirs.fileno()}; exec {sys.executable} -I -S -B -c '{START.replace(chr(39), chr(34))}'"
        self.process = subprocess.Popen(
            ["/bin/bash", "-c", command],
            pass_fds=[theirs.fileno()],
            env={
                "FORERUN_CODE": str(folder),
                "FORERUN_PROGRAM": str(EXTRACTOR),
                "LANG": "C.UTF-8",
                "PATH": os.environ["PATH"],
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a job in the background ignores it
        )
        theirs.close()
        self.hello = self.read()

    def read(self) -> wire.Frame:
        if self.exits:
            return self.exits.pop(0)
        frame = wire.read(self.control.fileno())
        assert frame is not None
        return frame

    def init(self, code: bytes, **header: Any) -> dict[str, Any]:
        wire.write(self.control.fileno(), wire.pack(wire.INIT, header, code))
        done = self.read()
        assert done.type == wire.INIT_DONE
        return done.header

    def fork(self) -> Handler:
        wire.write(self.control.fileno(), wire.pack(wire.FORK))
        while True:
            prefix, ancillary, _, _ = self.control.recvmsg(wire.PREFIX_BYTES, socket.CMSG_SPACE(4))
            header = json.loads(self.control.recv(int.from_bytes(prefix[1:4], "big")))
            if prefix[0] != wire.EXIT:
                break
            self.exits.append(wire.Frame(wire.EXIT, header, b""))
        assert prefix[0] == wire.HANDLER
        return Handler(header["pid"], array.array("i", ancillary[0][2])[0])

    def close(self) -> tuple[str, str]:
        """End the initializer and return what was written to standard output and error."""
        self.control.close()
        out, err = self.process.communicate(timeout=120)
        return out.decode(), err.decode()


class Handler:
    """The server's end of a handler's socket."""

    def __init__(self, pid: int, fd: int) -> None:
        self.pid = pid
        self.socket = socket.socket(fileno=fd)
        ready, ancillary, _, _ = self.socket.recvmsg(4096, socket.CMSG_SPACE(12))
        assert ready == wire.pack(wire.READY, {"pid": pid})
        kernels_pid, _, _ = struct.unpack("3i", next(a[2] for a in ancillary if a[1] == SCM_CREDENTIALS))
        assert kernels_pid == pid

    def run(self, payload: bytes = b"{}", **header: Any) -> wire.Frame | None:
        wire.write(self.socket.fileno(), wire.pack(wire.RUN, header, payload))
        frame = wire.read(self.socket.fileno())
        self.socket.close()
        return frame


@pytest.fixture
def sandbox(tmp_path: Path) -> Iterator[Sandbox]:
    s = Sandbox(tmp_path)
    yield s
    s.process.kill()
    s.control.close()  # with it goes the socket of a handler that no test has read: the handler ends
    s.process.communicate()


def test_hello(sandbox: Sandbox) -> None:
    version = ".".join(map(str, sys.version_info[:3]))
    assert sandbox.hello == wire.Frame(wire.HELLO, {"protocol": 1, "language": "python", "version": version}, b"")


def test_one_activation(sandbox: Sandbox) -> None:
    code = b"""
import os
def main(args):
    print('hi')
    return {'in': args, 'e': os.environ['E'], 'i': os.environ['I']}
"""
    assert sandbox.init(code, env={"I": "init"}) == {"ok": True}
    result = sandbox.fork().run(b'{"x":1.50}', env={"E": "run"}, limit=1000)
    assert result == wire.Frame(wire.RESULT, {"status": "ok"}, b'{"in":{"x":1.5},"e":"run","i":"init"}')
    assert sandbox.read().header["status"] == 0
    assert sandbox.close() == ("hi\n", "")


def test_exits_are_told(sandbox: Sandbox) -> None:
    sandbox.init(b"import os\ndef main(args): os.kill(os.getpid(), 9) if 'kill' in args else os._exit(5)\n")
    handler = sandbox.fork()
    assert handler.run() is None
    assert sandbox.read() == wire.Frame(wire.EXIT, {"pid": handler.pid, "status": 5}, b"")
    handler = sandbox.fork()
    assert handler.run(b'{"kill":1}') is None
    assert sandbox.read() == wire.Frame(wire.EXIT, {"pid": handler.pid, "signal": 9}, b"")


def test_sockets_that_the_code_closes_as_it_is_forked(sandbox: Sandbox) -> None:
    code = b"""
import os, socket
a, b = socket.socketpair()
os.register_at_fork(before=lambda: (a.close(), b.close()))
def main(args): return {}
"""
    assert sandbox.init(code) == {"ok": True}
    for _ in range(2):  # the second one's own connection has the numbers that the code's had
        assert sandbox.fork().run() == wire.Frame(wire.RESULT, {"status": "ok"}, b"{}")
        assert sandbox.read().header["status"] == 0


def test_limit(sandbox: Sandbox) -> None:
    sandbox.init(b"def main(args): return {'x': 'y' * 100}\n")
    result = sandbox.fork().run(limit=100)
    assert result is not None and result.header["status"] == "error" and "108 > 100 bytes" in result.header["error"]


def test_archive(sandbox: Sandbox) -> None:
    code = zipped({"__main__.py": b"import helper\ndef go(args): return {'n': helper.n}", "helper.py": b"n = 4"})
    assert sandbox.init(code, binary=True, main="go") == {"ok": True}
    result = sandbox.fork().run()
    assert result is not None and result.payload == b'{"n":4}'


@pytest.mark.parametrize(
    ("code", "binary", "error"),
    [
        (zipped({"main.py": b""}), True, "no file __main__.py at its top"),
        (b"PK", True, "not a zip file"),
        (b"def main(:", False, "SyntaxError"),
        (b"\xff", False, "SyntaxError"),
        (b"x = 1\0", False, "null bytes"),
    ],
)
def test_code_that_cannot_be_loaded(sandbox: Sandbox, code: bytes, binary: bool, error: str) -> None:
    done = sandbox.init(code, binary=binary)
    assert done["ok"] is False and error in done["error"]


SITE = f"virtualenv/lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages/"
ACTIVATE = b"""
import os, site, sys
base = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
os.environ["VIRTUAL_ENV"] = base
site.addsitedir(os.path.join(base, "lib", "python%d.%d" % sys.version_info[:2], "site-packages"))
"""


@pytest.mark.parametrize(
    "files",
    [
        {SITE + "tariff.py": b"v = 7\n"},
        {SITE + "tariff.pth": b"tariff-src\n", SITE + "tariff-src/tariff.py": b"v = 7\n"},
        {SITE + "a.pth": b"import sys; sys.loaded = True\n", SITE + "tariff.py": b"v = 7\n"},
        {"virtualenv/bin/activate_this.py": ACTIVATE, SITE + "tariff.py": b"v = 7\n"},
        {
            "virtualenv/bin/activate_this.py": ACTIVATE,
            SITE + "tariff.pth": b"tariff-src\n",
            SITE + "tariff-src/tariff.py": b"v = 7\n",
        },
        {SITE + "tariff.py": b"v = 7\n", "virtualenv/lib/python3.2/site-packages/tariff.py": b"v = 8\n"},
    ],
)
def test_virtualenv(sandbox: Sandbox, files: dict[str, bytes]) -> None:
    main = b"import tariff\ndef main(args): return {'v': tariff.v}"
    assert sandbox.init(zipped({"__main__.py": main, **files}), binary=True) == {"ok": True}
    result = sandbox.fork().run()
    assert result is not None and result.payload == b'{"v":7}'


def test_virtualenv_of_another_python(sandbox: Sandbox) -> None:
    files = {"__main__.py": b"def main(args): return {}", "virtualenv/lib/python3.2/site-packages/x.py": b""}
    done = sandbox.init(zipped(files), binary=True)
    version = f"Python {sys.version_info.major}.{sys.version_info.minor}"
    assert (
        f"virtualenv are for Python 3.2, and {version} runs the action: make the virtualenv with {version}"
        in done["error"]
    )


def test_packages_that_are_compiled_for_another_python(sandbox: Sandbox) -> None:
    files = {
        "__main__.py": b"import fast._speed",
        "fast/__init__.py": b"",
        "fast/_speed.cpython-32-x86_64-linux-gnu.so": b"",
    }
    done = sandbox.init(zipped(files), binary=True)
    assert "No module named 'fast._speed'. The archive's fast/_speed.cpython-32-x86_64-linux-gnu.so" in done["error"]
    assert f"for Python 3.2, and Python {sys.version_info.major}.{sys.version_info.minor} runs" in done["error"]
    _, err = sandbox.close()
    assert err.endswith("ModuleNotFoundError: No module named 'fast._speed'\n") and "forerun_runtime" not in err


def test_packages_for_another_python_that_the_function_imports(sandbox: Sandbox) -> None:
    files = {"__main__.py": b"def main(args): import _speed", "_speed.cpython-32m-x86_64-linux-gnu.so": b""}
    assert sandbox.init(zipped(files), binary=True) == {"ok": True}
    result = sandbox.fork().run()
    assert result is not None
    assert "No module named '_speed'. The archive's _speed.cpython-32m-x86_64-linux-gnu.so" in result.header["error"]
    assert "is compiled for Python 3.2, and Python" in result.header["error"]


SPAWNS = b"""
import multiprocessing as mp, pickle, subprocess, sys
def square(x):
    return x * x
def main(args):
    pools = {}
    for how in mp.get_all_start_methods():
        with mp.get_context(how).Pool(2) as pool:
            pools[how] = pool.map(square, [1, 2, 3])
    loads = "import pickle, sys; print(pickle.load(sys.stdin.buffer)(5))"
    other = subprocess.run([sys.executable, "-c", loads], input=pickle.dumps(square), stdout=subprocess.PIPE).stdout
    return {"pools": pools, "other": int(other)}
"""


@pytest.mark.parametrize("binary", [False, True])
def test_child_processes_find_the_code(sandbox: Sandbox, binary: bool) -> None:
    code = zipped({"__main__.py": SPAWNS}) if binary else SPAWNS
    assert sandbox.init(code, binary=binary) == {"ok": True}
    result = sandbox.fork().run()
    assert result is not None and result.header == {"status": "ok"}, sandbox.close()
    squares = [1, 4, 9]
    assert json.loads(result.payload) == {
        "pools": {"fork": squares, "spawn": squares, "forkserver": squares},
        "other": 25,
    }


@pytest.mark.parametrize(
    ("code", "main", "error"),
    [
        (b"def handler(event): return {'x': 1}", "", None),
        (b"def lambda_handler(event, context=None): return {'x': 1}", "", None),
        (b"class C:\n  def main(self, args): return {'x': 1}\nmain = C().main", "", None),
        (b"def main(): return {'x': 1}", "", None),
        (b"async def main(): return {'x': 1}", "", None),
        (b"def main(*args): return {'x': len(args)}", "", None),
        (
            b"def main(*, name): return {}",
            "",
            "main takes its parameters by keyword only, and an action has one argument",
        ),
        (b"def main(**args): return {}", "", "write def main(args)"),
        (
            b"print('{}')",
            "",
            "no function named 'main': write def main(args), which returns the result as a dictionary",
        ),
        (b"def lambda_handler(event, context): return {}", "", "lambda_handler(event, context) needs 2 arguments"),
        (b"def main(a, b): return {}", "", "main(a, b) needs 2 arguments, and an action has one"),
        (b"def handler(e): pass\ndef lambda_handler(e): pass", "", "name one of handler and lambda_handler"),
        (b"def handler(event): return {}", "go", "no function named 'go': name one of handler"),
        (b"def handler(event): return {}\nmain = 3", "", "'main' is a int, not a function"),
    ],
)
def test_entry_points_that_people_bring(sandbox: Sandbox, code: bytes, main: str, error: str | None) -> None:
    done = sandbox.init(code, main=main)
    if error is not None:
        assert error in done["error"]
        return
    result = sandbox.fork().run()
    assert result is not None and result.payload == b'{"x":1}'


def test_code_in_another_encoding(sandbox: Sandbox) -> None:
    sandbox.init("# coding: latin-1\ndef main(args): return {'x': 'ä'}\n".encode("latin-1"))
    result = sandbox.fork().run()
    assert result is not None and json.loads(result.payload) == {"x": "ä"}


def test_what_loading_prints_without_a_newline_is_printed_once(sandbox: Sandbox) -> None:
    sandbox.init(b"import sys\nsys.stdout.write('loading... ')\ndef main(args):\n  print('hi')\n  return {}\n")
    for _ in range(2):
        assert sandbox.fork().run() is not None
        assert sandbox.read().type == wire.EXIT
    assert sandbox.close() == ("loading... hi\nhi\n", "")


def test_what_failed_loading_prints_without_a_newline_is_printed(sandbox: Sandbox) -> None:
    assert not sandbox.init(b"import sys\nsys.stdout.write('loading... ')\n1 / 0\n")["ok"]
    out, err = sandbox.close()
    assert out == "loading... " and err.endswith("ZeroDivisionError: division by zero\n")


CODE_THAT_LOOKS_AT_ITSELF = b"""# looks at itself
import inspect, pickle, random, signal, socket, sys
class Thing:
    pass
ours, theirs = socket.socketpair()
first = random.random()
def main(args):
    ours.setblocking(False)
    return {
        "source": inspect.getsource(Thing),
        "pickled": type(pickle.loads(pickle.dumps(Thing()))) is Thing,
        "command line": __name__ == "__main__",
        "random": random.random(),
        "child": signal.getsignal(signal.SIGCHLD) == signal.SIG_DFL,
        "interrupt": signal.getsignal(signal.SIGINT) is signal.default_int_handler,
        "socket": ours.recv(1).decode(),
        "module": sys.modules[__name__].Thing is Thing,
        "main": sys.modules["__main__"].Thing is Thing,
        "file": "looks at itself" in open(__file__).read(),
    }
"""


def test_handlers_see_an_ordinary_python(sandbox: Sandbox) -> None:
    assert sandbox.init(CODE_THAT_LOOKS_AT_ITSELF) == {"ok": True}
    seen = []
    for _ in range(2):
        result = sandbox.fork().run()
        assert result is not None and result.header == {"status": "ok"}
        seen.append(json.loads(result.payload))
        assert sandbox.read().type == wire.EXIT
    randoms = [s.pop("random") for s in seen]
    assert randoms[0] != randoms[1]
    assert seen[0] == seen[1] == {
        "source": "class Thing:\n    pass\n", "pickled": True, "command line": False,
        "child": True, "interrupt": True, "socket": "", "module": True, "main": True, "file": True,
    }  # fmt: skip


def test_a_working_directory_that_is_gone_is_replaced(sandbox: Sandbox, tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    sandbox.init(f"import os\nos.chdir({str(folder)!r})\ndef main(args): return {{'in': os.getcwd()}}\n".encode())
    handlers = [sandbox.fork(), sandbox.fork()]
    result = handlers[0].run()
    assert result is not None and json.loads(result.payload) == {"in": str(folder)}
    folder.rmdir()
    result = handlers[1].run()
    assert result is not None and json.loads(result.payload) == {"in": str(tmp_path)}


def test_what_loading_opens_is_open_once(sandbox: Sandbox) -> None:
    code = b"""
import os
names = ["/usr/lib", "/usr/lib/os-release"]
kept = [os.open(os.path.realpath(name), how) for name in names for how in (os.O_RDONLY, os.O_PATH)]
def main(args):
    found = [os.path.realpath(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd")]
    return {"times": [found.count(os.path.realpath(name)) for name in names]}
"""
    assert sandbox.init(code) == {"ok": True}
    result = sandbox.fork().run()
    assert result is not None and result.payload == b'{"times":[2,2]}'


CODE_WITH_AN_EVENT_LOOP = b"""
import asyncio, os, signal, time
asyncio.run(asyncio.sleep(0))
loop = asyncio.new_event_loop()
kept = os.pipe()
loop.add_reader(kept[0], lambda: heard.set_result(os.read(kept[0], 9).decode()))
def main(args):
    global heard
    signal.alarm(10)
    heard = loop.create_future()
    x = loop.run_until_complete(loop.run_in_executor(None, lambda: time.sleep(0.01) or 1))
    os.write(kept[1], b"y")
    return {"x": x, "heard": loop.run_until_complete(heard)}
"""


def test_an_event_loop_of_the_loading_wakes_up(sandbox: Sandbox) -> None:
    assert sandbox.init(CODE_WITH_AN_EVENT_LOOP) == {"ok": True}
    for _ in range(2):
        result = sandbox.fork().run()
        assert result is not None and result.payload == b'{"x":1,"heard":"y"}'


def test_sockets_that_loading_leaves_as_garbage_are_no_handlers(sandbox: Sandbox) -> None:
    sandbox.init(b"""
import socket
class Thing:
    pass
thing = Thing()
thing.itself, thing.sockets = thing, socket.socketpair()
del thing
def main(args): return {}
""")
    result = sandbox.fork().run()
    assert result is not None and result.payload == b"{}"


CODE_THAT_IMPORTS_LATE = b"""
import sys
def main(args):
    found = [name for name in ("colorsys", "xml.dom.minidom", "main_of_ours") if name in sys.modules]
    import colorsys, xml.dom.minidom
    sys.modules["main_of_ours"] = sys
    return {"found": found}
"""


def test_what_one_handler_imports_of_the_standard_library_the_next_finds(sandbox: Sandbox) -> None:
    assert sandbox.init(CODE_THAT_IMPORTS_LATE) == {"ok": True}
    for found in (b'{"found":[]}', b'{"found":["colorsys","xml.dom.minidom"]}'):
        result = sandbox.fork().run()
        assert result is not None and result.payload == found
        assert sandbox.read().type == wire.EXIT  # the names were written before


@pytest.mark.parametrize(
    ("own", "imported", "text"),
    [
        ("profile", "profile", ""),
        ("profile", "cProfile", "def run(): pass\nrunctx = run\n"),  # which imports it
        ("readline", "rlcompleter", "def set_completer(_): pass\n"),  # which can do without
    ],
)
def test_a_module_named_like_a_standard_one_is_executed_for_its_activation(
    sandbox: Sandbox, own: str, imported: str, text: str
) -> None:
    main = f"def main(args):\n    import sys, {imported}\n    return {{'x': sys.modules[{own!r}].X}}\n"
    text += "import os\nX = os.environ.get('X')\nprint('executed')\n"
    assert sandbox.init(zipped({"__main__.py": main.encode(), f"{own}.py": text.encode()}), binary=True) == {"ok": True}
    for x in ("1", "2", "3"):
        result = sandbox.fork().run(env={"X": x})
        assert result is not None and json.loads(result.payload) == {"x": x}
        assert sandbox.read().type == wire.EXIT  # the names were written before
    assert sandbox.close() == ("executed\n" * 3, "")


CODE_THAT_MAKES_UP_HINTS = b"""
import os, stat, sys
HINTS = b"pages 5+x 3\\npages 1+9 -4+7\\n\\nother\\nimports antigravity this.x pytest ../x \\xff no.such colorsys\\n"
def main(args):
    for fd in range(4, 40):
        try:
            if stat.S_ISFIFO(os.fstat(fd).st_mode):
                os.write(fd, HINTS * 9)
        except OSError:
            pass
    return {"found": [name for name in ("colorsys", "this", "antigravity", "pytest") if name in sys.modules]}
"""


def test_hints_that_a_handler_makes_up_do_nothing(sandbox: Sandbox) -> None:
    sandbox.init(CODE_THAT_MAKES_UP_HINTS)
    for found in (b'{"found":[]}', b'{"found":["colorsys"]}'):
        result = sandbox.fork().run()
        assert result is not None and result.payload == found
        assert sandbox.read().type == wire.EXIT


def test_a_frame_out_of_turn_ends_it(sandbox: Sandbox) -> None:
    wire.write(sandbox.control.fileno(), wire.pack(wire.FORK))
    assert wire.read(sandbox.control.fileno()) is None
    assert sandbox.process.wait(10) == 1


def test_the_end_of_the_server_ends_it(sandbox: Sandbox) -> None:
    sandbox.init(b"def main(args): return {}\n")
    handler = sandbox.fork()
    sandbox.control.close()
    assert sandbox.process.wait(10) == 0
    handler.socket.close()  # where the initializer is process 1, the kernel ends its handlers with it


def test_signals_do_not_end_it(sandbox: Sandbox) -> None:
    sandbox.init(b"def main(args): return {}\n")
    sandbox.process.send_signal(signal.SIGINT)
    assert sandbox.fork().run() is not None


def test_signals_to_a_handler_that_waits_change_nothing(sandbox: Sandbox) -> None:
    sandbox.init(b"""
import os, signal
heard = []
signal.signal(signal.SIGUSR1, lambda *_: heard.append(1))
signal.signal(signal.SIGRTMIN, lambda *_: heard.append(1))
def main(args):
    before = len(heard)
    os.kill(os.getpid(), signal.SIGUSR1)
    return {"before": before, "own": len(heard) - before, "blocked": len(signal.pthread_sigmask(signal.SIG_BLOCK, ()))}
""")
    handler = sandbox.fork()
    for number in (signal.SIGUSR1, signal.SIGRTMIN, signal.SIGRTMIN, signal.SIGTERM):
        os.kill(handler.pid, number)
    result = handler.run()
    assert result is not None
    assert json.loads(result.payload) == {"before": 0, "own": 1, "blocked": 0}
