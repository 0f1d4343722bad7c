"""A function that does the harm it is asked to, and looks for what is left of earlier harm."""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
import time

FOLDERS = (os.environ["HOME"], "/dev/shm")  # noqa: S108 - where a function can write


def main(args: dict) -> object:
    """Do what args ask for."""
    what = args["do"]
    if what == "look":
        return look()
    os.environ["LEFT"] = what
    return globals()["do_" + what.replace(" ", "_")]()


def look() -> dict:
    """Count what an earlier activation left."""
    return {
        "environment": int("LEFT" in os.environ),
        "files": sum(len(os.listdir(folder)) for folder in FOLDERS),
        "processes": sum(sleeps(process) for process in os.listdir("/proc")),
    }


def sleeps(process: str) -> bool:
    """Tell whether a process of /proc is one that do_children leaves."""
    try:
        with open(f"/proc/{process}/cmdline", "rb") as command:
            return b"sleep" in command.read()
    except OSError:
        return False


def do_loop() -> None:
    """Never end."""
    while True:
        pass


def do_memory() -> None:
    """Take all memory."""
    hog = []
    while True:
        hog.append(bytearray(8 << 20))


def do_fork() -> None:
    """Make processes that make processes."""
    while True:
        with contextlib.suppress(OSError):
            os.fork()


def do_disk() -> None:
    """Fill what can be written to."""
    with open(f"{FOLDERS[0]}/full", "wb") as file:
        while True:
            file.write(bytes(1 << 20))


def do_flood() -> dict:
    """Write a log without an end."""
    for _ in range(1 << 15):
        print("x" * 100)
    return {"ok": True}


def do_signal() -> None:
    """Crash."""
    os.kill(os.getpid(), 11)


def do_exit() -> None:
    """End at once."""
    os._exit(3)


def do_close() -> dict:
    """Close every descriptor, that of the server too."""
    os.closerange(0, 256)
    return {}


def do_noise() -> None:
    """Write what is no protocol to every descriptor."""
    for fd in range(3, 64):
        try:
            os.write(fd, b"\xff" * 4096)
        except OSError:
            continue
    time.sleep(60)


def do_number() -> int:
    """Return no object."""
    return 3


def do_no_JSON() -> dict:
    """Return what is not JSON."""
    return {"x": {1, 2}}


def do_long() -> dict:
    """Return too much."""
    return {"x": "y" * (7 << 20)}


def do_deep() -> dict:
    """Return what lies too deep in itself."""
    x: list = []
    for _ in range(600):
        x = [x]
    return {"x": x}


def do_children() -> dict:
    """Leave processes of another session, and files."""
    for folder in FOLDERS:
        with open(f"{folder}/left", "w"):
            pass
    subprocess.Popen(["/bin/sh", "-c", "sleep 1000 & sleep 1000"], start_new_session=True)
    return {"ok": True}


def do_threads() -> dict:
    """Leave threads."""
    for _ in range(20):
        threading.Thread(target=time.sleep, args=(1000,)).start()
    return {"ok": True}
