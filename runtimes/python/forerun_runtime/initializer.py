"""The initializer: the first process of a sandbox. It loads the code once and forks a handler for each activation."""

from __future__ import annotations

# The C modules under signal, socket and threading: the modules themselves would cost the start, and each fork, dearly.
import _signal
import _socket
import _thread
import fcntl
import gc
import os
import select
import stat
import sys

from . import handler, hints, kernel, loader, wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, NoReturn

CONTROL = 3
_LEARN_FIRST, _LEARN_EVERY = (
    3,
    100,
)  # handlers: which tells the pages that it wrote to, and after how many the next does
_SOL_SOCKET, _SO_PASSCRED = 1, 16


def main() -> NoReturn:
    """Serve the control socket until the server closes it."""
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="utf-8", errors="backslashreplace", line_buffering=True)  # type: ignore[union-attr]
    os.set_inheritable(CONTROL, False)
    Initializer().serve()
    os._exit(0)


class Initializer:
    """The state of the first process."""

    def __init__(self) -> None:
        self._control = _socket.socket(fileno=CONTROL)
        self._function: Callable[[dict[str, Any]], Any] | None = None
        self._keep = False  # a handler serves one activation after the other
        self._handlers: set[int] = set()
        self._signals: dict[int, Any] = {}  # what the code set for those that the initializer uses
        self._sockets: list[int] = []  # that the code opened when it was loaded
        self._files: list[int] = []  # that it opened to read, and folders
        self._loops: list[tuple[Any, list[Any]]] = []  # of asyncio, that it made, with what they watch
        self._wake: tuple[int, int] = (-1, -1)
        self._hints = (-1, -1)  # a pipe: see hints
        self._pages: list[tuple[int, int]] | None = None  # that handlers write to, when one has told them
        self._forks = 0
        self._poll = select.poll()
        self._poll.register(CONTROL, select.POLLIN)

    def serve(self) -> None:
        """Execute what the server asks, and tell it of handlers that ended."""
        kernel.set_dumpable(0)
        self._send(wire.HELLO, {"protocol": wire.PROTOCOL, "language": "python", "version": sys.version.split()[0]})
        while True:
            for fd, _ in self._poll.poll():
                if fd == self._hints[0]:
                    self._take_hints()
                    continue
                if fd != CONTROL:
                    os.read(fd, 4096)
                    self._reap()
                    continue
                frame = self._next_frame()
                if frame is None:
                    return
                self._obey(frame)

    def _next_frame(self) -> wire.Frame | None:
        try:
            return wire.read(CONTROL)
        except ConnectionError:  # the server went with something of ours unread
            return None

    def _obey(self, frame: wire.Frame) -> None:
        if frame.type == wire.INIT and self._function is None:
            self._init(frame)
        elif frame.type == wire.FORK and self._function is not None:
            self._fork(self._function)
        else:
            raise wire.ProtocolError(f"a frame of type {frame.type} is not expected now")

    def _send(self, type_: int, header: dict[str, Any]) -> None:
        wire.write(CONTROL, wire.pack(type_, header))

    def _init(self, frame: wire.Frame) -> None:
        os.environ.update(frame.header.get("env", {}))
        try:
            main_name = frame.header.get("main", "")
            self._keep = frame.header.get("keep", False)
            try:
                self._function = loader.load(frame.payload, frame.header.get("binary", False), main_name)
            finally:
                handler.flush()  # what is printed without a newline would be in each handler's buffer, too
        except loader.LoadError as error:
            if error.__cause__ is not None:
                handler.report(error.__cause__)
            self._send(wire.INIT_DONE, {"ok": False, "error": f"Initialization has failed: {error}."})
            return
        except BaseException as error:
            handler.report(error)
            text = f"Initialization has failed: {handler.describe(error)}. See the logs for details."
            if isinstance(error, ModuleNotFoundError):
                text += " Forerun installs no packages: put them in the function's folder (docs/guide/dependencies.md)."
            self._send(wire.INIT_DONE, {"ok": False, "error": text})
            return
        self._take_signals()
        self._hear_hints()
        kernel.enter_cage()
        gc.collect()  # which may close what the code has opened
        self._loops = _find_loops()
        self._sockets, self._files = _find_open()
        gc.freeze()
        self._send(wire.INIT_DONE, {"ok": True})

    def _take_signals(self) -> None:
        """Hear of children that end; keep what the action's code set for its handlers."""
        self._wake = os.pipe()
        for fd in self._wake:
            os.set_blocking(fd, False)
        self._signals = {
            _signal.SIGCHLD: _signal.signal(_signal.SIGCHLD, _ignore),
            _signal.SIGINT: _signal.signal(_signal.SIGINT, _signal.SIG_IGN),  # a handler may send it to everyone
        }
        for number in _signal.valid_signals() - self._signals.keys():  # what handlers send must change nothing here
            if callable(_signal.getsignal(number)):
                self._signals[number] = _signal.signal(number, _signal.SIG_IGN)
        _signal.set_wakeup_fd(self._wake[1], warn_on_full_buffer=False)
        self._poll.register(self._wake[0], select.POLLIN)
        self._reap()

    def _hear_hints(self) -> None:
        self._hints = os.pipe()
        for fd in self._hints:
            os.set_blocking(fd, False)
        self._poll.register(self._hints[0], select.POLLIN)

    def _take_hints(self) -> None:
        pages = hints.take(self._hints[0])
        if pages is not None:
            self._pages = pages
        gc.freeze()

    def _fork(self, function: Callable[[dict[str, Any]], Any]) -> None:
        threads = _thread._count() > 0
        if threads:  # of the code's own, which may open more
            self._sockets, self._files = _find_open()
        servers_end, own_end = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_STREAM)
        # The server learns the handler's process id in its own namespace from the credentials of what it sends.
        servers_end.setsockopt(_SOL_SOCKET, _SO_PASSCRED, 1)
        self._forks += 1
        try:
            pid = os.fork()
        except OSError as error:
            self._send(wire.HANDLER, {"error": f"fork: {error.strerror}"})
            return
        if pid == 0:
            self._become_handler(own_end, servers_end, function)
        self._handlers.add(pid)
        header = b'{"pid":%d,"threads":true}' % pid if threads else b'{"pid":%d}' % pid
        wire.write_with_descriptor(self._control, wire.join(wire.HANDLER, header), servers_end.fileno())  # type: ignore[arg-type]
        servers_end.close()
        own_end.close()

    def _become_handler(
        self, own_end: _socket.socket, servers_end: _socket.socket, function: Callable[[dict[str, Any]], Any]
    ) -> NoReturn:
        try:
            os.setsid()
            mask = handler.hold_signals()
            self._restore_signals()
            self._control.close()
            servers_end.close()
            for fd in (*self._wake, self._hints[0]):
                os.close(fd)
            if self._sockets:
                _cut(self._sockets, own_end.fileno())
            for fd in self._files:
                _reopen(fd)
            for loop, watched in self._loops:
                _renew(loop, watched)
            _reseed()
            handler.serve(own_end.fileno(), function, self._keep, mask, self._hints[1], self._learned())
        finally:
            os._exit(70)

    def _learned(self) -> list[tuple[int, int]] | None:
        """Return the pages that handlers write to, or None if this one is to tell them."""
        if self._forks < _LEARN_FIRST:
            return []
        return None if self._forks % _LEARN_EVERY == 0 else self._pages

    def _restore_signals(self) -> None:
        _signal.set_wakeup_fd(-1)
        for number, previous in self._signals.items():
            _signal.signal(number, _signal.SIG_DFL if previous is None else previous)

    def _reap(self) -> None:
        """Collect every child that ended, orphans of handlers among them, and tell of the handlers."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid in self._handlers:
                self._handlers.discard(pid)
                code = os.waitstatus_to_exitcode(status)
                how = b'{"pid":%d,"status":%d}' % (pid, code) if code >= 0 else b'{"pid":%d,"signal":%d}' % (pid, -code)
                wire.write(CONTROL, wire.join(wire.EXIT, how))


def _ignore(_number: int, _frame: Any) -> None:
    """Stand as a handler, so that the signal wakes the poll."""


def _cut(sockets: list[int], own: int) -> None:
    """Put dead sockets in the place of those that the code opened when it was loaded: they belong to no activation.

    Of one that it has closed the number may be another's by now.
    """
    dead, other = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_STREAM)
    other.close()
    for fd in sockets:
        if fd != own and _is_socket(fd):
            os.dup2(dead.fileno(), fd, inheritable=False)
    dead.close()


def _is_socket(fd: int) -> bool:
    try:
        return stat.S_ISSOCK(os.fstat(fd).st_mode)
    except OSError:
        return False


def _reopen(fd: int) -> None:
    """Give this process a position and locks of its own in a file or folder that the code opened when it was loaded."""
    try:
        own = os.open(f"/proc/self/fd/{fd}", os.O_RDONLY | os.O_CLOEXEC)
        os.lseek(own, os.lseek(fd, 0, os.SEEK_CUR), os.SEEK_SET)
        os.dup2(own, fd, inheritable=os.get_inheritable(fd))
        os.close(own)
    except OSError:
        return  # a thread has closed it


def _find_open() -> tuple[list[int], list[int]]:
    """Find the sockets, and the files and folders that are only read, which the code has opened."""
    sockets, files = [], []
    for fd in map(int, os.listdir("/proc/self/fd")):
        if fd == CONTROL:
            continue
        try:
            mode, flags = os.fstat(fd).st_mode, fcntl.fcntl(fd, fcntl.F_GETFL)
        except OSError:
            continue  # it was that of the listing
        if stat.S_ISSOCK(mode):
            sockets.append(fd)
        elif (stat.S_ISREG(mode) or stat.S_ISDIR(mode)) and flags & (os.O_ACCMODE | os.O_PATH) == os.O_RDONLY:
            files.append(fd)  # a path has neither a position nor locks
    return sockets, files


def _find_loops() -> list[tuple[Any, list[Any]]]:
    """Find the event loops that the code has made, with what they watch, and close what they watch it through."""
    base = getattr(sys.modules.get("asyncio.selector_events"), "BaseSelectorEventLoop", None)
    if base is None:
        return []
    found = [loop for loop in gc.get_objects() if issubclass(type(loop), base) and not loop.is_closed()]
    loops = [(loop, list(loop._selector.get_map().values())) for loop in found]
    if _thread._count() == 0:  # else one may run
        for loop in found:
            loop._selector.close()  # handlers would share it
    return loops


def _renew(loop: Any, watched: list[Any]) -> None:
    """Have an event loop watch in this process, and wake up: the sockets by which it does that are cut."""
    import selectors

    loop._selector = selectors.DefaultSelector()
    for key in watched:
        try:
            loop._selector.register(key.fileobj, key.events, key.data)
        except (OSError, ValueError):
            continue  # the code has closed it
    loop._close_self_pipe()
    loop._make_self_pipe()


def _reseed() -> None:
    """Give the handler random numbers of its own; the random module does that itself after a fork."""
    numpy_random = sys.modules.get("numpy.random")
    if numpy_random is not None:
        numpy_random.seed()
