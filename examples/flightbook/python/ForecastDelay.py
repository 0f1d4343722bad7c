"""ForecastDelay expects a delay of weather and carrier: {flight, from, hour} -> {delay}, in minutes."""

import json
import os
import time

import redis

state = redis.Redis.from_url(os.environ["REDIS_URL"], decode_responses=True)

WEATHER_SECONDS = 0.06  # in which the weather service answers


def main(args: dict) -> dict:
    """Add what wind (tenths of mph), haze (tenths of a mile) and rain (hundredths of an inch) cost to what is usual."""
    time.sleep(WEATHER_SECONDS)  # in place of the request
    usual = int(state.hget(f"flightbook:delays:{args['from']}", args["flight"][:2]) or 0)
    weather = json.loads(state.hget(f"flightbook:weather:{args['from']}", args["hour"]) or "{}")
    wind = max(0, weather.get("wind", 0) - 150) // 10
    haze = max(0, 100 - weather.get("visibility", 100)) // 4
    rain = weather.get("rain", 0) // 2
    return args | {"delay": usual + wind + haze + rain}
