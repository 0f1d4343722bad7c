"""A function that does what a test asks it to."""

from __future__ import annotations

import os
import subprocess
import sys
import time

TMP = os.environ["HOME"]  # in a sandbox

calls = 0


def main(args: dict) -> dict:
    """Do what args ask for."""
    global calls
    calls += 1
    match args.get("do", "echo"):
        case "throw":
            raise ValueError("nooo")
        case "exit":
            os._exit(3)
        case "sleep":
            time.sleep(60)
        case "memory":
            hog = []
            while True:
                hog.append(bytearray(8 << 20))
        case "log":
            print("to stdout")
            print("to stderr", file=sys.stderr)
        case "leave":
            found = {"files": len(os.listdir(TMP)), "children": sleepers(), "calls": calls}
            os.mkdir(f"{TMP}/folder")
            open(f"{TMP}/folder/file", "w").close()
            subprocess.Popen(["/bin/sleep", "1000"])
            return found
        case "interfaces":
            import socket

            return {"names": [name for _, name in socket.if_nameindex()]}
        case "count":
            import redis

            return {"n": redis.Redis.from_url(os.environ["REDIS_URL"], socket_timeout=None).incr("counter")}
    return {
        "calls": calls,
        "id": os.environ["__OW_ACTIVATION_ID"],
        "action": os.environ["__OW_ACTION_NAME"],
        "n": args.get("n", 0) + 1,
    }


def sleepers() -> int:
    """Count the processes that an activation left."""
    found = 0
    for process in os.listdir("/proc"):
        try:
            with open(f"/proc/{process}/cmdline", "rb") as command:
                found += command.read().startswith(b"/bin/sleep")
        except OSError:
            continue
    return found
