def travel(args):
    trip = {"from": args["from"], "to": args["to"]}
    start = call("querytrvl-station", {"station": args["from"]})
    end = call("querytrvl-station_end", {"station": args["to"]})
    if not (start["known"] and end["known"]):
        return {"travel": None}
    route = call("querytrvl-route", trip)
    train = call("querytrvl-train", {"carrier": route["carrier"]})
    price = call("querytrvl-price", {"miles": route["miles"], "carrier": route["carrier"]})
    left = call("querytrvl-left", trip)
    plan = call("querytrvl-plan", trip)
    return {
        "travel": trip,
        "train": train["train"],
        "price": price["price"],
        "left": left["left"],
        "plan": plan["plan"],
    }


def station(args):
    return {
        "known": bool(document(f"world:airport:{args['station']}")),
        "code": ask(f"querytrvl/station/{args['station']}"),
    }


def station_end(args):
    return {
        "known": bool(document(f"world:airport:{args['station']}")),
        "code": ask(f"querytrvl/station_end/{args['station']}"),
    }


def route(args):
    found = document(f"world:route:{args['from']}:{args['to']}")
    return {
        "carrier": found["carrier"],
        "miles": found["distance"],
        "checked": ask(f"querytrvl/route/{args['from']}-{args['to']}"),
    }


def train(args):
    return {"train": ask(f"querytrvl/train/{args['carrier']}")}


def price(args):
    return {"price": 1000 + 7 * int(args["miles"]) + ask(f"querytrvl/price/{args['carrier']}")}


def left(args):
    found = document(f"world:route:{args['from']}:{args['to']}")
    return {"left": found["flights"] % 150 + ask(f"querytrvl/left/{args['from']}-{args['to']}")}


def plan(args):
    return {"plan": ask(f"querytrvl/plan/{args['from']}-{args['to']}")}
