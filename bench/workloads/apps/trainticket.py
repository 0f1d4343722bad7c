KEPT = 40  # orders of a customer


def contacts(args):
    return {"contacts": state.hvals(f"contacts:{args['user']}")}


def query(args):
    return {"user": args["user"], "orders": call("trainticket-orders", {"user": args["user"]})["orders"]}


def orders(args):
    numbers = state.lrange(f"orders:{args['user']}", 0, -1)
    return {"orders": [json.loads(text) for text in state.mget([f"order:{n}" for n in numbers]) if text]}


def calculate(args):
    found = call("trainticket-order", {"order": args["order"]})
    return {"order": args["order"], "refund": found["price"] * 8 // 10 if found["status"] == "paid" else 0}


def order(args):
    return document(f"order:{args['order']}")


def cancel(args):
    found = call("trainticket-order", {"order": args["order"]})
    back = call("trainticket-refund", {"user": args["user"], "order": args["order"], "paid": found["status"] == "paid"})
    note = call("trainticket-notify", {"user": args["user"], "order": args["order"]})
    return {"order": args["order"], "cancelled": True} | back | note


def refund(args):
    found = document(f"order:{args['order']}")
    back = found["price"] * 8 // 10 if args["paid"] else 0
    state.set(f"order:{args['order']}", json.dumps(found | {"status": "cancelled"}))
    state.incrby(f"refunded:{args['user']}", back)
    return {"refund": back}


def notify(args):
    state.incr(f"notices:{args['user']}")
    return {"message": f"There is news of your order {args['order']}."}


def pay(args):
    found = call("trainticket-order", {"order": args["order"]})
    done = call("trainticket-payment", {"user": args["user"], "order": args["order"], "price": found["price"]})
    return {"order": args["order"]} | done


def payment(args):
    found = document(f"order:{args['order']}")
    state.set(f"order:{args['order']}", json.dumps(found | {"status": "paid"}))
    state.incrby(f"spent:{args['user']}", args["price"])
    return {"paid": args["price"]}


def preserve(args):
    user, trip = {"user": args["user"]}, {"from": args["from"], "to": args["to"]}
    if not call("trainticket-security", user)["safe"]:
        return {"order": None}
    contact = call("trainticket-contacts", user)["contacts"][0]
    found = call("tripinfapp-information", user | trip)["trip"]
    cover = call("trainticket-assurance", {"kind": 1})
    call("trainticket-seat", trip)
    made = call("trainticket-create", user | trip | {"contact": contact, "price": found["fare"] + cover["price"]})
    note = call("trainticket-notify", user | {"order": made["order"]})
    return {"trip": found} | made | note


def security(args):
    return {"safe": not state.sismember("security:suspects", args["user"])}


def assurance(args):
    return {"price": int(state.hget("assurances", args["kind"]) or 0)}


def seat(args):
    key = f"world:route:{args['from']}:{args['to']}"
    found = document(key)
    state.set(key, json.dumps(found | {"flights": found["flights"] + 1}))
    return {"sold": found["flights"] + 1}


def create(args):
    number, key = state.incr("orders"), f"orders:{args['user']}"
    state.set(f"order:{number}", json.dumps(args | {"number": number, "status": "open"}))
    state.rpush(key, number)
    state.ltrim(key, -KEPT, -1)
    return {"order": number}
