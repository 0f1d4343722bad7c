"""System calls that no module of the standard library offers.

They go through _ctypes, which costs a fifth of what ctypes does. Where a Python or a kernel lacks them the functions
do nothing: they are a second line, behind the sandbox's own.
"""

from __future__ import annotations

import os
import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Callable

_PR_SET_DUMPABLE = 4
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


def set_dumpable(value: int) -> None:
    """With 0, processes of the same user cannot open this one's memory or see its descriptors."""
    _prctl(_PR_SET_DUMPABLE, value, 0, 0, 0)


def make_cage() -> int:
    """Return a descriptor for enter_cage, or -1 if this kernel has no Landlock."""
    version = _syscall(_CREATE_RULESET, None, 0, _CREATE_RULESET_VERSION)
    if version < 1:
        return -1
    rights = _WRITES | (_REFER if version >= 2 else 0) | (_TRUNCATE if version >= 3 else 0)
    cage = _syscall(_CREATE_RULESET, struct.pack("=Q", rights), 8, 0)
    if cage < 0:
        return -1
    for folder in _WRITABLE:
        fd = os.open(folder, os.O_PATH | os.O_CLOEXEC)
        failed = _syscall(_ADD_RULE, cage, _RULE_PATH_BENEATH, struct.pack("=Qi", rights, fd), 0) != 0
        os.close(fd)
        if failed:
            os.close(cage)
            return -1
    return cage


def enter_cage(cage: int) -> None:
    """From now on this process can write only to folders that are emptied after its activation: not to the code's."""
    if cage >= 0:
        _syscall(_RESTRICT_SELF, cage, 0)
        os.close(cage)
