"""Login checks who asks, and opens a session: {user, password} -> {value}."""

import hashlib
import hmac
import os
import secrets
import time

import redis

SESSION_SECONDS = 3600
DIRECTORY_SECONDS = 0.1  # in which the directory of users answers

state = redis.Redis.from_url(os.environ["REDIS_URL"], decode_responses=True)


def digest(password: str, salt: str) -> str:
    """Hash a password, slowly enough to make guessing dear (some 10 ms)."""
    return hashlib.scrypt(password.encode(), salt=bytes.fromhex(salt), n=4096, r=8, p=1).hex()


def main(args: dict) -> dict:
    """Compare the password's hash with the one in state; value says whether they are equal."""
    user = str(args.get("user", ""))
    time.sleep(DIRECTORY_SECONDS)  # in place of the request to it
    known = state.hgetall(f"home:user:{user}")
    offered = digest(str(args.get("password", "")), known.get("salt", "00"))
    valid = hmac.compare_digest(offered, known.get("password", ""))
    if valid:
        state.set(f"home:session:{secrets.token_urlsafe(16)}", user, ex=SESSION_SECONDS)
    print(f"login of {user!r}: {'accepted' if valid else 'refused'}")
    return {"value": valid}
