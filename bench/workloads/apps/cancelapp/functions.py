def cancel(args):
    order = call("cancelapp-order", {"user": args["user"]})
    if not order["open"]:
        return {"user": args["user"], "cancelled": False}
    refund = call("cancelapp-refund", {"user": args["user"], "paid": order["paid"]})
    note = call("cancelapp-notify", {"user": args["user"], "refund": refund["refund"]})
    return {"user": args["user"], "cancelled": True} | refund | note


def order(args):
    shut = state.sismember("cancelapp:grounded", args["user"])
    return {"open": not shut, "paid": 1000 + ask(f"cancelapp/order/{args['user']}")}


def refund(args):
    state.incrby(f"cancelapp:refunded:{args['user']}", args["paid"])
    return {"refund": args["paid"] * 8 // 10, "fee": ask(f"cancelapp/refund/{args['user']}")}


def notify(args):
    return {"message": tell(f"cancelapp/notify/{args['user']}")}
