"""Done writes down what was done: {user, home, hour, celsius, air} -> the same, with its number in the audit."""

import json
import os

import redis

state = redis.Redis.from_url(os.environ["REDIS_URL"], decode_responses=True)


def main(args: dict) -> dict:
    """Number the entry of the home's audit, and write it."""
    result = {name: args[name] for name in ("user", "home", "hour", "celsius")} | {"air": args.get("air", "off")}
    entry = state.incr(f"home:{args['home']}:entries")
    state.hset(f"home:{args['home']}:audit", str(entry), json.dumps(result))
    return result | {"entry": entry}
