"""System calls that no module of the standard library offers.

They go through _ctypes, which costs a fifth of what ctypes does. Where a Python or a kernel lacks them the functions
do nothing: they are a second line, behind the sandbox's own.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

_PR_SET_DUMPABLE = 4
_POPULATE_WRITE = 23  # MADV_*, from Linux 5.14 on; others refuse it
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # landlock_*, the same on every architecture
_CREATE_RULESET_VERSION = 1
_RULE_PATH_BENEATH = 1

# LANDLOCK_ACCESS_FS_*: write, remove and make, whatever it is; then what later versions added.
_WRITES = 0x1FF2
_REFER, _TRUNCATE = 1 << 13, 1 << 14
_WRITABLE = ("/tmp", "/dev", "/proc")  # noqa: S108 - what the sandbox empties after each activation, and what is no storage


def _function(name: str) -> Callable[..., int]:
    try:
        import _ctypes

        address = _ctypes.dlsym(_ctypes.dlopen(None, 0), name)
    except (ImportError, AttributeError, OSError):
        return lambda *_: -1
    return lambda *arguments: _ctypes.call_cdeclfunction(address, arguments)


_prctl, _syscall, _putenv, _waitpid = map(_function, ("prctl", "syscall", "putenv", "waitpid"))


def _wide(function: Callable[..., int]) -> Callable[[int, int, int], int] | None:
    """Let a function take an address and a length: plain numbers are passed as int, of 32 bits."""
    try:
        from _ctypes import _SimpleCData
    except ImportError:
        return None

    class Word(_SimpleCData):  # type: ignore[misc, type-arg]
        _type_ = "L"

    return lambda address, length, number: function(Word(address), Word(length), number)


_madvise = _wide(_function("madvise"))


_LINE_BYTES = 512  # and multiples of it: a kind of array takes long to make


def _make_line() -> Callable[[int], Any] | None:
    """Return what makes room for a text of some bytes, which stays where it is; None where that cannot be had."""
    try:
        from _ctypes import Array, _SimpleCData
    except ImportError:
        return None

    class Char(_SimpleCData):  # type: ignore[misc, type-arg]
        _type_ = "c"

    def kind(size: int) -> Any:
        return type("Line", (Array,), {"_type_": Char, "_length_": size})

    usual = kind(_LINE_BYTES)
    return lambda size: usual() if size <= _LINE_BYTES else kind(size + _LINE_BYTES)()


_line = _make_line()
_lines: dict[bytes, Any] = {}  # the variables that were set, each where the C library finds it
_variables = getattr(os.environ, "_data", None)  # what Python sees of them


def set_variable(name: bytes, value: bytes) -> None:
    """Set a variable of the environment in the place that it had: os.putenv keeps and searches all that it ever was."""
    if _line is None or _variables is None:
        os.environb[name] = value
        return
    text = b"%b=%b" % (name, value)
    line = _lines.get(name)
    if line is None or len(line) <= len(text):
        line = _line(len(text) + 1)
    line.value = text
    if _putenv(line) != 0:
        os.environb[name] = value
        return
    _lines[name], _variables[name] = line, value  # a line that was too short is not in use any more


def reap() -> None:
    """Let the children that have ended go. Without any, as usual, os.waitpid raises an exception, which takes long."""
    try:
        while (os.waitpid(-1, os.WNOHANG)[0] if _line is None else _waitpid(-1, None, os.WNOHANG)) > 0:
            continue
    except ChildProcessError:
        pass


def _int(value: int, size: int) -> bytes:
    return value.to_bytes(size, sys.byteorder)


def populate(first: int, count: int) -> None:
    """Take the faults of writing to pages, where there are such pages."""
    if _madvise is not None:
        _madvise(first << 12, count << 12, _POPULATE_WRITE)


def set_dumpable(value: int) -> None:
    """With 0, processes of the same user cannot open this one's memory or see its descriptors."""
    _prctl(_PR_SET_DUMPABLE, value, 0, 0, 0)


def enter_cage() -> None:
    """From now on this process and its children can write only to folders that are emptied after each activation."""
    version = _syscall(_CREATE_RULESET, None, 0, _CREATE_RULESET_VERSION)
    if version < 1:  # this kernel has no Landlock
        return
    rights = _WRITES | (_REFER if version >= 2 else 0) | (_TRUNCATE if version >= 3 else 0)
    cage = _syscall(_CREATE_RULESET, _int(rights, 8), 8, 0)
    if cage < 0:
        return
    if all(_allow(cage, folder, rights) for folder in _WRITABLE):
        _syscall(_RESTRICT_SELF, cage, 0)
    os.close(cage)


def _allow(cage: int, folder: str, rights: int) -> bool:
    fd = os.open(folder, os.O_PATH | os.O_CLOEXEC)
    done = _syscall(_ADD_RULE, cage, _RULE_PATH_BENEATH, _int(rights, 8) + _int(fd, 4), 0) == 0
    os.close(fd)
    return done
