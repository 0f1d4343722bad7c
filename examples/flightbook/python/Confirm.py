"""Confirm writes the booking down, credits its miles and tells the customer: {booking, ...} -> {booking, seat, ...}."""

import os

import redis

state = redis.Redis.from_url(os.environ["REDIS_URL"], decode_responses=True)


def main(args: dict) -> dict:
    """Credit a mile for each mile of the flight, twice that to gold customers; write the booking and a message."""
    user, store = args["user"], args["store"]
    tier = state.hget(f"{store}:customer:{user}", "tier")
    miles = args["distance"] * (2 if tier == "gold" else 1)
    balance = state.incrby(f"{store}:miles:{user}", miles)
    booking = {name: args[name] for name in ("user", "flight", "date", "departs", "seat", "price")}
    state.hset(f"{store}:booking:{args['booking']}", mapping=booking)
    state.rpush(f"{store}:messages:{user}", f"{args['booking']} is booked; you have {balance} miles.")
    shown = {name: args[name] for name in ("booking", "flight", "departs", "seat", "delay", "price")}
    extras = {name: args[name] for name in ("room", "carNumber") if name in args}
    return shown | extras | {"miles": balance}
