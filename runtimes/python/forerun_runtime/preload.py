"""What one handler had to import of the standard library, later ones find imported.

A function's first use of a library often imports: the first connection to Redis takes 6 ms instead of 1. The handler
tells the initializer the names, over a pipe. They are names of the standard library only, whose modules do nothing
when they are imported: no activation can leave anything else to the next.
"""

from __future__ import annotations

import os
import sys

_STANDARD = getattr(sys, "stdlib_module_names", frozenset())  # from Python 3.10 on
_NEVER = frozenset({"antigravity", "this", "idlelib", "turtle", "turtledemo", "test", "__main__"})
_MOST = 4096  # bytes of names: a pipe takes them at once or not at all


def tell(fd: int, before: int) -> None:
    """Name the modules that were imported since there were so many."""
    if len(sys.modules) == before:
        return
    names = [name for name in list(sys.modules)[before:] if _allowed(name)]
    data = (" ".join(names) + "\n").encode("utf-8", "replace")
    if names and len(data) <= _MOST:
        try:
            os.write(fd, data)
        except OSError:
            return  # the pipe is full: it is learned another time


def take(fd: int) -> None:
    """Import what handlers named."""
    for name in os.read(fd, _MOST).decode("utf-8", "replace").split():
        if name in sys.modules or not _allowed(name):
            continue
        try:
            __import__(name)
        except BaseException:  # noqa: S112 - then the function that needs it hears of it
            continue


def _allowed(name: str) -> bool:
    top = name.partition(".")[0]
    return top in _STANDARD and top not in _NEVER
