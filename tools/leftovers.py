"""Finds what tests have left on the machine: processes, mounts below the folder for temporary files, control groups.

Processes are this one's descendants, of whom it takes in those that have lost their parent: what others run on the
machine is not among them. A connection lives as long as a process that has it. Of the rest only what is new counts, and
no control group of a server that lives.
"""

from __future__ import annotations

import ctypes
import os
import pathlib
import sys
import tempfile
import time
import traceback
from collections import defaultdict
from collections.abc import Callable
from typing import NoReturn

SET_CHILD_SUBREAPER = 36  # of prctl(2)
PATIENCE = 60.0  # seconds, in which what was killed may vanish, on a busy machine too


def adopt(run: Callable[[], str]) -> str:
    """Run something in a child, and return its answer; empty if it failed.

    This process becomes the parent of all descendants that lose theirs, and waits for each that ends, as the first
    process of a machine does: tests look whether what they kill vanishes.
    """
    if ctypes.CDLL(None, use_errno=True).prctl(SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")
    receive, send = os.pipe()
    child = os.fork()
    if child == 0:
        answer_and_exit(run, send)
    os.close(send)
    while os.wait()[0] != child:
        pass
    with os.fdopen(receive) as answer:
        return answer.read()


def answer_and_exit(run: Callable[[], str], to: int) -> NoReturn:
    """Write an answer, or say what went wrong."""
    try:
        os.write(to, run().encode())
    except BaseException:  # else it would go on as a second parent
        traceback.print_exc()
    sys.stdout.flush()
    os._exit(0)


def descendants() -> list[str]:
    """Name the descendants that run, each with its id. Those that have ended are waited for."""
    children: dict[int, list[int]] = defaultdict(list)
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            _, _, rest = stat.read_text(errors="replace").rpartition(") ")  # the name before may hold spaces
        except OSError:
            continue  # it has just ended
        state, parent = rest.split()[:2]
        pid = int(stat.parent.name)
        if state == "Z" and int(parent) == os.getpid():
            os.waitpid(pid, 0)
        elif state != "Z":
            children[int(parent)].append(pid)
    found, to_see = [], children[os.getpid()]
    while to_see:
        pid = to_see.pop()
        to_see += children[pid]
        found.append(f"process {pid}: {command(pid)}")
    return found


def command(pid: int) -> str:
    """Tell the command of a process, as far as one line goes."""
    try:
        words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return "it has just ended"
    return " ".join(" ".join(words).split())[:200]


def marks() -> set[str]:
    """Name the mounts and the control groups that may be of a test's server."""
    lines = pathlib.Path("/proc/self/mountinfo").read_text().splitlines()
    found = {f"mount {line}" for line in lines if tempfile.gettempdir() + "/" in line}
    for folder, names, _ in os.walk("/sys/fs/cgroup"):
        if pathlib.Path(folder).name == "forerun":
            found |= {f"control group {folder}/{name}" for name in names if not is_running(name.rpartition("-")[2])}
            names.clear()
    return found


def is_running(pid: str) -> bool:
    """Tell whether there is a process of that id."""
    return pathlib.Path("/proc", pid, "stat").exists()


def left(before: set[str], patience: float = PATIENCE) -> list[str]:
    """Name what is there that was not among the marks before, when it had time to vanish."""
    end = time.monotonic() + patience
    while (found := descendants() + sorted(marks() - before)) and time.monotonic() < end:
        time.sleep(0.1)
    return found
