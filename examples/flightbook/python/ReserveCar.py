"""ReserveCar takes a car at the destination, if the trip needs one: {to, date, car} -> {carNumber}."""

import os

import redis

state = redis.Redis.from_url(os.environ["REDIS_URL"], decode_responses=True)


def main(args: dict) -> dict:
    """Count a car of the destination as taken from the day of the flight on."""
    if not args["car"]:
        return args
    return args | {"carNumber": state.incr(f"{args['store']}:cars:{args['to']}:{args['date']}")}
