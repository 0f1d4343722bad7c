"""CheckCustomer tells whether a customer may book a trip of this price: {user, price} -> {value}."""

import os
import time

import redis

state = redis.Redis.from_url(os.environ["REDIS_URL"], decode_responses=True)

CUSTOMER_SECONDS = 0.06  # in which the register of customers answers


def main(args: dict) -> dict:
    """Ask for a known customer who is not blocked and whose limit is not exceeded."""
    time.sleep(CUSTOMER_SECONDS)  # in place of the request
    limit, blocked = state.hmget(f"{args['store']}:customer:{args['user']}", "limit", "blocked")
    return {"value": limit is not None and blocked != "yes" and args["price"] <= int(limit)}
