"""CheckSeats tells whether there is a flight with a seat left: {flight, date} -> {value}."""

import os

import redis

state = redis.Redis.from_url(os.environ["REDIS_URL"], decode_responses=True)


def main(args: dict) -> dict:
    """Look at the free seats of the flight, if one was found."""
    free = state.llen(f"{args['store']}:free:{args['date']}:{args['flight']}") if "flight" in args else 0
    print(f"{args.get('flight', 'no flight')}: {free} free")
    return {"value": free > 0}
