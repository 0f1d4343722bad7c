"""ReserveHotel takes a room at the destination, if the trip needs one: {to, date, nights} -> {room}."""

import os

import redis

state = redis.Redis.from_url(os.environ["REDIS_URL"], decode_responses=True)


def main(args: dict) -> dict:
    """Count a room of the destination as taken from the day of the flight on."""
    if args["nights"] == 0:
        return args
    return args | {"room": state.incr(f"{args['store']}:rooms:{args['to']}:{args['date']}")}
