"""TurnAir turns the home's air conditioning on for an hour: {home, hour, ...} -> {air, ...}."""

import os

import redis

AIR_SECONDS = 3600

state = redis.Redis.from_url(os.environ["REDIS_URL"], decode_responses=True)


def main(args: dict) -> dict:
    """Switch the device; it goes off when its record expires."""
    state.set(f"home:{args['home']}:air", args["hour"], ex=AIR_SECONDS)
    return args | {"air": "on"}
