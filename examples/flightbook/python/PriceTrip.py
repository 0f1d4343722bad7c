"""PriceTrip prices flight, hotel and car: {to, departs, distance, delay, nights, car} -> {price} in cents."""

import os
import time

import redis

LONG_DELAY = 30

state = redis.Redis.from_url(os.environ["REDIS_URL"], decode_responses=True)

RATES_SECONDS = 0.06  # in which the hotels and car rentals answer


def main(args: dict) -> dict:
    """Take off 15% for odd hours and 10% for a long delay; a car is kept at least a day."""
    time.sleep(RATES_SECONDS)  # in place of the request
    hotel, car = (int(rate or 0) for rate in state.hmget(f"flightbook:rates:{args['to']}", "hotel", "car"))
    fare = 4900 + 11 * args["distance"]
    if args["departs"] < "07:00" or args["departs"] >= "20:00":
        fare = fare * 85 // 100
    if args["delay"] >= LONG_DELAY:
        fare = fare * 90 // 100
    rented = car * max(1, args["nights"]) if args["car"] else 0
    return args | {"price": fare + hotel * args["nights"] + rented}
