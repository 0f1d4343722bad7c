def left(args):
    route = call("getleftapp-route", {"from": args["from"], "to": args["to"]})
    sold = call("getleftapp-sold", {"from": args["from"], "to": args["to"]})
    setup = call("getleftapp-seats", {"carrier": route["carrier"]})
    share = call("getleftapp-share", {"carrier": route["carrier"], "from": args["from"]})
    return {"left": setup["seats"] - sold["sold"] % setup["seats"], "share": share["share"]}


def route(args):
    found = document(f"world:route:{args['from']}:{args['to']}")
    return {"carrier": found["carrier"], "checked": ask(f"getleftapp/route/{args['from']}-{args['to']}")}


def sold(args):
    found = document(f"world:route:{args['from']}:{args['to']}")
    return {"sold": found["flights"] + ask(f"getleftapp/sold/{args['from']}-{args['to']}")}


def seats(args):
    return {"seats": 100 + ask(f"getleftapp/seats/{args['carrier']}")}


def share(args):
    return {"share": ask(f"getleftapp/share/{args['carrier']}-{args['from']}")}
