def login(args):
    known = state.hget("login:passwords", args["user"])
    ask(f"smarthome/login/{args['user']}")
    return {"value": known is not None and known == args["password"]}


def read_temp(args):
    weather = document(f"world:weather:{args['from']}")
    sensor = ask(f"smarthome/read_temp/{args['from']}-{args['hour']}")
    return without(args, "password") | {"temp": weather[str(args["hour"])], "sensor": sensor}


def normalize(args):
    return args | {"celsius": round((args["temp"] - 32) / 1.8, 1), "scale": ask(f"smarthome/normalize/{args['from']}")}


def compare_temp(args):
    threshold = float(state.hget("smarthome:thresholds", args["user"]) or 0)
    ask(f"smarthome/compare_temp/{args['user']}")
    return {"value": args["celsius"] > threshold}


def turn_air(args):
    state.incr(f"smarthome:air:{args['user']}")
    return args | {"air": tell(f"smarthome/turn_air/{args['user']}")}


def done(args):
    log = ask(f"smarthome/done/{args['user']}")
    return {"user": args["user"], "celsius": args["celsius"], "air": "air" in args, "log": log}


def fail(args):
    return {"user": args["user"], "failed": ask(f"smarthome/fail/{args['user']}")}
