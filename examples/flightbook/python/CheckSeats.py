"""CheckSeats tells whether there is a flight with a seat left: {flight, date} -> {value}."""

import os
import time

import redis

state = redis.Redis.from_url(os.environ["REDIS_URL"], decode_responses=True)

SEATS_SECONDS = 0.06  # in which the airline answers


def main(args: dict) -> dict:
    """Look at the free seats of the flight, if one was found."""
    time.sleep(SEATS_SECONDS)  # in place of the request
    free = state.llen(f"{args['store']}:free:{args['date']}:{args['flight']}") if "flight" in args else 0
    print(f"{args.get('flight', 'no flight')}: {free} free")
    return {"value": free > 0}
