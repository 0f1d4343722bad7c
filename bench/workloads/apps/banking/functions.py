def card(args):
    number = state.hget("banking:cards", args["user"])
    ask(f"banking/card/{args['user']}")
    return {"value": number is not None}


def pin(args):
    right = state.hget("banking:pins", args["user"])
    ask(f"banking/pin/{args['user']}")
    return {"value": right == args["pin"]}


def balance(args):
    limit = int(state.hget("banking:limits", args["user"]) or 0)
    ask(f"banking/balance/{args['user']}")
    return {"value": args["amount"] <= limit}


def withdraw(args):
    state.incrby(f"banking:taken:{args['user']}", args["amount"])
    return {"user": args["user"], "amount": args["amount"], "slip": ask(f"banking/withdraw/{args['user']}")}


def notify(args):
    return args | {"message": tell(f"banking/notify/{args['user']}")}


def decline(args):
    state.incr(f"banking:declined:{args['user']}")
    return {"user": args["user"], "declined": True, "code": ask(f"banking/decline/{args['user']}")}
