"""Seed writes what FlightBook starts with: {flights, weather, delays, rates}, or a variant's {store, seats, customers}.

Data reach the state of functions through functions; this is the example's own way in.
"""

import json
import os

import redis

state = redis.Redis.from_url(os.environ["REDIS_URL"], decode_responses=True)


def main(args: dict) -> dict:
    """Write what is given, and count it; an object becomes a hash, or a document inside of one."""
    pipe = state.pipeline(transaction=False)
    for route, flights in args.get("flights", {}).items():  # "JFK:LAX:2013-07-01"
        pipe.set(f"flightbook:flights:{route}", json.dumps(flights))
    for origin, hours in args.get("weather", {}).items():
        pipe.hset(f"flightbook:weather:{origin}", mapping={hour: json.dumps(w) for hour, w in hours.items()})
    for origin, carriers in args.get("delays", {}).items():
        pipe.hset(f"flightbook:delays:{origin}", mapping=carriers)
    for destination, rates in args.get("rates", {}).items():
        pipe.hset(f"flightbook:rates:{destination}", mapping=rates)
    store = args.get("store", "")
    for flight, seats in args.get("seats", {}).items():  # "2013-07-01:UA1545": the free ones
        pipe.delete(f"{store}:free:{flight}")
        pipe.rpush(f"{store}:free:{flight}", *seats)
    for user, customer in args.get("customers", {}).items():
        pipe.hset(f"{store}:customer:{user}", mapping={name: customer[name] for name in ("tier", "limit", "blocked")})
        pipe.set(f"{store}:account:{user}", customer["account"])
    return {"commands": len(pipe.execute())}
