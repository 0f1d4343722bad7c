def find_flight(args):
    route = document(f"world:route:{args['from']}:{args['to']}")
    offer = ask(f"flightbook/find_flight/{args['from']}-{args['to']}")
    return args | {"carrier": route["carrier"], "miles": route["distance"], "offer": offer}


def check_seats(args):
    free = int(state.hget("flightbook:free", f"{args['from']}-{args['to']}") or 0)
    ask(f"flightbook/check_seats/{args['carrier']}")
    return {"value": args["seats"] <= free}


def forecast(args):
    weather = document(f"world:weather:{args['from']}")
    return args | {
        "temp": weather[str(args["hour"])],
        "delay": ask(f"flightbook/forecast/{args['from']}-{args['hour']}"),
    }


def price(args):
    return args | {"price": 5000 + 7 * args["miles"] * args["seats"] + ask(f"flightbook/price/{args['carrier']}")}


def customer(args):
    known = state.hexists("login:profiles", args["user"])
    ask(f"flightbook/customer/{args['user']}")
    return {"value": known}


def reserve_seat(args):
    state.incrby(f"flightbook:seats:{args['from']}-{args['to']}", args["seats"])
    state.hset(f"flightbook:ticket:{args['user']}:{args['to']}", "class", "economy" if args["seats"] > 1 else "saver")
    return args | {"seat": ask(f"flightbook/reserve_seat/{args['from']}-{args['to']}")}


def reserve_hotel(args):
    state.incr(f"flightbook:hotel:{args['to']}")
    return args | {"hotel": ask(f"flightbook/reserve_hotel/{args['to']}")}


def reserve_car(args):
    state.incr(f"flightbook:car:{args['to']}")
    return args | {"car": ask(f"flightbook/reserve_car/{args['to']}")}


def pay(args):
    right = state.hget("banking:cards", args["user"]) == args["card"]
    if right:
        tell(f"flightbook/pay/{args['user']}")
    return {"value": right}


def confirm(args):
    ticket = state.hgetall(f"flightbook:ticket:{args['user']}:{args['to']}")
    state.incrby(f"flightbook:paid:{args['user']}", args["price"])
    return without(args, "card", "offer") | ticket | {"booked": ask(f"flightbook/confirm/{args['user']}")}


def decline(args):
    return {"user": args["user"], "declined": ask(f"flightbook/decline/{args['user']}")}
