import hashlib

SHOWN = 5  # hotels of an answer
ROOMS = 1000  # of a hotel


def search(args):
    stay = {"in": args["in"], "out": args["out"]}
    near = call("hotel-near", {"x": args["x"], "y": args["y"]})
    prices = call("hotel-rates", near | stay)["prices"]
    free = call("hotel-free", near | stay)["free"]
    shown = call("hotel-profiles", near)["profiles"]
    return {"hotels": [p | {"price": prices[i], "free": free[i]} for i, p in enumerate(shown)]}


def near(args):
    places = document("hotel:places")["places"]
    away = sorted((abs(x - args["x"]) + abs(y - args["y"]), n) for n, (x, y) in enumerate(places))
    return {"hotels": [n for _, n in away[:SHOWN]]}


def rates(args):
    found = state.mget([f"hotel:rate:{n}" for n in args["hotels"]])
    return {"prices": [int(rate) * (args["out"] - args["in"]) for rate in found]}


def free(args):
    days = range(args["in"], args["out"])
    taken = state.mget([f"hotel:taken:{n}:{day}" for n in args["hotels"] for day in days])
    least = [max(int(t or 0) for t in taken[i * len(days) : (i + 1) * len(days)]) for i in range(len(args["hotels"]))]
    return {"free": [ROOMS - t for t in least]}


def profiles(args):
    return {"profiles": [json.loads(p) for p in state.mget([f"hotel:profile:{n}" for n in args["hotels"]])]}


def recommend(args):
    best = call("hotel-best", args if args["by"] == "distance" else {"by": args["by"]})
    return {"by": args["by"], "hotels": call("hotel-profiles", best)["profiles"]}


def best(args):
    if args["by"] == "distance":
        return near(args)
    values = document(f"hotel:{args['by']}")["values"]
    return {"hotels": [n for _, n in sorted((value, n) for n, value in enumerate(values))[:SHOWN]]}


def user(args):
    known = state.hget(f"hotel:user:{args['user']}", "password")
    return {"correct": known == hashlib.sha256(args["password"].encode()).hexdigest()}


def reserve(args):
    if not call("hotel-user", {"user": args["user"], "password": args["password"]})["correct"]:
        return {"reserved": False}
    keys = [f"hotel:taken:{args['hotel']}:{day}" for day in range(args["in"], args["out"])]
    if any(int(taken or 0) >= ROOMS for taken in state.mget(keys)):
        return {"reserved": False}
    for key in keys:
        state.incr(key)
    return {"reserved": True}
