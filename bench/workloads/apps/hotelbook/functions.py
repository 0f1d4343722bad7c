import math


def locate(args):
    place = document(f"world:airport:{args['to']}")
    return args | {"lat": place["lat"], "lon": place["lon"], "zone": ask(f"hotelbook/locate/{args['to']}")}


def nearby(args):
    texts = state.mget([f"hotelbook:hotel:{args['to']}:{number}" for number in range(5)])
    hotels = [json.loads(text) for text in texts]
    for hotel in hotels:
        hotel["far"] = round(math.dist((hotel["lat"], hotel["lon"]), (args["lat"], args["lon"])), 3)
    return args | {"hotels": hotels, "checked": ask(f"hotelbook/nearby/{args['to']}")}


def rank(args):
    best = max(args["hotels"], key=lambda hotel: (hotel["stars"] - 10 * hotel["far"], hotel["name"]))
    return without(args, "hotels") | {"hotel": best["name"], "reviews": ask(f"hotelbook/rank/{best['name']}")}


def available(args):
    free = int(state.hget("hotelbook:rooms", args["hotel"]) or 0)
    ask(f"hotelbook/available/{args['hotel']}")
    return {"value": args["rooms"] <= free}


def book(args):
    state.incrby(f"hotelbook:booked:{args['hotel']}", args["rooms"])
    return args | {"booking": tell(f"hotelbook/book/{args['hotel']}")}


def confirm(args):
    letter = ask(f"hotelbook/confirm/{args['user']}")
    return {"user": args["user"], "hotel": args["hotel"], "booking": args["booking"], "letter": letter}


def apologize(args):
    return {"user": args["user"], "hotel": None, "code": ask(f"hotelbook/apologize/{args['user']}")}
