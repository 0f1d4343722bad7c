"""CompareTemp tells whether it is too warm in the home: {home, celsius} -> {value}."""

import os
import time

import redis

state = redis.Redis.from_url(os.environ["REDIS_URL"], decode_responses=True)

THERMOSTAT_SECONDS = 0.1  # in which the thermostat answers by radio


def main(args: dict) -> dict:
    """Compare the temperature with the home's own threshold."""
    time.sleep(THERMOSTAT_SECONDS)  # in place of the request to it
    threshold = float(state.hget(f"home:{args['home']}", "threshold"))
    print(f"{args['celsius']} °C, threshold {threshold} °C")
    return {"value": args["celsius"] > threshold}
