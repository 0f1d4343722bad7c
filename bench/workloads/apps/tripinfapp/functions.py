def information(args):
    trip = {"from": args["from"], "to": args["to"]}
    stations = call("tripinfapp-stations", trip)
    if not stations["known"]:
        return {"trip": None}
    travel = call("tripinfapp-travel", trip)
    fare = call("tripinfapp-fare", trip | {"carrier": travel["carrier"], "miles": travel["miles"]})
    seats = call("tripinfapp-seats", trip | {"carrier": travel["carrier"]})
    extras = call("tripinfapp-extras", {"user": args["user"]})
    there = call("tripinfapp-there", trip)
    traveller = call("tripinfapp-traveller", {"user": args["user"], "to": args["to"]})
    return {"trip": travel | fare | seats | extras | there | traveller}


def stations(args):
    start, end = call("tripinfapp-start", {"station": args["from"]}), call("tripinfapp-end", {"station": args["to"]})
    return {"known": start["known"] and end["known"]}


def travel(args):
    route, train = call("tripinfapp-route", args), call("tripinfapp-train", args)
    return {"carrier": route["carrier"], "miles": route["miles"], "train": train["train"]}


def fare(args):
    base = call("tripinfapp-base", {"miles": args["miles"]})
    tax = call("tripinfapp-tax", {"carrier": args["carrier"]})
    return {"fare": base["base"] + tax["tax"]}


def seats(args):
    sold = call("tripinfapp-sold", {"from": args["from"], "to": args["to"]})
    layout = call("tripinfapp-layout", {"carrier": args["carrier"]})
    return {"left": 100 + layout["layout"] - sold["sold"] % 100}


def extras(args):
    points = int(state.hget("onlpurch:points", args["user"]) or 0)
    food, insurance = call("tripinfapp-food", args), call("tripinfapp-insurance", args)
    return {"points": points, "food": food["food"], "insurance": insurance["insurance"]}


def there(args):
    weather, gate = call("tripinfapp-weather", args), call("tripinfapp-gate", args)
    belt, hotel = call("tripinfapp-belt", args), call("tripinfapp-hotel", args)
    return {"temp": weather["temp"], "gate": gate["gate"], "belt": belt["belt"], "hotel": hotel["hotel"]}


def traveller(args):
    contact, visa = call("tripinfapp-contact", args), call("tripinfapp-visa", {"to": args["to"]})
    return {"contact": contact["contact"], "visa": visa["visa"]}


def start(args):
    return {
        "known": bool(document(f"world:airport:{args['station']}")),
        "code": ask(f"tripinfapp/start/{args['station']}"),
    }


def end(args):
    return {
        "known": bool(document(f"world:airport:{args['station']}")),
        "code": ask(f"tripinfapp/end/{args['station']}"),
    }


def route(args):
    found = document(f"world:route:{args['from']}:{args['to']}")
    checked = ask(f"tripinfapp/route/{args['from']}-{args['to']}")
    return {"carrier": found["carrier"], "miles": found["distance"], "checked": checked}


def train(args):
    return {"train": ask(f"tripinfapp/train/{args['to']}")}


def base(args):
    return {"base": 7 * int(args["miles"]) + ask(f"tripinfapp/base/{args['miles']}")}


def tax(args):
    return {"tax": ask(f"tripinfapp/tax/{args['carrier']}")}


def sold(args):
    return {
        "sold": document(f"world:route:{args['from']}:{args['to']}")["flights"] + ask(f"tripinfapp/sold/{args['to']}")
    }


def layout(args):
    return {"layout": ask(f"tripinfapp/layout/{args['carrier']}")}


def food(args):
    return {"food": ask(f"tripinfapp/food/{args['user']}")}


def insurance(args):
    return {"insurance": ask(f"tripinfapp/insurance/{args['user']}")}


def weather(args):
    return {"temp": document(f"world:weather:{args['from']}")["12"], "sky": ask(f"tripinfapp/weather/{args['from']}")}


def gate(args):
    return {"gate": ask(f"tripinfapp/gate/{args['from']}")}


def belt(args):
    return {"belt": ask(f"tripinfapp/belt/{args['to']}")}


def hotel(args):
    return {"hotel": ask(f"tripinfapp/hotel/{args['to']}")}


def contact(args):
    return {"contact": state.hget("login:profiles", args["user"]), "id": ask(f"tripinfapp/contact/{args['user']}")}


def visa(args):
    return {"visa": ask(f"tripinfapp/visa/{args['to']}")}
