"""CompareTemp tells whether it is too warm in the home: {home, celsius} -> {value}."""

import os

import redis

state = redis.Redis.from_url(os.environ["REDIS_URL"], decode_responses=True)


def main(args: dict) -> dict:
    """Compare the temperature with the home's own threshold."""
    threshold = float(state.hget(f"home:{args['home']}", "threshold"))
    print(f"{args['celsius']} °C, threshold {threshold} °C")
    return {"value": args["celsius"] > threshold}
