"""Fail counts a login that was refused: {user} -> {denied, attempts}."""

import os

import redis

WINDOW_SECONDS = 900

state = redis.Redis.from_url(os.environ["REDIS_URL"], decode_responses=True)


def main(args: dict) -> dict:
    """Count the refusals of the last quarter of an hour."""
    attempts = state.incr(f"home:refused:{args.get('user', '')}")
    state.expire(f"home:refused:{args.get('user', '')}", WINDOW_SECONDS)
    return {"denied": True, "attempts": attempts}
