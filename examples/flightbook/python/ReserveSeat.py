"""ReserveSeat takes a free seat: {flight, date} -> {seat, booking}."""

import os

import redis

state = redis.Redis.from_url(os.environ["REDIS_URL"], decode_responses=True)


def main(args: dict) -> dict:
    """Take the first seat of the list; another booking may have taken the last since it was looked at."""
    seat = state.lpop(f"{args['store']}:free:{args['date']}:{args['flight']}")
    if seat is None:
        return {"error": f"The last seat of {args['flight']} was taken meanwhile: try again."}
    return args | {"seat": seat, "booking": f"{args['flight']}-{args['date']}-{seat}"}
