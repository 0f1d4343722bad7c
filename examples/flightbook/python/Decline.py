"""Decline ends a booking that cannot be, and releases what was reserved for it: {user, ...} -> {declined}."""

import os

import redis

state = redis.Redis.from_url(os.environ["REDIS_URL"], decode_responses=True)


def main(args: dict) -> dict:
    """Tell the reason from how far the booking came."""
    store, place = args["store"], f"{args['to']}:{args['date']}"
    if "seat" in args:
        reason = "the payment was refused"
        state.lpush(f"{store}:free:{args['date']}:{args['flight']}", args["seat"])
    elif "price" in args:
        reason = "the customer may not book this"
    else:
        reason = "no seat is left" if "flight" in args else "nobody flies there then"
    for name, reserved in (("rooms", "room"), ("cars", "carNumber")):
        if reserved in args:
            state.decr(f"{store}:{name}:{place}")
    state.incr(f"{store}:declined:{reason}")
    return {"declined": reason}
