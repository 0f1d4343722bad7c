"""ReadTemp reads what the sensor of the user's home measured: {user, hour} -> {home, station, hour, fahrenheit}."""

import os
import time

import redis

state = redis.Redis.from_url(os.environ["REDIS_URL"], decode_responses=True)

SENSOR_SECONDS = 0.1  # in which the sensor answers by radio


def main(args: dict) -> dict:
    """Read the measurement of the hour, like "2013-07-18T18" (UTC)."""
    home = state.hget(f"home:user:{args['user']}", "home")
    station = state.hget(f"home:{home}", "station")
    time.sleep(SENSOR_SECONDS)  # in place of the request to it
    fahrenheit = state.hget(f"weather:{station}", args["hour"])
    if fahrenheit is None:
        return {"error": f"The sensor {station} measured nothing at {args['hour']}."}
    return {
        "user": args["user"],
        "home": home,
        "station": station,
        "hour": args["hour"],
        "fahrenheit": float(fahrenheit),
    }
