import math


def login(args):
    known = state.hget("login:passwords", args["user"])
    ask(f"onlpurch/login/{args['user']}")
    return {"value": known is not None and known == args["password"]}


def address(args):
    place = document(f"world:airport:{args['from']}")
    return without(args, "password") | {
        "lat": place["lat"],
        "lon": place["lon"],
        "region": ask(f"onlpurch/address/{args['from']}"),
    }


def stores(args):
    shops = [name for name in state.smembers("onlpurch:stores") if name != args["from"]]
    return args | {"shops": sorted(shops), "listed": ask(f"onlpurch/stores/{args['item']}")}


def closest(args):
    def far(name):
        place = document(f"world:airport:{name}")
        return math.dist((place["lat"], place["lon"]), (args["lat"], args["lon"])), name

    return without(args, "shops") | {
        "shop": min(args["shops"], key=far),
        "route": ask(f"onlpurch/closest/{args['from']}"),
    }


def stock(args):
    left = int(state.hget("onlpurch:stock", args["item"]) or 0)
    ask(f"onlpurch/stock/{args['item']}")
    return {"value": args["pieces"] <= left}


def quote(args):
    points = int(state.hget("onlpurch:points", args["user"]) or 0)
    return args | {"price": args["pieces"] * (1000 + 10 * ask(f"onlpurch/quote/{args['item']}")) - points}


def card(args):
    right = state.hget("banking:cards", args["user"])
    ask(f"onlpurch/card/{args['user']}")
    return {"value": right == args["card"]}


def charge(args):
    state.incrby(f"onlpurch:charged:{args['user']}", args["price"])
    return args | {"charged": tell(f"onlpurch/charge/{args['user']}")}


def ship(args):
    state.incrby(f"onlpurch:shipped:{args['item']}", args["pieces"])
    state.hset(f"onlpurch:parcel:{args['user']}:{args['item']}", "shop", args["shop"])
    return args | {"parcel": ask(f"onlpurch/ship/{args['shop']}")}


def receipt(args):
    parcel = state.hgetall(f"onlpurch:parcel:{args['user']}:{args['item']}")
    number = ask(f"onlpurch/receipt/{args['user']}")
    return without(args, "card", "lat", "lon") | {"from_shop": parcel["shop"], "number": number}


def refuse(args):
    return {"user": args["user"], "refused": ask(f"onlpurch/refuse/{args['user']}")}


def backorder(args):
    state.incrby(f"onlpurch:wanted:{args['item']}", args["pieces"])
    return {"user": args["user"], "backorder": ask(f"onlpurch/backorder/{args['item']}")}


def decline(args):
    return {"user": args["user"], "declined": ask(f"onlpurch/decline/{args['user']}")}
