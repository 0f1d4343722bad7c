"""Measures GETs of one key with redis-py: as an action, and as a program that measures once for each line it reads."""

import json
import os
import sys
import time

import redis


def main(args: dict) -> dict:
    """Return the times of `count` GETs in microseconds, and the interpreter."""
    client = redis.Redis.from_url(os.environ["REDIS_URL"])
    client.set("bench:get", "x" * 100)
    for _ in range(50):
        client.get("bench:get")
    times = []
    for _ in range(args["count"]):
        begin = time.perf_counter()
        client.get("bench:get")
        times.append((time.perf_counter() - begin) * 1e6)
    client.close()
    return {"times": times, "python": sys.executable}


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(main(json.loads(line))), flush=True)
