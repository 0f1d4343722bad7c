def tickets(args):
    trip = {"from": args["from"], "to": args["to"]}
    stations = call("tcktapp-stations", trip)
    if not stations["known"]:
        return {"tickets": []}
    travel = call("tcktapp-travel", trip)
    fare = call("tcktapp-fare", trip | {"carrier": travel["carrier"], "miles": travel["miles"]})
    seats = call("tcktapp-seats", trip | {"carrier": travel["carrier"]})
    extras = call("tcktapp-extras", {"user": args["user"]})
    return {"tickets": [travel | fare | seats | extras]}


def stations(args):
    start, end = call("tcktapp-start", {"station": args["from"]}), call("tcktapp-end", {"station": args["to"]})
    return {"known": start["known"] and end["known"]}


def travel(args):
    route, train = call("tcktapp-route", args), call("tcktapp-train", args)
    return {"carrier": route["carrier"], "miles": route["miles"], "train": train["train"]}


def fare(args):
    base = call("tcktapp-base", {"miles": args["miles"]})
    tax = call("tcktapp-tax", {"carrier": args["carrier"]})
    return {"fare": base["base"] + tax["tax"]}


def seats(args):
    sold = call("tcktapp-sold", {"from": args["from"], "to": args["to"]})
    layout = call("tcktapp-layout", {"carrier": args["carrier"]})
    return {"left": 100 + layout["layout"] - sold["sold"] % 100}


def extras(args):
    points = int(state.hget("onlpurch:points", args["user"]) or 0)
    return {"points": points, "food": call("tcktapp-food", args)["food"]}


def start(args):
    return {
        "known": bool(document(f"world:airport:{args['station']}")),
        "code": ask(f"tcktapp/start/{args['station']}"),
    }


def end(args):
    return {"known": bool(document(f"world:airport:{args['station']}")), "code": ask(f"tcktapp/end/{args['station']}")}


def route(args):
    found = document(f"world:route:{args['from']}:{args['to']}")
    checked = ask(f"tcktapp/route/{args['from']}-{args['to']}")
    return {"carrier": found["carrier"], "miles": found["distance"], "checked": checked}


def train(args):
    return {"train": ask(f"tcktapp/train/{args['to']}")}


def base(args):
    return {"base": 7 * int(args["miles"]) + ask(f"tcktapp/base/{args['miles']}")}


def tax(args):
    return {"tax": ask(f"tcktapp/tax/{args['carrier']}")}


def sold(args):
    return {"sold": document(f"world:route:{args['from']}:{args['to']}")["flights"] + ask(f"tcktapp/sold/{args['to']}")}


def layout(args):
    return {"layout": ask(f"tcktapp/layout/{args['carrier']}")}


def food(args):
    return {"food": ask(f"tcktapp/food/{args['user']}")}
