"""TakePayment takes the price from the customer's account: {user, price} -> {value}."""

import os

import redis

state = redis.Redis.from_url(os.environ["REDIS_URL"], decode_responses=True)


def main(args: dict) -> dict:
    """Take the money, and give it back if that was more than there is."""
    account = f"{args['store']}:account:{args['user']}"
    left = state.decrby(account, args["price"])
    if left < 0:
        state.incrby(account, args["price"])
    print(f"{args['price']} cents from {args['user']}: {'paid' if left >= 0 else 'refused'}")
    return {"value": left >= 0}
