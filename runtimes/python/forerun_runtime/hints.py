"""What handlers tell the initializer, so that later ones are quicker. Nothing else passes from one to the next.

Imports: a function's first use of a library often imports. Later handlers find the modules imported; they are those of
the standard library only, which do nothing when they are imported.

Pages: a handler shares all memory with the initializer until it writes to it, and the first write to each page costs a
fault: 2 ms of the 5 that a first Redis command takes. A spare that has nothing to do takes those of the pages that
earlier handlers wrote to.
"""

from __future__ import annotations

import _thread
import os
import select
import sys

from . import kernel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from importlib.machinery import ModuleSpec
    from typing import Any

_STANDARD = getattr(sys, "stdlib_module_names", frozenset())  # from Python 3.10 on
_FOLDER = os.path.join(os.path.dirname(os.__file__), "")
_NEVER = frozenset({"antigravity", "this", "idlelib", "turtle", "turtledemo", "test", "__main__"})
_MOST = 1 << 16  # bytes of what is told: what a pipe holds
_FEW_PAGES = (
    600  # that a handler of a small function writes to anyway; to take them ahead would cost more than it spares
)
_MANY_PAGES = 1 << 14
_GAP = 2  # pages between two that are taken with them


def tell(fd: int, modules: int, learn: bool) -> None:
    """Tell the modules that were imported since there were so many, and the pages written to if those are wanted."""
    lines = []
    if len(sys.modules) != modules:
        lines.append(" ".join(["imports", *(name for name in list(sys.modules)[modules:] if _allowed(name))]))
    if learn:
        lines.append(" ".join(["pages", *(f"{first}+{count}" for first, count in _written())]))
    data = "".join(line + "\n" for line in lines).encode("utf-8", "replace")
    if 0 < len(data) <= _MOST:
        try:
            os.write(fd, data)
        except OSError:
            return  # the pipe is full: it is learned another time


def take(fd: int) -> list[tuple[int, int]] | None:
    """Import what handlers named; returns the ranges of pages that they told, if they did."""
    pages = None
    for line in os.read(fd, _MOST).decode("utf-8", "replace").splitlines():
        kind, _, rest = line.partition(" ")
        if kind == "imports":
            _import(rest.split())
        elif kind == "pages":
            pages = _ranges(rest.split())
    return pages


def _import(names: list[str]) -> None:
    finder = _StandardFinder()
    sys.meta_path.insert(0, finder)  # type: ignore[arg-type]
    for name in names:
        if name in sys.modules or not _allowed(name):
            continue
        try:
            __import__(name)
        except BaseException:  # noqa: S112 - then the function that needs it hears of it
            continue
    sys.meta_path.remove(finder)  # type: ignore[arg-type]


class _RefusedError(BaseException):
    """A module is not of the standard library. No ImportError: who imports it must not do without."""


class _StandardFinder:
    """Finds what the others do, but refuses what only has the name of a standard module: it may do anything."""

    def __init__(self) -> None:
        self._others = list(sys.meta_path)
        self._thread = _thread.get_ident()

    def find_spec(self, *what: Any) -> ModuleSpec | None:
        """Find a module for the thread that takes hints (PEP 451)."""
        if _thread.get_ident() != self._thread:
            return None
        spec = next(filter(None, (other.find_spec(*what) for other in self._others)), None)
        if spec is not None and not _is_standard(spec):
            raise _RefusedError
        return spec


def _is_standard(spec: ModuleSpec) -> bool:
    return spec.origin in ("built-in", "frozen") or (spec.origin or "").startswith(_FOLDER)


def _allowed(name: str) -> bool:
    top = name.partition(".")[0]
    return top in _STANDARD and top not in _NEVER


def _ranges(words: list[str]) -> list[tuple[int, int]]:
    try:
        ranges = [(int(first), int(count)) for first, _, count in (word.partition("+") for word in words)]
    except ValueError:
        return []
    total = sum(count for _, count in ranges)
    fine = all(0 < first < 1 << 52 and 0 < count <= _MANY_PAGES for first, count in ranges)
    return ranges if fine and _FEW_PAGES <= total <= _MANY_PAGES else []


def rehearse(fd: int, ranges: Sequence[tuple[int, int]]) -> None:
    """Write to pages as long as nothing arrives at fd."""
    if not ranges:
        return
    waiting = select.poll()
    waiting.register(fd, select.POLLIN)
    for number, (first, count) in enumerate(ranges):
        if number % 8 == 0 and waiting.poll(0):
            return
        kernel.populate(first, count)


def _written() -> Iterator[tuple[int, int]]:
    """Find the ranges of pages that are this process's own: those that it has written to."""
    first = end = 0
    for page in _own_pages():
        if page - end > _GAP:
            if first:
                yield first, end - first
            first = page
        end = page + 1
    if first:
        yield first, end - first


def _own_pages() -> Iterator[int]:
    try:
        with open("/proc/self/maps") as maps, open("/proc/self/pagemap", "rb", buffering=0) as pagemap:
            for area in maps.read().splitlines():
                bounds, rights, *_ = area.split()
                if rights == "rw-p" and (area.endswith("[heap]") or not area.endswith("]")):
                    start, _, stop = bounds.partition("-")
                    begin = int(start, 16) >> 12
                    pagemap.seek(begin * 8)
                    entries = memoryview(pagemap.read(((int(stop, 16) >> 12) - begin) * 8)).cast("Q")
                    # present, and mapped by nobody else (Linux, pagemap.rst)
                    yield from (begin + i for i, entry in enumerate(entries) if entry >> 63 and entry >> 56 & 1)
    except OSError:
        return
