"""Says which part of a function needs how many processors, so that Forerun's scheduler can run other work beside it."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

from .errors import ConnectionFailed, OpenWhiskError

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
    from types import TracebackType
    from typing import Any

_DOOR = ("127.0.0.1", 6379)  # the state door of a sandbox
_API = "http://127.0.0.1:3233"  # where Forerun says that a function finds the API; elsewhere phases do nothing
_LEAST, _MOST = 0.0625, 1024  # processors
_LONGEST = 64
_LETTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")
_CO_COROUTINE = 0x80  # inspect.CO_COROUTINE, whose import takes long


class microtask:
    """A phase of the function: `with microtask("read", cpu=0.1):`, or a decorator of a function that is one.

    cpu is how many processors the phase needs, 0.0625 to 1024. It begins when the scheduler lets it in. Phases do not
    nest: an inner one ends the outer one, which is asked for again at the inner one's end. Outside Forerun it does
    nothing. Raises ValueError for a wrong name or need.
    """

    def __init__(self, name: str, cpu: float = 1.0) -> None:
        if not 0 < len(name) <= _LONGEST or not _LETTERS.issuperset(name) or name.upper() == "END":
            raise ValueError(
                f"{name[:_LONGEST]!r} is not a name of a phase: give 1 to {_LONGEST} letters, digits, '.', '_' or '-'"
            )
        if not _LEAST <= cpu <= _MOST:
            raise ValueError(f"cpu={cpu} is out of range: a phase needs {_LEAST} (a sixteenth) to {_MOST} processors")
        self.name = name
        self.cpu = cpu

    def __enter__(self) -> microtask:
        """Begin the phase when the scheduler lets it in."""
        _phases.begin(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """End it; an outer one is asked for again."""
        _phases.end()

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Make a phase of each call of a function."""
        if function.__code__.co_flags & _CO_COROUTINE:
            raise TypeError("microtask is not a decorator of an async function: write `with microtask(...):` inside it")

        def phase(*args: Any, **kwargs: Any) -> Any:
            with microtask(self.name, self.cpu):
                return function(*args, **kwargs)

        phase.__name__, phase.__doc__, phase.__dict__["__wrapped__"] = function.__name__, function.__doc__, function
        return phase


class _Phases:
    """The phases of this process that have begun and not ended, and the connection on which they are said."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.begun: list[microtask] = []
        self.connection: socket.socket | None = None
        self.process = 0  # that made the connection

    def begin(self, phase: microtask) -> None:
        with self.lock:
            self._say(phase)
            self.begun.append(phase)

    def end(self) -> None:
        with self.lock:
            self.begun.pop()
            self._say(self.begun[-1] if self.begun else None)

    def _say(self, phase: microtask | None) -> None:
        if os.environ.get("__OW_API_HOST") != _API or "__OW_ACTIVATION_ID" not in os.environ:
            return
        words = [b"FORERUN.PHASE", b"END"]
        if phase:
            words[1:] = [phase.name.encode(), repr(phase.cpu).encode()]
        command = b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)
        known = self.connection is not None and self.process == os.getpid()
        try:
            answer = self._ask(command)
        except OSError as error:
            self.connection = None
            if not known:
                raise ConnectionFailed(f"The state door does not answer: {error}.") from error
            self._say(phase)  # the connection ended with an earlier activation
            return
        if not answer.startswith(b"+"):
            raise OpenWhiskError(f"The phase is refused: {answer[1:].decode(errors='replace').strip()}.")

    def _ask(self, command: bytes) -> bytes:
        import socket

        if self.connection is None or self.process != os.getpid():
            self.connection = socket.create_connection(_DOOR)
            self.process = os.getpid()
        self.connection.sendall(command)
        answer = b""
        while not answer.endswith(b"\r\n"):
            part = self.connection.recv(4096)
            if not part:
                raise OSError("the connection is closed")
            answer += part
        return answer


_phases = _Phases()
