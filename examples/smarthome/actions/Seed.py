"""Seed writes what the homes start with: {users, homes, readings} -> how many of each.

Data reach the state of functions through functions; this is the example's own way in.
"""

import hashlib
import os
import secrets

import redis

state = redis.Redis.from_url(os.environ["REDIS_URL"], decode_responses=True)


def main(args: dict) -> dict:
    """Write users with salted hashes of their passwords, homes with their settings, readings by station and hour."""
    users, homes, readings = args.get("users", []), args.get("homes", {}), args.get("readings", {})
    for user in users:
        salt = secrets.token_hex(16)
        password = hashlib.scrypt(user["password"].encode(), salt=bytes.fromhex(salt), n=4096, r=8, p=1).hex()
        state.hset(f"home:user:{user['name']}", mapping={"salt": salt, "password": password, "home": user["home"]})
    for name, settings in homes.items():
        state.hset(f"home:{name}", mapping=settings)
    for station, hours in readings.items():
        state.hset(f"weather:{station}", mapping=hours)
    return {"users": len(users), "homes": len(homes), "readings": sum(len(hours) for hours in readings.values())}
