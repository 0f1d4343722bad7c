def credentials(args):
    known = state.hget("login:passwords", args["user"])
    ask(f"login/credentials/{args['user']}")
    return {"value": known is not None and known == args["password"]}


def profile(args):
    text = state.hget("login:profiles", args["user"])
    return {"user": args["user"], "profile": text, "picture": ask(f"login/profile/{args['user']}")}


def send(args):
    if "profile" not in args:
        state.incr(f"login:refused:{args['user']}")
    return without(args, "password") | {"page": ask(f"login/send/{args['user']}")}
