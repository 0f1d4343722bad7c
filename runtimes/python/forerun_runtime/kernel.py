"""System calls that no module of the standard library offers.

They go through _ctypes, which costs a fifth of what ctypes does. Where a Python or a kernel lacks them the functions
do nothing: they are a second line, behind the sandbox's own.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable

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


_prctl, _syscall = _function("prctl"), _function("syscall")


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
