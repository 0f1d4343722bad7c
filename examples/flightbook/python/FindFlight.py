"""FindFlight finds a day's first flight after a time: {from, to, date, after} -> {flight, departs, hour, distance}."""

import json
import os
import time

import redis

state = redis.Redis.from_url(os.environ["REDIS_URL"], decode_responses=True)

SEARCH_SECONDS = 0.06  # in which the airlines' search answers


def main(args: dict) -> dict:
    """Add the flight to the request; a route that nobody flies that day leaves it without one."""
    time.sleep(SEARCH_SECONDS)  # in place of the request
    text = state.get(f"flightbook:flights:{args['from']}:{args['to']}:{args['date']}")
    for flight in json.loads(text or "[]"):  # in the order of departure
        if flight["departs"] >= args["after"]:
            return args | flight
    return args
